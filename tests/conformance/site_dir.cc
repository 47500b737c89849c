#include "tests/conformance/site_dir.h"

#include "base/check.h"
#include "os/clock.h"
#include "os/pause.h"
#include "store/dir/dir_store.h"

namespace stint::testing {
namespace {

class DirSite final : public Site {
 public:
  std::unique_ptr<store::Store> open() override {
    store::DirOptions options;
    options.path = directory_.path() + "/store";
    options.timeout = Millis(30'000);
    // Often, so that every longer test runs over snapshots.
    options.snapshot_every = 8;
    auto store = store::DirStore::open(options, clock_);
    CHECK(store.has_value(), store.has_value() ? "" : store.error().message.c_str());
    return std::move(*store);
  }
  std::string queue_directory() const override { return directory_.path() + "/queues"; }
  const Clock& clock() const override { return clock_; }
  void tick() override { os::pause_for(Millis(2)); }
  Millis short_ttl() const override { return Millis(300); }

 private:
  TemporaryDirectory directory_;
  os::SystemClock clock_;
};

}  // namespace

std::unique_ptr<Site> make_dir_site() { return std::make_unique<DirSite>(); }

}  // namespace stint::testing
