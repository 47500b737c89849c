// A keeper on a thread of its own: renewals that take long hold up nothing else.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "holder/keeper.h"
#include "os/fd.h"

namespace stint::holder {

class KeeperThread {
 public:
  // `keeper` must outlive it. Both are called on the thread after every renewal and look: `renewed`
  // before anybody else can know of it, `told` when they do, so that it may take its time. Errors:
  // out of descriptors.
  static Result<std::unique_ptr<KeeperThread>> make(Keeper& keeper, std::function<void()> renewed,
                                                    std::function<void()> told);
  ~KeeperThread();  // joins
  KeeperThread(const KeeperThread&) = delete;
  KeeperThread& operator=(const KeeperThread&) = delete;

  // Does nothing if it runs. Errors: no thread can be had now; it may be asked again.
  Status start();
  bool started() const { return thread_.joinable(); }

  // Readable after every renewal and look: ask the keeper for its state.
  int fd() const { return news_.fd(); }
  void acknowledge() { news_.drain(); }

  // Read the leases soon (or when it is started): something may have changed.
  void look_soon();
  void stop();

 private:
  KeeperThread(Keeper& keeper, std::function<void()> renewed, std::function<void()> told,
               os::EventFd wake, os::EventFd news);
  void loop();

  Keeper& keeper_;
  const std::function<void()> renewed_;
  const std::function<void()> told_;
  os::EventFd wake_;
  os::EventFd news_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> look_ = false;
  std::thread thread_;
};

}  // namespace stint::holder
