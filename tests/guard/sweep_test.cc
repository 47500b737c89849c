// The zombie play at every system call: A is frozen, B takes over, seals, reads and writes without
// waiting, A goes on. And kill -9 at every system call: the whole old state or the whole new one,
// the fence never goes down, the next holder goes on at once. And every call failed in turn: who is
// told that it wrote has written, who is told that nothing was changed has changed nothing.
//
// `make test` strikes a slice; STINT_SWEEP=full strikes every call.
// EVIDENCE-OF: G5
#include <fcntl.h>

#include <cstdio>

#include "guard/fence_file.h"
#include "tests/fault/lease_sweep.h"
#include "tests/guard/site_fixture.h"

namespace stint::test {
namespace {

constexpr std::uint64_t kA = 3;
constexpr std::uint64_t kB = 4;
constexpr std::size_t kSlice = 9;
constexpr std::size_t kSliceOfErrors = 5;

std::vector<std::string> struck_calls() {
  std::vector<std::string> calls = all_calls();
  for (const char* more : {"renameat2", "fchown", "fchmod", "listxattr", "flock", "symlinkat",
                           "readlink", "readlinkat", "futimens"}) {
    if (std::ranges::find(calls, more) == calls.end()) calls.emplace_back(more);
  }
  return calls;
}

// What one kind of artifact needs for the play.
class Play {
 public:
  virtual ~Play() = default;
  virtual std::vector<std::string> words() const = 0;  // what A does
  virtual void set_up() = 0;
  virtual std::string state() const = 0;  // "old", "A", "B..." or what is wrong
  virtual Result<guard::SealAnswer> seal_as_b() = 0;
  virtual Result<guard::WriteAnswer> write_as_b(const std::string& body) = 0;
  // A's step changes the artifact when it is done.
  virtual bool writes() const { return true; }

  void issue(std::uint64_t token) { fences.issue(token); }
  TempDir dir;
  IssuingFences fences;
};

class FilePlay : public Play {
 public:
  enum class Kind { First, Again, AfterAnother, Once, Seal };
  explicit FilePlay(Kind kind) : kind_(kind) {}

  std::vector<std::string> words() const override {
    std::vector<std::string> out = {GUARD_PLAYER, "write", path(), cat(kA), cat(kA), "A"};
    if (kind_ == Kind::Seal) {
      return {GUARD_PLAYER, "seal", cat("file:", path()), cat(kA), cat(kA), "-"};
    }
    if (kind_ == Kind::Once) out.emplace_back("--once");
    return out;
  }
  void set_up() override {
    fs::remove_all(dir.file("w"));
    fs::create_directory(dir.file("w"));
    write_text(path(), "old");
    if (kind_ == Kind::Again) seal(kA);
    if (kind_ == Kind::AfterAnother || kind_ == Kind::Seal) {
      seal(kA - 1);
      write_text(dir.file("w/.page.stage.2." + guard::line_of(generation_number(0), "r").hex()),
                 "dead");
    }
  }
  std::string state() const override { return read_text(path()); }
  Result<guard::SealAnswer> seal_as_b() override {
    return guard::seal_file(path(), seal_with(pass_with(kB)), &fences);
  }
  Result<guard::WriteAnswer> write_as_b(const std::string& body) override {
    return guard::write_file({.path = path(), .body = body}, pass_with(kB), &fences);
  }
  bool writes() const override { return kind_ != Kind::Seal; }

 private:
  std::string path() const { return dir.file("w/page"); }
  void seal(std::uint64_t token) {
    fences.issue(token);
    EXPECT_TRUE(done(guard::seal_file(path(), seal_with(pass_with(token)), &fences)));
  }
  Kind kind_;
};

class TreePlay : public Play {
 public:
  enum class Kind { First, Replace, Once, Seal };
  explicit TreePlay(Kind kind) : kind_(kind) {
    tree("staged", "A");
    tree("old", "old");
  }
  std::vector<std::string> words() const override {
    if (kind_ == Kind::Seal) {
      return {GUARD_PLAYER, "seal", cat("dir:", path()), cat(kA), cat(kA), "-"};
    }
    std::vector<std::string> out = {GUARD_PLAYER, "publish", path(),
                                    cat(kA),      cat(kA),   dir.file("staged")};
    if (kind_ == Kind::Once) out.emplace_back("--once");
    return out;
  }
  void set_up() override {
    fs::remove_all(dir.file("w"));
    fs::create_directory(dir.file("w"));
    if (kind_ == Kind::First) return;
    fs::copy(dir.file("old"), path(), fs::copy_options::recursive);
    fences.issue(kA - 1);
    EXPECT_TRUE(done(guard::seal_directory(path(), seal_with(pass_with(kA - 1)), &fences)));
    if (kind_ == Kind::Seal) {
      fs::copy(dir.file("old"),
               dir.file("w/.site.stage.2." + guard::line_of(generation_number(0), "r").hex()),
               fs::copy_options::recursive);
    }
  }
  std::string state() const override {
    if (!fs::exists(path())) return kind_ == Kind::First ? "old" : "gone";
    const std::string a = read_text(path() + "/a");
    return a == read_text(path() + "/sub/b") ? a : "torn";
  }
  Result<guard::SealAnswer> seal_as_b() override {
    return guard::seal_directory(path(), seal_with(pass_with(kB)), &fences);
  }
  Result<guard::WriteAnswer> write_as_b(const std::string& body) override {
    tree("bs", body);
    return guard::publish_directory({.path = path(), .staged = dir.file("bs")}, pass_with(kB),
                                    &fences);
  }
  bool writes() const override { return kind_ != Kind::Seal; }

 private:
  std::string path() const { return dir.file("w/site"); }
  void tree(std::string_view name, std::string_view text) const {
    fs::create_directories(dir.file(cat(name, "/sub")));
    write_text(dir.file(cat(name, "/a")), text);
    write_text(dir.file(cat(name, "/sub/b")), text);
  }
  Kind kind_;
};

// What B saw while A stood still (or after A's death).
struct Seen {
  std::string read;
  std::string problem;
};

Seen b_takes_over(Play& play) {
  Seen out;
  play.issue(kB);
  const MonoTime before = now();
  const auto sealed = play.seal_as_b();
  if (!done(sealed)) out.problem = cat("B could not seal: ", told(sealed));
  out.read = play.state();
  const auto written = play.write_as_b(cat("B after ", out.read));
  if (!done(written)) out.problem += cat("B could not write: ", told(written));
  // No lock is waited for: this is the time of a few syncs on a busy disk.
  if (now() - before > Millis(10'000)) out.problem += "B waited";
  return out;
}

std::string judge(const Play& play, const Strike& strike, const Seen& seen) {
  if (!seen.problem.empty()) return seen.problem;
  if (seen.read != "old" && seen.read != "A") return cat("B read ", seen.read);
  if (play.state() != cat("B after ", seen.read)) {
    return unlike(strike, cat("a stale write: there stands ", play.state()));
  }
  const auto code = strike.result.exit_code;
  if (killed(strike)) return {};
  if (code == 0 && play.writes() && seen.read != "A") {
    return unlike(strike, "A was told that it wrote, and B did not read it");
  }
  if (code == 13 && seen.read == "A") {
    return unlike(strike, "A was told that nothing was changed, and B read it");
  }
  // A leftover file of A after B's seal can only be one that A has yet to notice.
  for (const std::string& name : kept_in(play.dir.file("w"), ".fence.")) {
    if (name.find(cat(".fence.", kB)) == name.npos && code != 13) {
      return unlike(strike, cat("a lower fence stands: ", name));
    }
  }
  if (code != 0 && code != 13) return unlike(strike, "an answer of another kind");
  return {};
}

// A dead A: what it left must not be in anybody's way.
std::string judge_death(Play& play, const Strike& strike) {
  const std::string left = play.state();
  if (left != "old" && left != "A") return unlike(strike, cat("half-way: ", left));
  const auto highest_before = kept_in(play.dir.file("w"), ".fence.");
  const Seen seen = b_takes_over(play);
  if (!seen.problem.empty()) return seen.problem;
  if (seen.read != left) return cat("it changed after A's death: ", seen.read);
  if (play.state() != cat("B after ", left)) return cat("there stands ", play.state());
  const auto kept = kept_in(play.dir.file("w"));
  if (kept.size() != 1) return cat("B's seal left ", kept.size(), " files, one is ", kept.front());
  return {};
}

// A call that failed: what A was told is true, and nobody is in the next one's way.
std::string judge_error(Play& play, const Strike& strike) {
  const std::string left = play.state();
  const auto code = strike.result.exit_code;
  const bool told = code == 0 || code == 14 || code == 69;
  if (!told) return unlike(strike, "an answer of another kind");
  if (code == 0 && play.writes() && left != "A") return unlike(strike, "told that it wrote");
  if (code == 69 && left != "old") return unlike(strike, cat("told that it did not: ", left));
  return judge_death(play, strike);
}

void sweep_play(Play& play, const std::string& name) {
  SKIP_WITHOUT_STRACE();
  SweepPlan plan{.command = {.argv = play.words()}, .from = play.dir.path()};
  plan.syscalls = struck_calls();
  plan.most_points = full_sweep() ? 0 : kSlice;
  Seen seen;
  plan.prepare = [&] {
    play.set_up();
    seen = {};
  };
  const auto run_with = [&](std::vector<Blow> blows) {
    plan.blows = std::move(blows);
    const auto report = sweep(plan);
    ASSERT_TRUE(report) << report.error().message;
    std::cout << name << '\n' << report->text();
    for (const std::string& failure : report->failures) ADD_FAILURE() << failure;
    EXPECT_LE(report->missed.size() * 10, static_cast<std::size_t>(report->runs));
  };
  plan.while_stopped = [&](const Strike&) { seen = b_takes_over(play); };
  plan.check = [&](const Strike& strike) {
    return strike.struck ? judge(play, strike, seen) : std::string();
  };
  run_with({Blow::Stop});
  plan.check = [&](const Strike& strike) {
    return strike.struck ? judge_death(play, strike) : std::string();
  };
  run_with({Blow::Kill});
  plan.syscalls = failing_calls();
  plan.syscalls.insert(plan.syscalls.end(), {"renameat2", "fchmod", "symlinkat"});
  plan.most_points = full_sweep() ? 0 : kSliceOfErrors;
  plan.check = [&](const Strike& strike) {
    return strike.struck ? judge_error(play, strike) : std::string();
  };
  run_with({Blow::Eio, Blow::Enospc});
}

TEST(GuardSweep, FirstWrite) {
  FilePlay play(FilePlay::Kind::First);
  sweep_play(play, "the first write");
}
TEST(GuardSweep, WriteWithItsFenceStanding) {
  FilePlay play(FilePlay::Kind::Again);
  sweep_play(play, "a write");
}
TEST(GuardSweep, WriteAfterAnother) {
  FilePlay play(FilePlay::Kind::AfterAnother);
  sweep_play(play, "a write after another's");
}
TEST(GuardSweep, WriteOnce) {
  FilePlay play(FilePlay::Kind::Once);
  sweep_play(play, "a write once");
}
TEST(GuardSweep, SealOfAFile) {
  FilePlay play(FilePlay::Kind::Seal);
  sweep_play(play, "a seal");
}
TEST(GuardSweep, FirstPublish) {
  TreePlay play(TreePlay::Kind::First);
  sweep_play(play, "the first publish");
}
TEST(GuardSweep, Publish) {
  TreePlay play(TreePlay::Kind::Replace);
  sweep_play(play, "a publish");
}
TEST(GuardSweep, PublishOnce) {
  TreePlay play(TreePlay::Kind::Once);
  sweep_play(play, "a publish once");
}
TEST(GuardSweep, SealOfADirectory) {
  TreePlay play(TreePlay::Kind::Seal);
  sweep_play(play, "a directory's seal");
}

// The sealer stands still while it removes the tree that a zombie has staged, and the zombie goes
// on with its last step: it publishes the whole of it or nothing.
TEST(GuardSweep, AZombieWhoseTreeIsBeingRemovedPublishesAllOfItOrNothing) {
  SKIP_WITHOUT_STRACE();
  TreePlay play(TreePlay::Kind::Seal);
  const std::string site = play.dir.file("w/site");
  const std::string stage =
      play.dir.file("w/.site.stage.2." + guard::line_of(generation_number(0), "r").hex());
  int landed = 0;
  SweepPlan plan{.command = {.argv = play.words()}, .from = play.dir.path()};
  plan.syscalls = {"unlink", "unlinkat", "rename", "renameat", "renameat2", "getdents64", "fsync"};
  plan.blows = {Blow::Stop};
  plan.prepare = [&] { play.set_up(); };
  plan.while_stopped = [&](const Strike&) {
    const int number =
        ::renameat2(AT_FDCWD, stage.c_str(), AT_FDCWD, site.c_str(), RENAME_EXCHANGE);
    landed += number == 0 ? 1 : 0;
  };
  // Both trees say the same: a part of one does not.
  plan.check = [&](const Strike& strike) {
    if (play.state() != "old") return unlike(strike, cat("there stands ", play.state()));
    return strike.result.exit_code == 0 ? std::string() : unlike(strike, "not sealed");
  };
  const auto report = sweep(plan);
  ASSERT_TRUE(report) << report.error().message;
  std::cout << "a zombie goes on while its tree is removed\n" << report->text();
  for (const std::string& failure : report->failures) ADD_FAILURE() << failure;
  EXPECT_GT(landed, 0);
  EXPECT_LT(landed, report->runs);
}

// A repeat after a death at any call finishes the one write, and makes no second.
TEST(GuardSweep, ARepeatFinishesTheOneWrite) {
  SKIP_WITHOUT_STRACE();
  for (const bool tree : {false, true}) {
    FilePlay file(FilePlay::Kind::Once);
    TreePlay directory(TreePlay::Kind::Once);
    Play& play = tree ? static_cast<Play&>(directory) : file;
    play.set_up();
    play.issue(kA);
    SweepPlan plan{.command = {.argv = play.words()}, .from = play.dir.path()};
    plan.syscalls = struck_calls();
    plan.blows = {Blow::Kill};
    plan.most_points = full_sweep() ? 0 : kSlice;
    plan.prepare = [&] { play.set_up(); };
    plan.check = [&](const Strike& strike) -> std::string {
      const Finished again = run({.argv = play.words()});
      if (again.exit_code != 0) return cat("the repeat failed: ", again.err);
      if (play.state() != "A") return unlike(strike, cat("there stands ", play.state()));
      return {};
    };
    const auto report = sweep(plan);
    ASSERT_TRUE(report) << report.error().message;
    std::cout << (tree ? "publish" : "write") << " once, repeated: " << report->runs << " runs\n";
    for (const std::string& failure : report->failures) ADD_FAILURE() << failure;
  }
}

}  // namespace
}  // namespace stint::test
