// The stores that the conformance suite runs on. A new store adds one line to stores() and a Site.
//
// A Site is a place where one store lives; it can be opened several times, as several processes
// would. Times are taken from the site: a fake clock is moved, a real one is waited for.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "base/time.h"
#include "store/seam.h"

namespace stint::testing {

// Moves only when told. Thread-safe.
class FakeClock final : public Clock {
 public:
  MonoTime mono() const override { return MonoTime(Nanos(now_.load())); }
  WallTime wall() const override {
    return WallTime(Millis(1'700'000'000'000 + now_.load() / 1'000'000));
  }
  void advance(Nanos by) { now_ += by.count(); }

 private:
  std::atomic<std::int64_t> now_ = 1'000'000'000'000;
};

class Site {
 public:
  virtual ~Site() = default;
  virtual std::unique_ptr<store::Store> open() = 0;
  virtual const Clock& clock() const = 0;
  // Lets a little time pass.
  virtual void tick() = 0;
  // The verbs are asked for over HTTP, of a server on the store.
  virtual bool served() const { return false; }
  // Where the queues are plain files, and not records of the store; empty: they are.
  virtual std::string queue_directory() const { return {}; }
  // Short enough to wait for, long enough that nothing between two lines of a test outlasts it.
  virtual Millis short_ttl() const = 0;

  // Ticks until the condition holds; false if it never did within half a minute of the site's time.
  bool eventually(const std::function<bool()>& condition);
};

struct StoreCase {
  std::string name;
  std::function<std::unique_ptr<Site>()> make;
  bool across_processes = false;  // another process that opens the site sees the same store
};

void PrintTo(const StoreCase& store, std::ostream* out);  // for GoogleTest

const std::vector<StoreCase>& stores();
// All of them, and a server on one: where `api` is to hold, whatever stands behind it.
const std::vector<StoreCase>& lease_sites();

// A fresh, empty directory, removed with everything in it at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Runs `work` in `count` processes at once; the exit codes are what it returned. REQUIRES: no store
// is open and no other thread runs in this process.
std::vector<int> in_processes(int count, const std::function<int(int)>& work);

}  // namespace stint::testing
