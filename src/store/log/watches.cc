#include "store/log/watches.h"

namespace stint::store::log {

class Watches::Registered final : public Watch {
 public:
  Registered(std::shared_ptr<Watches> watches, std::string_view key, os::EventFd event)
      : watches_(std::move(watches)), event_(std::move(event)) {
    const MutexLock lock(watches_->mutex_);
    place_ = watches_->all_.emplace(key, &event_);
  }
  ~Registered() override {
    const MutexLock lock(watches_->mutex_);
    watches_->all_.erase(place_);
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

  int fd() const override { return event_.fd(); }
  void acknowledge() override { event_.drain(); }

 private:
  const std::shared_ptr<Watches> watches_;
  os::EventFd event_;
  All::iterator place_;
};

Result<std::unique_ptr<Watch>> Watches::add(const std::shared_ptr<Watches>& all,
                                            std::string_view key) {
  auto event = os::EventFd::make();
  if (!event) return event.error();
  return std::make_unique<Registered>(all, key, std::move(*event));
}

bool Watches::anyone() const {
  const MutexLock lock(mutex_);
  return !all_.empty();
}

void Watches::wake(std::string_view key) {
  const MutexLock lock(mutex_);
  const auto [first, last] = all_.equal_range(key);
  for (auto at = first; at != last; ++at) at->second->signal();
}

}  // namespace stint::store::log
