#include "tests/sim/sim_plan.h"

#include <algorithm>
#include <sstream>

#include "base/random.h"
#include "base/text.h"

namespace stint::test {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// So that a plan and the run that follows it draw different numbers.
constexpr std::uint64_t kPlanSalt = 0x5bd1e9955bd1e995U;

struct FaultKind {
  std::string_view what;
  std::vector<std::string_view> whom;
  Millis longest;
  std::int64_t most = 0;  // of the amount
  unsigned weight = 1;
  bool everything = false;  // only where queue and scheduler play
  bool proxies = false;     // only where proxies play
};

const std::vector<std::string_view> kHosts = {"h0", "h1", "h2"};
const std::vector<std::string_view> kWorkers = {"w0",       "w1",       "w2",
                                                "w0/child", "w1/child", "w2/child"};
const std::vector<std::string_view> kProcesses = {"w0", "w1", "w2", "q0", "q1", "o0", "o1"};
const std::vector<std::string_view> kProxies = {"x0", "x1"};
const std::vector<std::string_view> kResources = {"r0", "r1"};
const std::vector<std::string_view> kOwners = {"r0 w0", "r0 w1", "r0 w2", "r1 w0", "r1 w2"};

const std::vector<FaultKind>& kinds() {
  static const std::vector<FaultKind> all = {
      {"pause", kProcesses, minutes(3), 0, 6},
      {"freeze", kHosts, minutes(3), 0, 4},
      {"vm_pause", kHosts, minutes(3), 0, 3},
      {"crash", kProcesses, minutes(2), 0, 6},
      {"host_crash", kHosts, minutes(2), 0, 2},
      {"cut_off", kProcesses, minutes(2), 0, 5},
      {"store_away", {"store"}, minutes(2), 0, 2},
      {"bad_network", {"store"}, minutes(5), 0, 3},
      {"step_wall", kHosts, Millis(0), 3'600'000, 2},
      {"drift", kHosts, Millis(0), 400, 2},
      {"disk_trouble", {"disk"}, minutes(3), 60, 4},
      {"power_cut", {"disk"}, minutes(1), 0, 3},
      {"transfer", kOwners, seconds(60), 0, 5},
      {"revoke", kResources, Millis(0), 0, 5},
      {"forget", kResources, Millis(0), 0, 1},
      {"queue_park", {"jobs"}, Millis(0), 0, 1, true},
      {"queue_requeue", {"jobs"}, Millis(0), 0, 2, true},
      {"queue_reassign", {"jobs"}, Millis(0), 0, 2, true},
      {"queue_cancel", {"jobs"}, Millis(0), 0, 1, true},
      {"job_pause", {"often"}, minutes(10), 0, 1, true},
      {"job_trigger", {"often", "hourly"}, Millis(0), 0, 2, true},
      {"pause", kProxies, minutes(3), 0, 5, false, true},
      {"crash", kProxies, minutes(1), 0, 5, false, true},
      {"cut_off", kProxies, minutes(2), 0, 3, false, true},
      {"terminate", kProxies, Millis(0), 0, 4, false, true},
  };
  return all;
}

template <typename T>
const T& one_of(Random& random, const std::vector<T>& all) {
  return all[random.below(all.size())];
}

Nanos up_to(Random& random, Nanos most) {
  if (most <= Nanos(0)) return Nanos(0);
  // Short and long ones alike: half of them below an eighth.
  const auto ns = static_cast<std::uint64_t>(most.count());
  const std::uint64_t bound = random.below(2) == 0 ? ns / 8 : ns;
  return Nanos(1'000'000 + random.below(bound));
}

SimFault draw(Random& random, const SimPlan& plan) {
  std::vector<const FaultKind*> bag;
  for (const FaultKind& kind : kinds()) {
    if (kind.everything && plan.scene != SimScene::Everything) continue;
    if (kind.proxies && !plan.has(SimKind::Text)) continue;
    for (unsigned i = 0; i < kind.weight; ++i) bag.push_back(&kind);
  }
  const FaultKind& kind = *one_of(random, bag);
  SimFault out;
  out.what = kind.what;
  out.whom = one_of(random, kind.whom);
  out.length = up_to(random, kind.longest);
  if (kind.most > 0) {
    out.amount = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(kind.most) + 1));
    if (kind.what != "disk_trouble" && random.below(2) == 0) out.amount = -out.amount;
  }
  out.at = Nanos(random.below(static_cast<std::uint64_t>(plan.length.count())));
  // At a bad moment: between a commit and its answer.
  if (random.below(3) == 0) {
    out.commit = 1 + random.below(600);
    if ((out.what == "pause" || out.what == "crash") && random.below(2) == 0) out.whom = "who";
  }
  return out;
}

// The store loses the end, or goes back to a backup; then an operator says that it is to be used.
void add_losses(Random& random, SimPlan& plan) {
  const bool restore = plan.scene == SimScene::Restore;
  if (!restore && plan.scene != SimScene::TailLoss) return;
  const std::uint64_t count = 1 + random.below(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto span = static_cast<std::uint64_t>(plan.length.count());
    const Nanos at = Nanos(span / 10 + random.below(span * 8 / 10));
    const Nanos tail = restore ? up_to(random, minutes(30)) : up_to(random, seconds(20));
    SimFault keep;
    keep.at = std::max(at - tail, Nanos(1));
    keep.what = "keep_image";
    keep.whom = "store";
    SimFault lose = keep;
    lose.at = at;
    lose.what = restore ? "restore" : "fail_over";
    // Nobody was stopped before: then only the guards hold, until somebody says `recovered`.
    if (restore && random.below(3) == 0) lose.what = "careless_restore";
    lose.length = Nanos(seconds(5)) + up_to(random, minutes(2));
    plan.faults.push_back(keep);
    plan.faults.push_back(lose);
  }
}

FaultPlan draw_network(Random& random) {
  FaultPlan out;
  const unsigned harsh = static_cast<unsigned>(random.below(3));  // none, some, much
  out.lose_reply = 10 * harsh;
  out.lose_request = 7 * harsh;
  out.unavailable = 7 * harsh;
  out.apply_late = 7 * harsh;
  out.slow = 20 * harsh;
  out.slow_reply = 20 * harsh;
  out.unavailable_read = 4 * harsh;
  out.duplicate = 5 * harsh;
  out.latest = seconds(30);
  out.slowest = seconds(5);
  return out;
}

SimPlan bare_plan(std::uint64_t seed, Random& random) {
  SimPlan plan;
  plan.seed = seed;
  constexpr SimScene kScenes[] = {SimScene::Everything, SimScene::Leases, SimScene::TailLoss,
                                  SimScene::Everything, SimScene::Restore};
  plan.scene = kScenes[seed % std::size(kScenes)];
  std::vector<SimKind> kinds = {SimKind::File, SimKind::Tree, SimKind::Row, SimKind::Branch};
  if (plan.scene == SimScene::Everything || plan.scene == SimScene::Leases) {
    kinds.push_back(SimKind::Text);
  }
  plan.kinds[0] = one_of(random, kinds);
  std::erase(kinds, plan.kinds[0]);
  plan.kinds[1] = one_of(random, kinds);
  plan.length = minutes(60 + random.below(120));
  plan.network = draw_network(random);
  plan.network.loses_tails = plan.scene == SimScene::TailLoss;
  return plan;
}

bool is_order(std::string_view what) {
  return what == "transfer" || what == "revoke" || what == "forget" || what.starts_with("queue_");
}

void sort_faults(SimPlan& plan) {
  std::stable_sort(plan.faults.begin(), plan.faults.end(), [](const auto& a, const auto& b) {
    return a.commit != b.commit ? a.commit < b.commit : a.at < b.at;
  });
}

std::string line_of(const SimFault& fault) {
  const auto ms = [](Nanos t) { return std::chrono::duration_cast<Millis>(t).count(); };
  return cat(fault.commit == 0 ? cat("at ", ms(fault.at)) : cat("commit ", fault.commit), ' ',
             fault.what, " for ", ms(fault.length), " amount ", fault.amount, " of ", fault.whom,
             '\n');
}

}  // namespace

std::string SimPlan::text() const {
  std::string out;
  for (const SimFault& fault : faults) out += line_of(fault);
  return out;
}

SimPlan make_plan(std::uint64_t seed) {
  SeededRandom random(seed ^ kPlanSalt);
  SimPlan plan = bare_plan(seed, random);
  const std::uint64_t count = random.below(40);
  for (std::uint64_t i = 0; i < count; ++i) {
    SimFault fault = draw(random, plan);
    // Printed in milliseconds, and replayed so.
    fault.at = std::chrono::duration_cast<Millis>(fault.at);
    fault.length = std::chrono::duration_cast<Millis>(fault.length);
    plan.faults.push_back(fault);
    // Two operators at once.
    if (is_order(fault.what) && random.below(2) == 0) {
      SimFault second = draw(random, plan);
      if (!is_order(second.what)) continue;
      second.commit = fault.commit;
      second.at = fault.at + Millis(random.below(20));
      plan.faults.push_back(std::move(second));
    }
  }
  add_losses(random, plan);
  for (SimFault& fault : plan.faults) {
    fault.at = std::chrono::duration_cast<Millis>(fault.at);
    fault.length = std::chrono::duration_cast<Millis>(fault.length);
  }
  sort_faults(plan);
  return plan;
}

Result<SimPlan> read_plan(std::uint64_t seed, const std::string& text) {
  SeededRandom random(seed ^ kPlanSalt);
  SimPlan plan = bare_plan(seed, random);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream in(line);
    std::string when;
    std::string word;
    std::uint64_t number = 0;
    std::int64_t length = 0;
    SimFault fault;
    in >> when >> number >> fault.what >> word >> length >> word >> fault.amount >> word;
    std::getline(in >> std::ws, fault.whom);
    if (in.fail() || (when != "at" && when != "commit")) {
      return invalid(cat("not a line of a plan: ", quoted(line)));
    }
    if (when == "commit") fault.commit = number;
    if (when == "at") fault.at = Millis(number);
    fault.length = Millis(length);
    plan.faults.push_back(std::move(fault));
  }
  sort_faults(plan);
  return plan;
}

}  // namespace stint::test
