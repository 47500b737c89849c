#include "holder/keeper_thread.h"

#include <pthread.h>

#include "os/pause.h"

namespace stint::holder {

KeeperThread::KeeperThread(Keeper& keeper) : keeper_(keeper), thread_([this] { loop(); }) {
  ::pthread_setname_np(thread_.native_handle(), "stint-keeper");
}

KeeperThread::~KeeperThread() { stop(); }

void KeeperThread::stop() {
  stop_ = true;
  wake_.signal();
  if (thread_.joinable()) thread_.join();
}

void KeeperThread::look_soon() {
  look_ = true;
  wake_.signal();
}

void KeeperThread::loop() {
  while (!stop_) {
    const MonoTime next = keeper_.next();
    const bool endless = next == MonoTime::max();
    os::wait_readable({wake_.fd()}, endless ? std::nullopt : std::optional(next));
    wake_.drain();
    if (stop_) return;
    if (look_.exchange(false)) keeper_.look();
    keeper_.step();
    news_.signal();
  }
}

}  // namespace stint::holder
