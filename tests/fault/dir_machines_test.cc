// A shared directory that two machines write to, as two mount namespaces, while its writers are
// frozen at random.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "os/random.h"
#include "service/lease_service.h"
#include "store/dir/dir_store.h"
#include "tests/support/history_checker.h"
#include "tests/support/mounts.h"
#include "tests/support/process.h"

namespace stint::test {
namespace {

namespace fs = std::filesystem;
using store::DirStore;
using store::Step;

const os::SystemClock kMachineClock;
constexpr int kWriters = 6;
constexpr int kIncrements = 40;
constexpr int kGrants = 12;

bool count_up(store::Store& store) {
  while (true) {
    auto reading = store.read({"counter"});
    if (!reading) return false;
    const store::Entry& entry = reading->entries.front();
    const auto number = entry.present() ? parse_digits(entry.value).value_or(0) : 0;
    Step step;
    step.kind = Step::Kind::Set;
    step.key = "counter";
    step.value = cat(number + 1);
    step.expect = entry.present() ? store::Expect::Seen : store::Expect::Absent;
    step.version = entry.version;
    Step line;
    line.kind = Step::Kind::Append;
    line.key = "log/";
    line.value = "x";
    auto answer = store.commit({step, line}, store::Sync::Durable);
    if (!answer) return false;
    if (std::holds_alternative<store::Committed>(*answer)) return true;
  }
}

// Takes and gives back two leases; everything is recorded.
bool take_turns(store::Store& store, const std::string& history_file, int number) {
  os::SystemRandom random;
  service::Ledger ledger(store, kMachineClock, 1000);
  auto life = service::begin_life(store, random, kMachineClock.wall(), nullptr, {});
  if (!life) return false;
  service::LeaseService service(store, ledger, *life, kMachineClock, random, nullptr);
  History history(history_file);
  RecordedLeases leases(service, history, cat("p", number), kMachineClock);
  SeededRandom chance(static_cast<std::uint64_t>(number));
  const auto owner = Owner::parse(cat("p", number)).value();
  for (int grants = 0; grants < kGrants;) {
    const auto resource = ResourceName::parse(cat("r", chance.below(2))).value();
    const Claim claim = Claim::make(random);
    auto answer = leases.acquire({.resource = resource,
                                  .owner = owner,
                                  .claim = claim,
                                  .terms = {.ttl = Millis(150)},
                                  .note = {},
                                  .retake = {},
                                  .count_refusal = false});
    if (!answer) return false;
    const auto* granted = std::get_if<api::Granted>(&*answer);
    if (granted == nullptr) {
      os::pause_for(Millis(5));
      continue;
    }
    ++grants;
    const api::Grip grip{resource, granted->lease.token, claim, owner, granted->hint};
    for (std::uint64_t left = chance.below(3); left > 0; --left) {
      os::pause_for(Millis(chance.below(60)));
      if (!leases.renew(grip, Millis(150))) return false;
    }
    if (chance.below(3) != 0 && !leases.release(grip)) return false;
  }
  return true;
}

int in_a_namespace(const std::string& store, const std::string& mounted, const std::string& history,
                   int number) {
  if (!Mount::missing().empty()) return 77;
  const Mount bind({.source = store, .target = mounted});
  if (!bind.ok()) return 77;
  store::DirOptions options;
  options.path = mounted + "/s";
  options.snapshot_every = 16;
  options.timeout = Millis(60'000);
  auto opened = DirStore::open(options, kMachineClock);
  if (!opened) return 1;
  for (int i = 0; i < kIncrements; ++i) {
    if (!count_up(**opened)) return 2;
  }
  return take_turns(**opened, history, number) ? 0 : 3;
}

// EVIDENCE-OF: G1 G2 G3
TEST(DirMachines, WritersInTwoMountNamespacesFrozenAtRandomLoseNothing) {
  const TempDir dir;
  const std::string history = dir.file("history.jsonl");
  fs::create_directory(dir.file("shared"));
  for (const char* mounted : {"here", "there"}) fs::create_directory(dir.file(mounted));
  std::vector<pid_t> writers;
  for (int i = 0; i < kWriters; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::_exit(
          in_a_namespace(dir.file("shared"), dir.file(i % 2 == 0 ? "here" : "there"), history, i));
    }
    writers.push_back(child);
  }
  SeededRandom chance(7);
  int freezes = 0;
  std::vector<int> codes(kWriters, -1);
  const MonoTime deadline = now() + std::chrono::seconds(60);
  while (std::ranges::count(codes, -1) > 0 && now() < deadline) {
    const auto victim = chance.below(kWriters);
    if (codes[victim] == -1 && ::kill(writers[victim], SIGSTOP) == 0) ++freezes;
    os::pause_for(Millis(1 + chance.below(250)));
    for (std::size_t i = 0; i < writers.size(); ++i) {
      ::kill(writers[i], SIGCONT);
      int status = 0;
      if (codes[i] == -1 && ::waitpid(writers[i], &status, WNOHANG) == writers[i]) {
        codes[i] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
    }
  }
  for (std::size_t i = 0; i < writers.size(); ++i) {
    if (codes[i] != -1) continue;
    ::kill(writers[i], SIGKILL);
    ::waitpid(writers[i], nullptr, 0);
  }
  if (codes == std::vector<int>(kWriters, 77)) GTEST_SKIP() << "no mount namespace here";
  EXPECT_EQ(codes, std::vector<int>(kWriters, 0));
  store::DirOptions plain;
  plain.path = dir.file("shared/s");
  auto store = DirStore::open(plain, kMachineClock);
  ASSERT_TRUE(store) << store.error().message;
  const auto counter = (*store)->read({"counter"});
  ASSERT_TRUE(counter) << counter.error().message;
  EXPECT_EQ(counter->entries.front().value, cat(kWriters * kIncrements));
  EXPECT_EQ((*store)->appended("log/").value(), static_cast<std::uint64_t>(kWriters * kIncrements));
  auto recorded = load_history(history);
  ASSERT_TRUE(recorded);
  const HistoryReport report =
      check_history(*recorded, {.fires_late_by = (*store)->capabilities().step});
  std::cout << freezes << " freezes\n" << report.text() << '\n';
  EXPECT_TRUE(report.violations.empty()) << report.text();
  EXPECT_GT(report.operations, 100U);
}

}  // namespace
}  // namespace stint::test
