#include "app/listing.h"

#include "os/clock.h"
#include "os/pause.h"
#include "os/signals.h"

namespace stint::app {
namespace {

constexpr std::size_t kPage = 1000;
constexpr Millis kLongestSleep{30'000};

bool ended(os::Signals& signals) {
  while (const auto received = signals.take()) {
    if (received->number == SIGINT || received->number == SIGTERM || received->number == SIGHUP) {
      return true;
    }
  }
  return false;
}

}  // namespace

Result<std::vector<api::Lease>> all_leases(api::Leases& leases, const std::string& prefix) {
  std::vector<api::Lease> all;
  api::Page page{.prefix = prefix, .after = "", .limit = kPage};
  while (true) {
    auto some = leases.list(page);
    if (!some) return some.error();
    const bool last = some->size() < kPage;
    for (api::Lease& lease : *some) all.push_back(std::move(lease));
    if (last) return all;
    page.after = all.back().resource;
  }
}

Status follow(api::Events& events, const std::string& prefix, std::string after,
              const std::function<bool(const api::Event&)>& show) {
  auto signals = os::Signals::make();
  if (!signals) return signals.error();
  auto watch = events.watch();
  if (!watch) return watch.error();
  if (after.empty()) {
    auto newest = events.list({.after = "", .prefix = "", .limit = 1, .newest = true});
    if (!newest) return newest.error();
    if (!newest->empty()) after = newest->back().number;
  }
  const os::SystemClock clock;
  while (true) {
    (*watch)->acknowledge();
    auto some = events.list({.after = after, .prefix = "", .limit = kPage, .newest = false});
    if (!some) return some.error();
    for (const api::Event& event : *some) {
      after = event.number;
      if (event.resource.starts_with(prefix) && !show(event)) return {};
    }
    if (some->size() == kPage) continue;
    os::wait_readable({(*watch)->fd(), signals->fd()}, clock.mono() + kLongestSleep);
    if (ended(*signals)) return {};
  }
}

}  // namespace stint::app
