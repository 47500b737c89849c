#include "tests/conformance/site_log.h"

#include "base/check.h"
#include "os/clock.h"
#include "os/pause.h"
#include "store/log/log_store.h"
#include "store/shared_store.h"

namespace stint::testing {
namespace {

class LogOpening final : public store::SharedStore, public store::ManyCommits {
 public:
  explicit LogOpening(const std::shared_ptr<store::LogStore>& store)
      : SharedStore(store), many_(*store) {}
  std::vector<Result<store::CommitAnswer>> commit_many(
      const std::vector<store::Proposal>& proposals) override {
    return many_.commit_many(proposals);
  }

 private:
  store::ManyCommits& many_;
};

class LogSite final : public Site {
 public:
  std::unique_ptr<store::Store> open() override {
    std::shared_ptr<store::LogStore> store = open_.lock();
    if (!store) {
      store = open_anew();
      open_ = store;
    }
    return std::make_unique<LogOpening>(store);
  }
  const Clock& clock() const override { return clock_; }
  void tick() override { os::pause_for(Millis(2)); }
  Millis short_ttl() const override { return Millis(300); }

 private:
  std::shared_ptr<store::LogStore> open_anew() const {
    store::LogOptions options;
    options.path = directory_.path() + "/store";
    options.clock_name = os::clock_name();
    options.busy = Millis(60'000);
    // Small, so that every longer test runs over snapshots.
    options.segment_size = store::LogOptions::kSmallestSegment;
    options.snapshot_after = 4096;
    auto store = store::LogStore::open(options, clock_);
    CHECK(store.has_value(), store.has_value() ? "" : store.error().message.c_str());
    return std::move(*store);
  }

  TemporaryDirectory directory_;
  os::SystemClock clock_;
  std::weak_ptr<store::LogStore> open_;  // closed with the last opening
};

}  // namespace

std::unique_ptr<Site> make_log_site() { return std::make_unique<LogSite>(); }

}  // namespace stint::testing
