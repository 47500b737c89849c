// A keeper on a thread of its own: renewals that take long hold up nothing else.
#pragma once

#include <atomic>
#include <thread>

#include "holder/keeper.h"
#include "os/fd.h"

namespace stint::holder {

class KeeperThread {
 public:
  // Starts at once; `keeper` and `clock` must outlive it. The destructor joins.
  explicit KeeperThread(Keeper& keeper);
  ~KeeperThread();
  KeeperThread(const KeeperThread&) = delete;
  KeeperThread& operator=(const KeeperThread&) = delete;

  // Readable after every renewal and look: ask the keeper for its state.
  int fd() const { return news_.fd(); }
  void acknowledge() { news_.drain(); }

  // Read the leases soon: something may have changed.
  void look_soon();
  void stop();

 private:
  void loop();

  Keeper& keeper_;
  os::EventFd wake_;
  os::EventFd news_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> look_ = false;
  std::thread thread_;
};

}  // namespace stint::holder
