// A log: store in a directory of its own, and hands on its files.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/text.h"
#include "store/log/log_store.h"
#include "tests/conformance/seam_fixture.h"
#include "tests/conformance/stores.h"

namespace stint::testing {

class LogFile : public ::testing::Test {
 protected:
  using Opened = Result<std::unique_ptr<store::LogStore>>;

  store::LogOptions options() const {
    store::LogOptions out;
    out.path = path_;
    out.clock_name = {.boot_id = "boot-1", .time_namespace = "time:[1]", .machine_id = "machine-1"};
    out.busy = Millis(0);
    out.segment_size = store::LogOptions::kSmallestSegment;
    return out;
  }
  Opened open(const store::LogOptions& chosen) { return store::LogStore::open(chosen, clock_); }
  Opened open() { return open(options()); }
  Opened open_on_boot(std::string boot) {
    store::LogOptions chosen = options();
    chosen.clock_name.boot_id = std::move(boot);
    return open(chosen);
  }
  template <class T>
  static void expect_unavailable(const Result<T>& result, std::string_view why) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, Code::Unavailable);
    EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
  }
  static void put(store::Store& store, const std::string& key, const std::string& value,
                  store::Sync sync = store::Sync::Durable) {
    ASSERT_TRUE(store.commit({set(key, value)}, sync));
  }
  static void start(store::Store& store, const std::string& key, Millis ttl) {
    ASSERT_TRUE(
        store.commit({timed(set(key, "v"), Step::TimerOp::Start, ttl)}, store::Sync::Durable));
  }
  static store::Entry get(store::Store& store, const std::string& key) {
    return store.read({key}).value().entries.front();
  }

  std::string segment(int number) const {
    const std::string digits = std::to_string(number);
    return cat(path_, "/log.", std::string(16 - digits.size(), '0'), digits);
  }
  static std::string content(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Where this text stands in the first segment; it must be there once.
  std::size_t find_in_log(std::string_view text) const {
    const std::string bytes = content(segment(1));
    const std::size_t at = bytes.find(text);
    EXPECT_NE(at, std::string::npos);
    EXPECT_EQ(bytes.find(text, at + 1), std::string::npos);
    return at;
  }
  static void overwrite(const std::string& file, std::size_t at, std::string_view bytes) {
    std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(at));
    out << bytes;
  }
  // Reads every file twice: what was refused is left as it was.
  std::map<std::string, std::string> all_files() const {
    std::map<std::string, std::string> out;
    for (const auto& file : std::filesystem::directory_iterator(path_)) {
      if (file.path().filename() != "lock") out[file.path()] = content(file.path());
    }
    return out;
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.path() + "/store";
  FakeClock clock_;
};

}  // namespace stint::testing
