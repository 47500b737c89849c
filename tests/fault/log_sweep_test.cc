// The log: store under the sweep.
// EVIDENCE-OF: G1 G2 G3 G11
#include <functional>

#include "app/opened.h"
#include "os/clock.h"
#include "store/log/log_store.h"
#include "tests/fault/lease_sweep.h"

namespace stint::test {
namespace {

class LogWorld final : public World {
 public:
  LogWorld() { stint_.use_store(store()); }
  std::string path() const { return state() + "/log"; }
  // Small files: they are put back before every strike.
  std::string store() const override { return cat("log:", path(), "?segment_kb=1024"); }

  // The one that stands still has the store: another is told so, and waits no longer.
  void let_a_rival_try() override {
    rival_ = stint_({"acquire", "r", "--ttl", "1h", "--store", cat(store(), "&timeout=100ms")});
  }

  // Whatever was struck, all of it can be read again.
  std::string damage() const override {
    if (!std::filesystem::exists(path() + "/snapshot")) return {};
    store::LogOptions options;
    options.path = path();
    options.clock_name = os::clock_name();
    options.may_create = false;
    const os::SystemClock clock;
    auto opened = store::LogStore::open(options, clock);
    return opened ? "" : opened.error().message;
  }
};

// Commits of another process have brought the log to where the next one has more to do.
class AcquiringOnALongLog : public Acquiring {
 public:
  AcquiringOnALongLog(std::uint64_t bytes, std::string url_options)
      : Acquiring(1), bytes_(bytes), url_options_(std::move(url_options)) {}

  void set_up(World& world) override {
    Acquiring::set_up(world);
    const os::SystemClock clock;
    const auto url = app::parse_store_url(world.store());
    ASSERT_TRUE(url);
    auto store = app::open_store({.url = *url, .state_directory = {}, .may_create = false}, clock);
    ASSERT_TRUE(store);
    store::Step filler;
    filler.kind = store::Step::Kind::Set;
    filler.key = "filler";
    filler.value = std::string(1000, 'x');
    const std::size_t entry = store::log::entry_size(filler.value.size() + 20);
    for (std::uint64_t done = 0; done < bytes_; done += entry) {
      ASSERT_TRUE((*store)->commit({filler}, store::Sync::Relaxed));
    }
  }
  std::vector<std::string> words() const override {
    auto out = Acquiring::words();
    if (url_options_.empty()) return out;
    out.insert(out.end(), {"--store", url_options_});
    return out;
  }

 private:
  const std::uint64_t bytes_;
  const std::string url_options_;  // instead of the world's
};

TEST(LogSweep, TheFirstAcquireOfAll) {
  SKIP_WITHOUT_STRACE();
  Acquiring scenario(0);
  LogWorld world;
  sweep_with(world, scenario, "acquire, no store yet");
}

TEST(LogSweep, Acquire) {
  SKIP_WITHOUT_STRACE();
  Acquiring scenario(2);
  LogWorld world;
  sweep_with(world, scenario, "acquire");
}

// The segment is nearly full: the next one is made, and the log goes on in it.
TEST(LogSweep, AcquireThatGoesOnInTheNextSegment) {
  SKIP_WITHOUT_STRACE();
  LogWorld world;
  AcquiringOnALongLog scenario(1'041'000, "");
  sweep_with(world, scenario, "acquire, with a new segment");
}

// A log that is much too long is not left so: the end of the command makes a snapshot.
TEST(LogSweep, AcquireThatMakesASnapshot) {
  SKIP_WITHOUT_STRACE();
  LogWorld world;
  AcquiringOnALongLog scenario(1'500'000, cat(world.store(), "&snapshot_kb=1"));
  sweep_with(world, scenario, "acquire, with a snapshot");
}

TEST(LogSweep, Renew) {
  SKIP_WITHOUT_STRACE();
  Renewing scenario;
  LogWorld world;
  sweep_with(world, scenario, "renew");
}

TEST(LogSweep, Release) {
  SKIP_WITHOUT_STRACE();
  Releasing scenario;
  LogWorld world;
  sweep_with(world, scenario, "release");
}

}  // namespace
}  // namespace stint::test
