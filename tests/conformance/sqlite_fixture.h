// What the tests of the sqlite: store's own rules share: one file, opened under chosen clock names.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "os/clock.h"
#include "store/sqlite/sqlite_store.h"
#include "tests/conformance/seam_fixture.h"
#include "tests/conformance/stores.h"

namespace stint::testing {

class SqliteTest : public ::testing::Test {
 protected:
  using Opened = Result<std::unique_ptr<store::SqliteStore>>;

  store::SqliteOptions options() const {
    return {.path = path_,
            .clock_name = {.boot_id = "boot-1",
                           .time_namespace = "time:[1]",
                           .machine_id = "machine-1"},
            .busy = Millis(20'000),
            .may_create = true,
            .accept_copy = false};
  }
  Opened open(const store::SqliteOptions& chosen) {
    return store::SqliteStore::open(chosen, clock_);
  }
  Opened open() { return open(options()); }
  Opened open_on_boot(std::string boot) {
    store::SqliteOptions chosen = options();
    chosen.clock_name.boot_id = std::move(boot);
    return open(chosen);
  }
  template <class T>
  static void expect_unavailable(const Result<T>& result, std::string_view why) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, Code::Unavailable);
    EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
  }
  static Result<store::CommitAnswer> put(store::Store& store, std::string key, std::string value) {
    return store.commit({set(std::move(key), std::move(value))}, store::Sync::Durable);
  }
  static void start(store::Store& store, const std::string& key, Millis ttl) {
    ASSERT_TRUE(
        store.commit({timed(set(key, "v"), Step::TimerOp::Start, ttl)}, store::Sync::Durable));
  }
  static store::Entry get(store::Store& store, const std::string& key) {
    return store.read({key}).value().entries.front();
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.path() + "/store.db";
  FakeClock clock_;
};

}  // namespace stint::testing
