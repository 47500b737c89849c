// What stands behind a stint::Client: the open store, and what it was opened with.
//
// Thread safety: any thread; constant after construction but for the store, which looks after
// itself.
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "app/opened.h"
#include "app/settings.h"
#include "base/text.h"
#include "os/birthplace.h"
#include "os/clock.h"
#include "os/random.h"

namespace stint::lib {

// SQLite keeps the locks of a process in its memory, and a child of fork() finds its parent's
// there: it would take a lock for its own that it does not have, and go on in a log that others
// have removed. So a child opens none while it has inherited one. G1 G11
class SqliteUse {
 public:
  Status begin() {
    const pid_t by = opened_by;
    if (open > 0 && by != ::getpid()) {
      return unavailable(cat("process ", by,
                             " had a sqlite: store open when it forked this one, and SQLite cannot "
                             "tell their locks apart: open the first one after the fork(), or "
                             "execute a program"));
    }
    opened_by = ::getpid();
    ++open;
    begun_ = true;
    return {};
  }
  SqliteUse() = default;
  SqliteUse(const SqliteUse&) = delete;
  SqliteUse& operator=(const SqliteUse&) = delete;
  ~SqliteUse() {
    if (begun_) --open;
  }

 private:
  static inline std::atomic<pid_t> opened_by = 0;
  static inline std::atomic<int> open = 0;  // with the parent's: a child cannot close those
  bool begun_ = false;
};

struct ClientState {
  const os::Birthplace born;
  const os::Birthplace& birthplace() const { return born; }
  os::SystemClock clock;
  os::SystemRandom random;
  app::Settings settings;
  std::string owner;  // empty: settings.owner, else made up
  SqliteUse sqlite;
  std::unique_ptr<app::Opened> opened;

  api::Leases& leases() const { return opened->leases(); }

  // In a child of fork() the connections, locks and threads are still the parent's: it may neither
  // use nor close them. Code::Invalid.
  Status usable() const {
    if (born.here()) return {};
    return invalid(cat("this was made in process ", born.process(),
                       ": after a fork() the child opens a client of its own, and acquires anew"));
  }
};

// The end of what a fork() has copied: nothing, in the child. `left` keeps it in reach of those who
// look for lost memory.
template <class T>
void end_at_birthplace(T* made) {
  if (made->birthplace().here()) {
    delete made;
  } else {
    [[maybe_unused]] static std::vector<T*>* const left = new std::vector<T*>();
    left->push_back(made);
  }
}

}  // namespace stint::lib
