#include "tests/conformance/stores.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "base/check.h"
#include "os/clock.h"
#include "os/pause.h"
#include "store/memory/memory_store.h"
#include "store/sqlite/sqlite_store.h"
#include "tests/conformance/site_dir.h"
#include "tests/conformance/site_do.h"
#include "tests/conformance/site_etcd.h"
#include "tests/conformance/site_log.h"
#include "tests/conformance/site_postgres.h"
#include "tests/conformance/site_redis.h"
#include "tests/support/lying_stores.h"

namespace stint::testing {
namespace {

class MemorySite final : public Site {
 public:
  std::unique_ptr<store::Store> open() override {
    return std::make_unique<test::SharedStore>(store_);
  }
  const Clock& clock() const override { return clock_; }
  void tick() override { clock_.advance(Millis(7)); }
  Millis short_ttl() const override { return Millis(100); }

 private:
  FakeClock clock_;
  std::shared_ptr<store::Store> store_ = std::make_shared<store::MemoryStore>(clock_);
};

class SqliteSite : public Site {
 public:
  std::unique_ptr<store::Store> open() override {
    auto store = store::SqliteStore::open({.path = directory_.path() + "/store.db",
                                           .clock_name = os::clock_name(),
                                           .busy = Millis(30'000),
                                           .may_create = true,
                                           .accept_copy = false},
                                          clock_);
    CHECK(store.has_value(), store.has_value() ? "" : store.error().message.c_str());
    return std::move(*store);
  }
  const Clock& clock() const override { return clock_; }
  void tick() override { os::pause_for(Millis(2)); }
  Millis short_ttl() const override { return Millis(300); }

 private:
  TemporaryDirectory directory_;
  os::SystemClock clock_;
};

class ServedSite final : public SqliteSite {
 public:
  bool served() const override { return true; }
  Millis short_ttl() const override { return Millis(1000); }
};

}  // namespace

const std::vector<StoreCase>& lease_sites() {
  static const std::vector<StoreCase> all = [] {
    std::vector<StoreCase> out = stores();
    out.push_back({"server", [] { return std::make_unique<ServedSite>(); }, true});
    return out;
  }();
  return all;
}

const std::vector<StoreCase>& stores() {
  static const std::vector<StoreCase> all = [] {
    std::vector<StoreCase> out = {
        {"memory", [] { return std::make_unique<MemorySite>(); }, false},
        {"dir", make_dir_site, true},
        {"log", make_log_site, true},
        {"sqlite", [] { return std::make_unique<SqliteSite>(); }, true},
        {"redis", make_redis_site, true},
        {"etcd", make_etcd_site, true},
        {"postgres", make_postgres_site, true},
    };
    // The only one whose server is no package of Debian's.
    const std::string why = do_site_missing();
    if (why.empty())
      out.push_back({"do", make_do_site, true});
    else
      std::cerr << "do: is left out: " << why << '\n';
    return out;
  }();
  return all;
}

void PrintTo(const StoreCase& store, std::ostream* out) { *out << store.name; }

bool Site::eventually(const std::function<bool()>& condition) {
  const MonoTime deadline = clock().mono() + std::chrono::seconds(30);
  while (!condition()) {
    if (clock().mono() >= deadline) return false;
    tick();
  }
  return true;
}

TemporaryDirectory::TemporaryDirectory() {
  // Memory rather than a disk where there is some: syncs cost nothing there.
  const bool shm = std::filesystem::is_directory("/dev/shm");
  path_ =
      (shm ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/stint-test-XXXXXX";
  CHECK(::mkdtemp(path_.data()) != nullptr, "cannot make a temporary directory");
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<int> in_processes(int count, const std::function<int(int)>& work) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    CHECK(child >= 0, "cannot fork");
    if (child == 0) ::_exit(work(i));
    children.push_back(child);
  }
  std::vector<int> codes;
  for (const pid_t child : children) {
    int status = 0;
    CHECK(::waitpid(child, &status, 0) == child, "lost a child");
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  return codes;
}

}  // namespace stint::testing
