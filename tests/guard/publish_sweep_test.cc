// A publish that is stopped, or dies, at every system call, while others seal and write inside the
// tree; and who seals or writes inside, stopped at every call while the tree is exchanged.
//
// `make test` strikes a slice; STINT_SWEEP=full strikes every call.
// EVIDENCE-OF: G5
#include "tests/fault/lease_sweep.h"
#include "tests/guard/site_fixture.h"

namespace stint::test {
namespace {

constexpr std::uint64_t kLate = 2;       // has written inside before
constexpr std::uint64_t kPublisher = 3;  // who is struck
constexpr std::uint64_t kInsider = 4;    // who seals inside meanwhile
constexpr std::size_t kPublishSlice = 12;

std::vector<std::string> calls_of_publish() {
  std::vector<std::string> calls = all_calls();
  for (const char* more : {"renameat2", "fchown", "fchmod", "listxattr", "futimens", "statx",
                           "mkdirat", "symlinkat", "unlinkat", "getdents64"}) {
    if (std::ranges::find(calls, more) == calls.end()) calls.emplace_back(more);
  }
  return calls;
}

// A tree with guarded files in it, and another to take its place: a copy of what it was once.
class Trees {
 public:
  void set_up() {
    fs::remove_all(dir.file("w"));
    fences.issue(kLate);
    fences.targets.clear();
    fences.sealing.clear();
    for (const char* tree : {"w/site", "w/out"}) {
      fs::create_directories(dir.file(cat(tree, "/sub/deep")));
      for (const char* name : {"a", "sub/deep/b"}) write_text(file(tree, name), tree);
    }
    fs::create_directories(dir.file("w/site/gone"));
    for (const char* name : {"a", "sub/deep/b", "gone/c"}) {
      EXPECT_TRUE(done(write(name, kLate)));
    }
    for (const char* name : {".a.fence.1", "sub/deep/.b.fence.1"}) {
      write_text(file("w/out", name), "a fence of the copy");
    }
    fences.issue(kPublisher);
    EXPECT_TRUE(done(guard::seal_directory(site(), seal_with(pass_with(kPublisher)), &fences)));
  }
  Result<guard::WriteAnswer> write(const std::string& name, std::uint64_t token) {
    return guard::write_file({.path = file("w/site", name), .body = cat("by ", token)},
                             pass_with(token), &fences);
  }
  Result<guard::SealAnswer> seal(const std::string& name, std::uint64_t token) {
    return guard::seal_file(file("w/site", name), seal_with(pass_with(token)), &fences);
  }
  Result<guard::WriteAnswer> publish(std::uint64_t token) {
    return guard::publish_directory({.path = site(), .staged = dir.file("w/out")}, pass_with(token),
                                    &fences);
  }
  std::string file(std::string_view tree, std::string_view name) const {
    return dir.file(cat(tree, '/', name));
  }
  std::string site() const { return dir.file("w/site"); }
  std::string here(std::string_view name) const { return read_text(file("w/site", name)); }
  // Late writes are refused, and by the fence: the store is not asked.
  std::string late_ones_land(std::initializer_list<const char*> names) {
    fences.reachable = false;
    std::string out;
    for (const char* name : names) {
      for (const std::uint64_t token : {kLate, kPublisher}) {
        const auto answer = write(name, token);
        if (verdict_of(answer) != core::Verdict::Stale) {
          out += cat(name, " with token ", token, ": ", told(answer), "; ");
        }
      }
    }
    fences.reachable = true;
    return out;
  }

  TempDir dir;
  IssuingFences fences;
};

constexpr std::initializer_list<const char*> kInside = {"a", "sub/deep/b", "gone/c"};

// B takes over inside, and nothing older lands from then on.
std::string b_seals_inside(Trees& trees) {
  std::string out;
  trees.fences.issue(kInsider);
  for (const char* name : kInside) {
    const auto sealed = trees.seal(name, kInsider);
    if (!done(sealed)) out += cat("B could not seal ", name, ": ", told(sealed), "; ");
    const std::string before = trees.here(name);
    for (const std::uint64_t token : {kLate, kPublisher}) {
      const auto late = trees.write(name, token);
      if (verdict_of(late) != core::Verdict::Stale) out += cat(name, ": late: ", told(late), "; ");
    }
    if (trees.here(name) != before) out += cat("a stale write landed in ", name, "; ");
  }
  const auto written = trees.write("a", kInsider);
  if (!done(written)) out += cat("B could not write: ", told(written), "; ");
  return out;
}

std::string b_goes_on(Trees& trees) {
  std::string out = trees.late_ones_land(kInside);
  for (const char* name : kInside) {
    const auto written = trees.write(name, kInsider);
    if (!done(written)) out += cat("B cannot go on with ", name, ": ", told(written), "; ");
  }
  for (const auto& entry : fs::recursive_directory_iterator(trees.site())) {
    const std::string name = entry.path().filename();
    if (name.find(".stage.") != name.npos || name.ends_with(".fence.1"))
      out += cat(name, " is in; ");
  }
  return out;
}

SweepPlan plan_of(const Trees& trees, std::vector<std::string> words) {
  SweepPlan plan{.command = {.argv = std::move(words)}, .from = trees.dir.path()};
  plan.syscalls = calls_of_publish();
  plan.most_points = full_sweep() ? 0 : kPublishSlice;
  return plan;
}

void strike(const SweepPlan& plan, std::string_view name) {
  const auto report = sweep(plan);
  ASSERT_TRUE(report) << report.error().message;
  std::cout << name << '\n' << report->text();
  for (const std::string& failure : report->failures) ADD_FAILURE() << failure;
  EXPECT_LE(report->missed.size() * 10, static_cast<std::size_t>(report->runs));
}

TEST(PublishSweep, FencesThatASealRaisesMeanwhileStandAfterwards) {
  SKIP_WITHOUT_STRACE();
  Trees trees;
  SweepPlan plan = plan_of(trees, {GUARD_PLAYER, "publish", trees.site(), cat(kPublisher),
                                   cat(kPublisher), trees.dir.file("w/out")});
  plan.prepare = [&] { trees.set_up(); };
  std::string problem;
  plan.blows = {Blow::Stop};
  plan.while_stopped = [&](const Strike&) { problem = b_seals_inside(trees); };
  plan.check = [&](const Strike& strike) {
    if (!strike.struck) return std::string();
    if (!problem.empty()) return problem;
    if (strike.result.exit_code != 0) return unlike(strike, "it did not publish");
    if (trees.here("sub/deep/b") != "w/out") return unlike(strike, "it is not published");
    return b_goes_on(trees);
  };
  strike(plan, "a publish, and a seal inside");
  // Dead: what was sealed inside before stands, and the next holder of the directory goes on.
  plan.blows = {Blow::Kill};
  plan.while_stopped = nullptr;
  plan.check = [&](const Strike& strike) {
    if (!strike.struck) return std::string();
    std::string out = b_seals_inside(trees);
    const auto sealed =
        guard::seal_directory(trees.site(), seal_with(pass_with(kInsider)), &trees.fences);
    if (!done(sealed)) out += cat("B could not seal the directory: ", told(sealed));
    out += b_goes_on(trees);
    const auto published = trees.publish(kInsider);
    if (!done(published)) out += cat("B could not publish: ", told(published));
    const auto kept = kept_in(trees.dir.file("w"));
    if (kept.size() != 1) out += cat(kept.size(), " files are left, one is ", kept.front());
    return out + b_goes_on(trees);
  };
  strike(plan, "a publish that dies");
}

// Who has sealed has sealed what stands there, whichever tree that is.
TEST(PublishSweep, ASealInsideCountsInTheTreeThatStands) {
  SKIP_WITHOUT_STRACE();
  Trees trees;
  SweepPlan plan = plan_of(trees, {GUARD_PLAYER, "seal", cat("file:", trees.file("w/site", "a")),
                                   cat(kInsider), cat(kInsider), "-"});
  plan.prepare = [&] { trees.set_up(); };
  plan.blows = {Blow::Stop};
  std::string problem;
  plan.while_stopped = [&](const Strike&) {
    const auto published = trees.publish(kPublisher);
    problem = done(published) ? std::string() : told(published);
  };
  plan.check = [&](const Strike& strike) {
    if (!strike.struck) return std::string();
    if (!problem.empty()) return problem;
    if (strike.result.exit_code != 0) return unlike(strike, "it did not seal");
    trees.fences.issue(kInsider);
    return trees.late_ones_land({"a"});
  };
  strike(plan, "a seal inside, and a publish");
}

// Who is told that it wrote has written into what stands there, or the publish came after it.
TEST(PublishSweep, AWriteInsideIsToldTruly) {
  SKIP_WITHOUT_STRACE();
  Trees trees;
  SweepPlan plan = plan_of(trees, {GUARD_PLAYER, "write", trees.file("w/site", "a"),
                                   cat(kPublisher), cat(kPublisher), "by A"});
  plan.prepare = [&] {
    trees.set_up();
    EXPECT_TRUE(done(trees.seal("a", kPublisher)));
  };
  plan.blows = {Blow::Stop};
  std::string before;
  std::string problem;
  plan.while_stopped = [&](const Strike&) {
    before = trees.here("a");
    const auto published = trees.publish(kPublisher);
    problem = done(published) ? std::string() : told(published);
  };
  plan.check = [&](const Strike& strike) {
    if (!strike.struck) return std::string();
    if (!problem.empty()) return problem;
    const auto code = strike.result.exit_code;
    const std::string now = trees.here("a");
    if (code == 0 && now != "by A" && before != "by A") return unlike(strike, "nothing is written");
    if (code == 69 && now != "w/out") return unlike(strike, cat("there stands ", now));
    if (code != 0 && code != 69) return unlike(strike, "an answer of another kind");
    return std::string();
  };
  strike(plan, "a write inside, and a publish");
}

}  // namespace
}  // namespace stint::test
