// The dir: store under the sweep: a writer that is stopped or killed at any of its system calls
// neither holds up nor undoes the others.
// EVIDENCE-OF: G1 G2 G3 G11
#include "os/clock.h"
#include "store/dir/dir_store.h"
#include "tests/fault/lease_sweep.h"

namespace stint::test {
namespace {

namespace fs = std::filesystem;

class DirWorld : public World {
 public:
  DirWorld() { stint_.use_store(store()); }
  std::string store() const override { return cat("dir:", path()); }
  std::string path() const { return state() + "/shared"; }

  // Whatever was struck, the log can be read from its first number to its last.
  std::string damage() const override {
    if (!fs::exists(path() + "/log")) return {};
    store::DirOptions options;
    options.path = path();
    options.may_create = false;
    const os::SystemClock clock;
    auto opened = store::DirStore::open(options, clock);
    return opened ? "" : opened.error().message;
  }

 protected:
  // The directory of the log stays: a copy of it would be refused as one.
  void copy(const std::string& from, const std::string& to) override {
    if (!fs::exists(from + "/shared/log")) fs::remove_all(to);
    if (fs::exists(to)) {
      std::vector<fs::path> files;
      for (const auto& entry : fs::recursive_directory_iterator(to)) {
        if (!entry.is_directory()) files.push_back(entry.path());
      }
      for (const fs::path& file : files) fs::remove(file);
    }
    if (fs::exists(from)) fs::copy(from, to, fs::copy_options::recursive);
  }
};

// While one stands still, the others make so many commits that its number is long removed when it
// goes on: a number that came free again.
class BusyDirWorld final : public DirWorld {
 public:
  void let_a_rival_try() override {
    DirWorld::let_a_rival_try();
    store::DirOptions options;
    options.path = path();
    options.may_create = false;
    options.snapshot_every = 8;
    options.readable = false;
    const os::SystemClock clock;
    auto others = store::DirStore::open(options, clock);
    if (!others) return;  // the struck one has not made it yet
    store::Step step;
    step.kind = store::Step::Kind::Append;
    step.key = "busy/";
    for (int i = 0; i < 400; ++i) {
      EXPECT_TRUE((*others)->commit({step}, store::Sync::Relaxed).has_value());
    }
    EXPECT_FALSE(fs::exists(path() + "/log/0000000000000003"));
  }
};

TEST(DirSweep, TheFirstAcquireOfAll) {
  SKIP_WITHOUT_STRACE();
  DirWorld world;
  Acquiring scenario(0);
  sweep_with(world, scenario, "acquire, no store yet");
}

TEST(DirSweep, Acquire) {
  SKIP_WITHOUT_STRACE();
  DirWorld world;
  Acquiring scenario(2);
  sweep_with(world, scenario, "acquire");
}

// The commit after which a snapshot is due.
class AcquiringWithASnapshot : public Acquiring {
 public:
  AcquiringWithASnapshot() : Acquiring(1) {}
  void set_up(World& world) override {
    Acquiring::set_up(world);
    EXPECT_EQ(world.stint()({"acquire", "other", "--ttl", "1h"}).exit_code, 0);
    const std::string log = world.state() + "/shared/log";
    const auto last = [&] {
      return std::distance(fs::directory_iterator(log), fs::directory_iterator());
    };
    while (last() < 71) {
      ASSERT_EQ(world.stint()({"renew", "other", "--token", "1"}).exit_code, 0);
    }
  }
};

TEST(DirSweep, AcquireThatMakesASnapshot) {
  SKIP_WITHOUT_STRACE();
  DirWorld world;
  AcquiringWithASnapshot scenario;
  sweep_with(world, scenario, "acquire, with a snapshot");
}

TEST(DirSweep, AcquireOvertakenByHundreds) {
  SKIP_WITHOUT_STRACE();
  BusyDirWorld world;
  Acquiring scenario(1);
  sweep_with(world, scenario, "acquire, overtaken");
}

TEST(DirSweep, Renew) {
  SKIP_WITHOUT_STRACE();
  DirWorld world;
  Renewing scenario;
  sweep_with(world, scenario, "renew");
}

TEST(DirSweep, Release) {
  SKIP_WITHOUT_STRACE();
  DirWorld world;
  Releasing scenario;
  sweep_with(world, scenario, "release");
}

// Decided in time, linked too late: nobody is told that it was renewed.
// EVIDENCE-OF: G3
TEST(DirLate, ARenewalThatIsLinkedAfterTheExpiryIsToldAsLost) {
  SKIP_WITHOUT_STRACE();
  Stint stint;
  stint.use_store(cat("dir:", stint.dir().file("shared")));
  ASSERT_EQ(stint({"acquire", "r", "--ttl", "2s"}).exit_code, 0);
  Command renew = stint.command({"renew", "r", "--token", "1", "--ttl", "1h"});
  const std::vector<std::string> before = {
      "strace", "-f",
      "-o",     stint.dir().file("trace"),
      "-e",     "trace=linkat,link",
      "-e",     "inject=linkat,link:delay_enter=2500000:when=1",
      "--"};
  renew.argv.insert(renew.argv.begin(), before.begin(), before.end());
  const Finished late = run(renew);
  EXPECT_EQ(late.exit_code, 12) << late.out << late.err;
  EXPECT_FALSE(stint.held("r"));
}

// A mount that loses the answer may have made the link all the same.
// EVIDENCE-OF: G11
TEST(DirLink, WithoutAnAnswerIsUnknown) {
  SKIP_WITHOUT_STRACE();
  Stint stint;
  stint.use_store(cat("dir:", stint.dir().file("shared")));
  ASSERT_EQ(stint({"acquire", "other"}).exit_code, 0);
  Command acquire = stint.command({"acquire", "r"});
  const std::vector<std::string> before = {"strace", "-f",
                                           "-o",     stint.dir().file("trace"),
                                           "-e",     "trace=linkat,link",
                                           "-e",     "inject=linkat,link:error=EIO",
                                           "--"};
  acquire.argv.insert(acquire.argv.begin(), before.begin(), before.end());
  const Finished unknown = run(acquire);
  EXPECT_EQ(unknown.exit_code, 14) << unknown.out << unknown.err;
}

}  // namespace
}  // namespace stint::test
