#include "holder/keeper_thread.h"

#include <utility>

#include "base/text.h"
#include "os/pause.h"
#include "os/thread.h"

namespace stint::holder {

KeeperThread::KeeperThread(Keeper& keeper, std::function<void()> renewed,
                           std::function<void()> told, os::EventFd wake, os::EventFd news)
    : keeper_(keeper),
      renewed_(std::move(renewed)),
      told_(std::move(told)),
      wake_(std::move(wake)),
      news_(std::move(news)) {}

Result<std::unique_ptr<KeeperThread>> KeeperThread::make(Keeper& keeper,
                                                         std::function<void()> renewed,
                                                         std::function<void()> told) {
  auto wake = os::EventFd::make();
  if (!wake) return wake.error();
  auto news = os::EventFd::make();
  if (!news) return news.error();
  return std::unique_ptr<KeeperThread>(new KeeperThread(keeper, std::move(renewed), std::move(told),
                                                        std::move(*wake), std::move(*news)));
}

Status KeeperThread::start() {
  if (started()) return {};
  auto started = os::start_thread("stint-keeper", "renew the lease", [this] { loop(); });
  if (!started) return started.error();
  thread_ = std::move(*started);
  return {};
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
    if (renewed_) renewed_();
    news_.signal();
    if (told_) told_();
  }
}

}  // namespace stint::holder
