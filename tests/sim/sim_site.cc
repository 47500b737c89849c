#include "tests/sim/sim_site.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "guard/fence_file.h"
#include "guard/git_fence.h"
#include "service/fence_records.h"

namespace stint::test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::int64_t kMostDrift = 400;  // two clocks differ by twice this; holders allow for more
constexpr Nanos kCalm = minutes(25);
// How long after a machine was away its children may be late to die.
constexpr Nanos kLateKill = seconds(10);
constexpr Nanos kLongestTtl = minutes(2);

std::uint64_t version_of(const std::optional<std::string>& body) {
  if (!body) return 0;
  return parse_digits(body->substr(0, body->find(' '))).value_or(0);
}

// The second word of what is written: its writer's.
Token token_of(const std::string& body) {
  const auto words = split(body, ' ');
  return Token(words.size() < 2 ? 0 : parse_digits(words[1]).value_or(0));
}

}  // namespace

SimSite::SimSite(const SimPlan& plan, const SimOptions& options)
    : plan_(plan),
      options_(options),
      scheduler_(plan.seed),
      os_(scheduler_),
      disk_(scheduler_, tally_),
      store_clock_(scheduler_.make_clock()),
      // It lives by no host's clock: a frozen host does not stop the faults.
      nowhere_(scheduler_.make_machine("nowhere", store_clock_)),
      net_(scheduler_, tally_, nowhere_) {
  scheduler_.keep_trace(options.keep_trace);
  store_.emplace(scheduler_, store_clock_, plan.network, options.sabotage);
  laws_.emplace(scheduler_, store_->truth(), store_clock_);
  if (options.lying_disk) disk_.lie_about_syncs();
  orders_event_ = os_.open_event();
  const auto any_drift = [&] {
    return static_cast<std::int64_t>(random().below(2 * kMostDrift + 1)) - kMostDrift;
  };
  store_clock_.drift(any_drift());
  std::vector<std::string> hosts = {"h0", "h1", "h2"};
  // A machine that is paused from outside does not know it: there no proxy can keep its promise.
  if (plan.has(SimKind::Text)) hosts.insert(hosts.end(), {"h3", "h4"});
  for (const std::string& name : hosts) {
    SimClock& clock = scheduler_.make_clock();
    clock.drift(any_drift());
    clock.step_wall(Millis(random().below(600'000)) - Millis(300'000));
    hosts_[name].host = &scheduler_.make_machine(name, clock);
  }
  CHECK(service::begin_life(*store_, random(), store_clock_.wall(), nullptr, {}),
        "a new store begins its life");
  scheduler_.add(*store_, store_clock_);
  scheduler_.after_each_step([this] { laws_->check_time(); });
  store_->after_each_commit([this](const std::vector<store::Step>& steps) { observe(steps); });
  store_->set_cut_off([this] {
    const SimProcess* asks = scheduler_.process();
    if (asks == nullptr || asks == maker_) return false;
    if (closed_ || scheduler_.now() < store_away_until_) return true;
    const auto found = cut_off_.find(asks->name);
    return found != cut_off_.end() && scheduler_.now() < found->second;
  });
  disk_.on_name([this](const std::string& from, const std::string& to) { on_name(from, to); });
  for (const SimFault& fault : plan_.faults) {
    if (fault.commit != 0) by_commit_.push_back(fault);
  }
  std::ranges::reverse(by_commit_);  // the next one last
  make_artifacts();
  cast_all();
  store_->set_faulty(true);
  maker_ = &scheduler_.start(nowhere_, "faults", [this] { make_faults(); });
}

SimSite::~SimSite() {
  store_->set_faulty(false);
  store_->after_each_commit({});
  disk_.on_name({});
  scheduler_.end();
}

SimSite::Host& SimSite::host_of(const SimProcess& process) {
  return hosts_.at(process.machine->name);
}

SimProcess* SimSite::find(const std::string& name) {
  const auto found = processes_.find(name);
  return found == processes_.end() ? scheduler_.find(name) : found->second;
}

// ---- what is seen of the truth

void SimSite::observe(const std::vector<store::Step>& steps) {
  laws_->observe(steps);
  for (const store::Step& step : steps) {
    if (step.kind != store::Step::Kind::Set) continue;
    if (step.key.starts_with(service::kFencePrefix)) {
      const auto fence = service::decode_fence(step.value);
      laws_->fence_moved(step.key, fence->token);
      const std::size_t resource = step.key.rfind("#r");
      const bool proxies = step.key.starts_with(cat(service::kFencePrefix, "proxy:"));
      if (proxies && resource != step.key.npos) {
        laws_->sealed(cat("f", step.key.substr(resource + 2)), fence->token);
      }
    }
    const bool ended = step.key.starts_with("ended/");
    if (!ended && !step.key.starts_with("ready/") && !step.key.starts_with("later/")) continue;
    const auto item = service::decode_item(step.value);
    CHECK(item, "an item that can be read");
    const std::string id = step.key.substr(step.key.find('\x1f') + 1);
    if (!item->unique.empty()) laws_->made(item->unique, id);
    if (item->item.state != core::ItemState::Done) continue;
    ++items_;
    laws_->completed(step.key, cat("epoch ", item->item.epoch.number()));
  }
  ++commits_;
  while (!by_commit_.empty() && by_commit_.back().commit <= commits_) {
    const SimFault fault = by_commit_.back();
    by_commit_.pop_back();
    strike(fault);
  }
}

// The resource that guards it has the same number.
void SimSite::landed(const std::string& file, SimLaws::Landing landing) {
  note(cat("landed ", landing.body));
  landing.resource = cat("r", file.substr(1));
  landing.version = version_of(landing.body);
  laws_->landed(file, landing);
  const std::size_t key = landing.body.find(" once ");
  if (key != landing.body.npos) laws_->completed(cat(file, landing.body.substr(key)), landing.body);
}

// A fence got its name, a stage took the file's place, or (both empty) the power came back.
void SimSite::on_name(const std::string& from, const std::string& to) {
  for (std::size_t i = 0; i < plan_.kinds.size(); ++i) {
    const SimKind kind = plan_.kinds[i];
    if (kind == SimKind::File || kind == SimKind::Tree) on_name_of(cat("f", i), from, to);
  }
}

void SimSite::on_name_of(const std::string& file, const std::string& from, const std::string& to) {
  Token highest;
  for (const std::string& name : disk_.names()) {
    const auto parsed = guard::parse_beside(file, name);
    if (!parsed || !*parsed || (*parsed)->kind != guard::Beside::Fence) continue;
    highest = std::max(highest, (*parsed)->token);
  }
  if (from.empty() && to.empty()) {
    laws_->came_back(file, highest, version_of(disk_.peek(file)));
    return;
  }
  const auto came = guard::parse_beside(file, to);
  if (came && *came && (*came)->kind == guard::Beside::Fence) {
    laws_->sealed(file, (*came)->token);
    fences_[cat(file, ' ', (*came)->token.number())] = disk_.last_inode();
    note(cat("sealed ", file, " with ", (*came)->token.number()));
  }
  if (to != file) return;
  const auto stage = guard::parse_beside(file, from);
  CHECK(stage && *stage, "only stages take a file's place");
  landed(file, {.resource = {},
                .token = (*stage)->token,
                .body = *disk_.peek(file),
                .standing = highest,
                .staged_first = disk_.inode(file) <= fences_[cat(file, ' ', highest.number())]});
}

// A seal, or a write with its fence, was committed.
void SimSite::on_sql_commit(const std::string& name, const std::string& body) {
  for (std::size_t i = 0; i < plan_.kinds.size(); ++i) {
    if (plan_.kinds[i] != SimKind::Row) continue;
    const std::string file = cat("f", i);
    const Token fence = sql_->fence(cat("r", i));
    if (name.empty()) {
      laws_->sealed(file, fence);
      note(cat("sealed ", file, " with ", fence.number()));
    } else if (name == file) {
      landed(file, {.resource = {}, .token = token_of(body), .body = body, .standing = fence});
    }
  }
}

// A fence or a branch of the git server moved.
void SimSite::on_ref(const std::string& ref, const std::string& text) {
  if (ref.starts_with(guard::kFencePrefix)) {
    const auto fence = guard::parse_git_fence(text);
    CHECK(fence, "a fence that can be read");
    const std::string file = cat("f", fence->fence.resource.substr(1));
    laws_->sealed(file, fence->fence.token);
    note(cat("sealed ", file, " with ", fence->fence.token.number()));
    return;
  }
  const std::string file = ref.substr(ref.rfind('/') + 1);
  const auto fence =
      guard::parse_git_fence(git_->text_at(cat(guard::kFencePrefix, "r", file.substr(1))));
  landed(file, {.resource = {},
                .token = token_of(text),
                .body = text,
                .standing = fence ? fence->fence.token : Token()});
}

// What was let through before a seal may be carried out until somebody was told of the seal.
void SimSite::on_text(const net::http::RequestHead& head, const std::string& body) {
  landed(head.target.substr(1), {.resource = {},
                                 .token = token_of(body),
                                 .body = body,
                                 .standing = Token(),
                                 .staged_first = true});
}

// ---- faults

void SimSite::make_faults() {
  const MonoTime begun = scheduler_.now();
  for (const SimFault& fault : plan_.faults) {
    if (fault.commit != 0) continue;
    scheduler_.sleep_until(begun + fault.at);
    strike(fault);
  }
  scheduler_.sleep_until(begun + plan_.length);
  calm();
  scheduler_.sleep_until(begun + plan_.length + kCalm);
  if (scheduler_.alive()) check_the_end();
  scheduler_.park(std::nullopt);
}

void SimSite::strike(const SimFault& fault) {
  if (scheduler_.now() >= MonoTime(std::chrono::hours(1)) + plan_.length) return;
  SimFault real = fault;
  if (fault.whom == "who") {
    const SimProcess* who = scheduler_.process();
    if (who == nullptr || who == maker_) return;
    real.whom = who->name;
  }
  note(cat("FAULT ", real.what, " of ", real.whom, " for ", real.length.count()));
  tally_.fault(real.what);
  if (strike_host(real) || strike_ground(real)) return;
  constexpr std::string_view kOfProcesses[] = {"pause", "crash", "cut_off", "terminate"};
  if (std::ranges::find(kOfProcesses, real.what) != std::end(kOfProcesses)) {
    if (SimProcess* process = find(real.whom)) strike_process(real, *process);
    return;
  }
  orders_.push_back(real);
  os_.signal(orders_event_);
}

void SimSite::crash(SimProcess& process, Nanos away) {
  laws_->trusts_nothing(process.name);
  scheduler_.kill(process, away);
}

void SimSite::strike_process(const SimFault& fault, SimProcess& process) {
  if (fault.what == "pause") scheduler_.freeze(process, fault.length);
  if (fault.what == "crash") crash(process, fault.length);
  if (fault.what == "terminate") os_.terminate(process);
  if (fault.what == "cut_off") cut_off_[process.name] = scheduler_.now() + fault.length;
}

bool SimSite::strike_host(const SimFault& fault) {
  const auto found = hosts_.find(fault.whom);
  if (found == hosts_.end()) return false;
  SimHost& host = *found->second.host;
  const MonoTime back = scheduler_.now() + fault.length;
  const auto excuse = [&](Nanos more) {
    for (const std::string& name : found->second.processes) {
      laws_->excuse(name, back + more);
      laws_->excuse(name + "/child", back + more);
    }
  };
  if (fault.what == "freeze") {
    scheduler_.freeze(host, fault.length);
    excuse(kLateKill);
  } else if (fault.what == "vm_pause") {
    scheduler_.freeze(host, fault.length);
    host.clock->stand_still(fault.length);
    excuse(kLateKill + kLongestTtl);
  } else if (fault.what == "host_crash") {
    for (const std::string& name : found->second.processes) {
      if (SimProcess* process = find(name)) crash(*process, fault.length);
    }
  } else if (fault.what == "step_wall") {
    host.clock->step_wall(Millis(fault.amount));
  } else if (fault.what == "drift") {
    host.clock->drift(fault.amount);
  }
  return true;
}

bool SimSite::strike_ground(const SimFault& fault) {
  const MonoTime until = scheduler_.now() + fault.length;
  if (fault.what == "store_away") {
    store_away_until_ = until;
  } else if (fault.what == "bad_network") {
    FaultPlan worse = plan_.network;
    worse.lose_reply = 150;
    worse.lose_request = 100;
    worse.apply_late = 100;
    worse.slow = worse.slow_reply = 200;
    store_->set_plan(worse);
    later(fault.length, [this] {
      if (!calm_) store_->set_plan(plan_.network);
    });
  } else if (fault.what == "disk_trouble") {
    const auto chance = static_cast<unsigned>(fault.amount);
    disk_.set_troubles({.eio = chance / 2, .enospc = chance});
    later(fault.length, [this] {
      if (!calm_) disk_.set_troubles({});
    });
  } else if (fault.what == "power_cut") {
    // Whoever was at it dies with it.
    for (const auto& [name, process] : processes_) {
      if (name.starts_with("w")) crash(*process, fault.length);
    }
    for (SimProcess* child : scheduler_.living()) {
      if (child->name.starts_with("w") && child->name.ends_with("/child")) {
        scheduler_.kill(*child, Nanos(0));
      }
    }
    disk_.power_cut();
    disk_.set_troubles({});
  } else if (fault.what == "keep_image") {
    store_->keep_image();
  } else if (fault.what == "fail_over" || fault.what.ends_with("restore")) {
    go_back(fault);
  } else {
    return false;
  }
  return true;
}

void SimSite::later(Nanos after, std::function<void()> what) {
  scheduler_.start_once(
      nowhere_, "later",
      [this, after, what = std::move(what)] {
        scheduler_.interleave(after);
        if (scheduler_.alive()) what();
      },
      [] {});
}

void SimSite::go_back(const SimFault& fault) {
  if (!store_->has_image()) return;
  // An answer to what was lost may still be under way: until its holder asks again only the guards
  // hold (docs/adr/0012).
  for (const auto& [name, process] : processes_) {
    laws_->excuse(name, scheduler_.now() + kLongestTtl);
    laws_->excuse(name + "/child", scheduler_.now() + kLongestTtl);
  }
  if (fault.what == "fail_over") {
    store_->fail_over();
    laws_->went_back();
    scheduler_.interleave(fault.length);
    recover();
    return;
  }
  if (fault.what == "careless_restore") {
    store_->restore();
    laws_->went_back();
    laws_->suspend_tokens(true);
    scheduler_.interleave(fault.length);
    recover();
    laws_->suspend_tokens(false);
    return;
  }
  // As docs/guides/restore.md says: first stop what runs, then restore, then accept it.
  closed_ = true;
  for (const auto& [name, process] : processes_) crash(*process, fault.length);
  scheduler_.interleave(seconds(1));
  store_->restore();
  laws_->went_back();
  recover();
  closed_ = false;
}

void SimSite::recover() {
  // The operator sits at the machine that has seen the most.
  SimAnchors* anchors = &hosts_["h0"].anchors;
  for (auto& [name, host] : hosts_) {
    if (host.anchors.highest() > anchors->highest()) anchors = &host.anchors;
  }
  for (int i = 0; i < 100 && scheduler_.alive(); ++i) {
    const auto life = service::recover(*store_, random(), store_clock_.wall(), anchors,
                                       {.why = "drill", .by = "operator", .past = {}});
    note(life ? "recovered" : cat("recover: ", word(life.error().code)));
    if (life) return;
    scheduler_.interleave(seconds(1));
  }
}

// The faults stop: from here on everything must get on.
void SimSite::calm() {
  note("calm");
  by_commit_.clear();
  cut_off_.clear();
  store_away_until_ = {};
  FaultPlan none;
  none = {.lose_reply = 0,
          .lose_request = 0,
          .unavailable = 0,
          .apply_late = 0,
          .slow = 0,
          .slow_reply = 0,
          .unavailable_read = 0,
          .duplicate = 0};
  none.loses_tails = plan_.network.loses_tails;
  store_->set_plan(none);
  disk_.set_troubles({.stall = 0});
  net_.set_troubles({.lose = 0, .slow = 0, .work = 0, .stop = 0});
  if (git_) {
    git_->set_troubles({.lose = 0, .slow = 0, .late = 0, .locked = 0, .refused = 0, .cut = 0});
  }
  for (auto& [name, host] : hosts_) host.host->frozen_until = scheduler_.now();
  for (auto& [name, process] : processes_) process->frozen_until = scheduler_.now();
  for (const auto& machine : machines_) machine->calm();
  calm_ = true;
  for (const std::string resource : {"r0", "r1"})
    before_calm_[resource] = laws_->grants_of(resource);
  for (const std::string file : {"f0", "f1"}) before_calm_[file] = laws_->version_of(file);
  before_calm_["items"] = items_;
}

SimOutcome SimSite::run() {
  const MonoTime begun = scheduler_.now();
  SimOutcome out;
  constexpr std::size_t kMostSteps = 3'000'000;
  out.steps = scheduler_.run({.steps = kMostSteps, .length = plan_.length + kCalm + seconds(1)});
  if (out.steps == kMostSteps) laws_->got_on(false, "time");
  out.length = scheduler_.now() - begun;
  out.fingerprint = scheduler_.fingerprint();
  out.grants = laws_->grants();
  out.renewals = laws_->renewals();
  out.writes = laws_->writes();
  out.stale = laws_->stale();
  out.items = items_;
  out.slots = slots_;
  out.faults = tally_.faults;
  for (const auto& [kind, count] : store_->faults()) {
    out.faults[kind] += static_cast<std::uint64_t>(count);
  }
  out.looked = laws_->looked();
  out.problems = scheduler_.problems();
  out.trace = scheduler_.trace();
  return out;
}

SimOutcome play(const SimPlan& plan, const SimOptions& options) {
  SimSite site(plan, options);
  return site.run();
}

}  // namespace stint::test
