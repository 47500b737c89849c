// Every system call of acquire, renew and release, struck in turn: killed, stopped, failed. Nothing
// that was told outward may turn out untrue. What the sweeps of the stores share.
//
// The slice of `make test` strikes a few points of each kind; STINT_SWEEP=full strikes them all.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>

#include "base/text.h"
#include "tests/cli/stint.h"
#include "tests/support/sweeper.h"

namespace stint::test {

constexpr std::size_t kSliceOfKills = 10;
constexpr std::size_t kSliceOfFailures = 8;
constexpr std::uint64_t kHourMs = 3'600'000;

inline bool full_sweep() {
  const char* how = std::getenv("STINT_SWEEP");
  return how != nullptr && std::string_view(how) == "full";
}

// Also those that only look: dying there must be harmless too.
inline std::vector<std::string> all_calls() {
  std::vector<std::string> calls = default_syscalls();
  for (const char* more :
       {"newfstatat", "statx", "getdents64", "access", "statfs", "readlink", "utimensat", "fchown",
        "mmap", "munmap", "getrandom", "geteuid", "brk", "lseek"}) {
    calls.emplace_back(more);
  }
  return calls;
}

inline std::vector<std::string> failing_calls() {
  std::vector<std::string> calls = default_syscalls();
  for (const char* more :
       {"newfstatat", "statx", "getdents64", "access", "statfs", "utimensat", "fchown"}) {
    calls.emplace_back(more);
  }
  return calls;
}

// A world that is put back before every strike, and everything that anybody was told in it.
class World {
 public:
  virtual ~World() = default;

  // Keeps the present state as the one to go back to.
  void keep() { copy(state(), stint_.dir().file("kept")); }
  void put_back() {
    copy(stint_.dir().file("kept"), state());
    rival_.reset();
  }

  // While the struck one stands still, another asks for the same.
  virtual void let_a_rival_try() {
    rival_ = stint_({"acquire", "r", "--ttl", "1h", "--store", cat(store(), "?timeout=100ms")});
  }
  const std::optional<Finished>& rival() const { return rival_; }
  std::optional<std::uint64_t> rival_token() const {
    return rival_ && rival_->exit_code == 0 ? parse_digits(trim(rival_->out)) : std::nullopt;
  }

  const Stint& stint() const { return stint_; }
  std::string state() const { return stint_.dir().file("state"); }

  virtual std::string store() const = 0;
  // What is wrong with the store itself; empty: sound.
  virtual std::string damage() const = 0;

 protected:
  virtual void copy(const std::string& from, const std::string& to) {
    std::filesystem::remove_all(to);
    if (std::filesystem::exists(from)) {
      std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
    }
  }
  Stint stint_;
  std::optional<Finished> rival_;
};

struct Seen {
  bool held = false;
  std::uint64_t token = 0;
  std::uint64_t remaining_ms = 0;
};

// A fresh process's view of r, without the struck one's.
inline Seen look(const World& world) {
  const Finished shown = world.stint()({"show", "r", "--json"});
  const auto number = [&](const char* field) {
    return parse_digits(json_field(shown.out, field)).value_or(0);
  };
  return {json_field(shown.out, "held") == "true", number("token"), number("remaining_ms")};
}

inline bool killed(const Strike& strike) { return strike.result.signal == SIGKILL; }

inline std::string code_of(const Strike& strike) {
  return killed(strike) ? "killed" : cat("exit ", strike.result.exit_code.value_or(-1));
}

inline std::string unlike(const Strike& strike, std::string_view what) {
  return cat(what, " (", code_of(strike), ", said: ", strike.result.out, strike.result.err, ")");
}

// One scenario: how the world stands before, what is struck, what must be true after.
class Scenario {
 public:
  virtual ~Scenario() = default;
  virtual void set_up(World& world) = 0;
  virtual std::vector<std::string> words() const = 0;
  // What is wrong with the answer, seen from what a fresh process finds.
  virtual std::string judge(const Strike& strike, const World& world, const Seen& seen) const = 0;
};

// After the look: an operator shuts out whoever holds it, and a grant follows that is above all.
inline std::string next_grant_is_above(const World& world, const Seen& seen,
                                       std::uint64_t highest) {
  if (seen.token > 0) {
    const Finished shut =
        world.stint()({"revoke", "r", "--token", cat(seen.token), "--why", "sweep"});
    if (shut.exit_code != 0) return cat("the store is no longer usable: ", shut.err);
  }
  const Finished next = world.stint()({"acquire", "r"});
  if (next.exit_code != 0) return cat("no grant afterwards: ", next.err);
  const auto token = parse_digits(trim(next.out));
  if (!token || *token <= std::max(highest, seen.token)) {
    return cat("token ", trim(next.out), " was issued after ", std::max(highest, seen.token));
  }
  return world.damage();
}

inline bool is_code(const Strike& strike, std::initializer_list<int> codes) {
  if (killed(strike)) return strike.blow == Blow::Kill;
  for (const int code : codes) {
    if (strike.result.exit_code == code) return true;
  }
  return false;
}

// The result was made, but could not be written out.
inline bool mute(const Strike& strike) {
  return strike.result.exit_code == 1 && strike.line.starts_with("write(1,");
}

class Acquiring : public Scenario {
 public:
  explicit Acquiring(std::uint64_t before) : before_(before) {}
  void set_up(World& world) override {
    for (std::uint64_t i = 0; i < before_; ++i) {
      EXPECT_EQ(world.stint()({"run", "r", "--", "true"}).exit_code, 0);
    }
  }
  std::vector<std::string> words() const override { return {"acquire", "r", "--ttl", "1h"}; }

  std::string judge(const Strike& strike, const World& world, const Seen& seen) const override {
    if (mute(strike)) return seen.held ? "" : unlike(strike, "nothing was acquired");
    if (!is_code(strike, {0, 11, 14, 69})) return unlike(strike, "an answer of another kind");
    if (seen.token > before_ + 1) return unlike(strike, cat("two grants: token ", seen.token));
    const auto rival = world.rival_token();
    // Its patience is short: it may not have learnt what it got.
    const bool unsure = world.rival() && world.rival()->exit_code == 14;
    if (strike.result.exit_code == 0) {
      const auto token = parse_digits(trim(strike.result.out));
      if (!token || rival) return unlike(strike, rival ? "two winners" : "no token");
      if (!seen.held || seen.token != *token)
        return unlike(strike, "an acknowledged grant is lost");
    }
    if (rival && (!seen.held || seen.token != *rival)) return "the rival's grant is lost";
    if (strike.result.exit_code == 11 && !rival && !unsure) {
      return unlike(strike, cat("refused by nobody; the rival was told: ",
                                world.rival() ? world.rival()->err : "nothing"));
    }
    const bool own_grant = seen.held && !rival && !unsure;
    if (strike.result.exit_code == 69 && own_grant) {
      return unlike(strike, "it holds the lease, and says that it failed: that is 14");
    }
    return {};
  }

 protected:
  std::uint64_t before_;
};

class Holding : public Scenario {
 public:
  static bool allowed(const Strike& strike) { return is_code(strike, {0, 14, 69}); }

  void set_up(World& world) override {
    EXPECT_EQ(world.stint()({"run", "r", "--", "true"}).exit_code, 0);
    EXPECT_EQ(world.stint()({"acquire", "r", "--ttl", "1h"}).out, "2\n");
  }
};

class Renewing : public Holding {
 public:
  std::vector<std::string> words() const override {
    return {"renew", "r", "--token", "2", "--ttl", "3h"};
  }
  std::string judge(const Strike& strike, const World& world, const Seen& seen) const override {
    if (!allowed(strike)) return unlike(strike, "an answer of another kind");
    if (world.rival_token()) return "a held lease was granted to another";
    if (!seen.held || seen.token != 2) return unlike(strike, "an acknowledged grant is lost");
    if (seen.remaining_ms < kHourMs / 2) return unlike(strike, "a renewal shortened the lease");
    const bool prolonged = seen.remaining_ms > 2 * kHourMs;
    if (strike.result.exit_code == 0 && !prolonged) return unlike(strike, "not renewed");
    if (strike.result.exit_code == 69 && prolonged) return unlike(strike, "renewed: that is 14");
    return {};
  }
};

class Releasing : public Holding {
 public:
  std::vector<std::string> words() const override { return {"release", "r", "--token", "2"}; }
  std::string judge(const Strike& strike, const World& world, const Seen& seen) const override {
    if (!allowed(strike)) return unlike(strike, "an answer of another kind");
    const auto rival = world.rival_token();
    if (rival) {
      return seen.held && seen.token == *rival ? "" : "the rival's grant is lost";
    }
    if (seen.token != 2) return cat("token ", seen.token, " came from nowhere");
    if (strike.result.exit_code == 0 && seen.held) return unlike(strike, "it is still held");
    if (strike.result.exit_code == 69 && !seen.held) return unlike(strike, "released: that is 14");
    return {};
  }
};

inline std::string check(const Scenario& scenario, const Strike& strike, const World& world) {
  const Seen seen = look(world);
  std::string problem = scenario.judge(strike, world, seen);
  if (!problem.empty()) return problem;
  const std::uint64_t printed = parse_digits(trim(strike.result.out)).value_or(0);
  return next_grant_is_above(world, seen, std::max(printed, world.rival_token().value_or(0)));
}

inline void sweep_with(World& world, Scenario& scenario, const std::string& name) {
  scenario.set_up(world);
  world.keep();
  SweepPlan plan{.command = world.stint().command(scenario.words()), .from = world.state()};
  plan.prepare = [&] { world.put_back(); };
  plan.while_stopped = [&](const Strike&) { world.let_a_rival_try(); };
  plan.check = [&](const Strike& strike) { return check(scenario, strike, world); };
  const auto strike_all = [&](std::vector<std::string> calls, std::vector<Blow> blows,
                              std::size_t slice) {
    plan.syscalls = std::move(calls);
    plan.blows = std::move(blows);
    plan.most_points = full_sweep() ? 0 : slice;
    const auto report = sweep(plan);
    ASSERT_TRUE(report) << report.error().message;
    std::cout << name << '\n' << report->text();
    EXPECT_TRUE(report->failures.empty()) << report->failures.size() << " blows were not survived";
    EXPECT_LE(report->missed.size() * 10, static_cast<std::size_t>(report->runs));
  };
  strike_all(all_calls(), {Blow::Kill, Blow::Stop}, kSliceOfKills);
  strike_all(failing_calls(), {Blow::Eio, Blow::Enospc}, kSliceOfFailures);
}

#define SKIP_WITHOUT_STRACE() \
  if (find_program("strace").empty()) GTEST_SKIP() << "strace is not installed"

}  // namespace stint::test
