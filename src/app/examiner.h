// The doctor inside a server: the same probes as `stint doctor` on further openings of the store,
// on a thread of its own. One examination at a time, of bounded length, kept for a while. It
// touches no lease: all that it writes stands under one prefix of its own (probe/doctor.h).
//
// A server starts no processes, so contenders are threads, each on its own opening; and a store
// that lives in this process has one opening only. Thread safety: ask() and told() from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "app/opened.h"
#include "base/mutex.h"
#include "probe/doctor.h"
#include "server/server.h"

namespace stint::app {

class Examiner {
 public:
  struct World {
    // Another opening of the store.
    std::function<Result<std::shared_ptr<store::Store>>()> open;
    store::Finding generation;
    Millis limit{30'000};  // for one examination
    Millis fresh{30'000};  // so long the last one is told again
  };
  Examiner(World world, const Clock& clock, Random& random);
  // Ends what is under way: it waits for the call of the store that is out, and for the removal of
  // what was written.
  ~Examiner();
  Examiner(const Examiner&) = delete;
  Examiner& operator=(const Examiner&) = delete;

  // The last examination, or one that is begun now. Never waits.
  server::Examined ask();
  // The last examination; begins none.
  server::Examined told();

 private:
  void examine();
  void tell(const store::Finding& finding);
  Status let(bool clears);
  Result<std::unique_ptr<store::Store>> open_limited();
  Result<probe::Tally> contest_of_threads(const probe::Contest& contest);

  const World world_;
  const Clock& clock_;
  Random& random_;
  std::atomic<bool> over_ = false;
  std::atomic<MonoTime> until_{};
  std::atomic<MonoTime> cut_at_{};  // when it was first refused something; zero: it was not
  Mutex mutex_;
  server::Examined seen_ GUARDED_BY(mutex_);
  bool ever_ GUARDED_BY(mutex_) = false;
  MonoTime done_at_ GUARDED_BY(mutex_){};
  std::thread thread_ GUARDED_BY(mutex_);
};

// How a server's store is opened once more.
Examiner::World examined_store(Opened& opened, const OpenOptions& options, const Clock& clock);

}  // namespace stint::app
