#include <algorithm>
#include <array>

#include "app/demo_work.h"
#include "base/text.h"

namespace stint::app {

// Of its past slots, oldest first: r ran, f failed, l lost, o overlap, h held, s stale, p paused.
struct DemoJob {
  std::string_view name;
  std::string_view schedule;
  std::string_view past;
  std::size_t max_backfill;
  int start_deadline;  // seconds; 0: none
  int length;          // of a run, seconds, about
  bool paused;
};

namespace {

constexpr std::string_view kDemoScheduler = "host-a";
constexpr Millis kDemoJobTtl{60'000};

constexpr std::array kDemoJobs = {
    DemoJob{"feed-poll", "*/4 * * * * *", "", 1, 20, 2, false},
    DemoJob{"nightly-backup", "0 2 * * *", "rrrrrrfrrrrrrrrrrlrrrrsssrrrrrrr", 1, 0, 5, false},
    DemoJob{"site-build", "*/5 * * * *",
            "rrrrrrrrrrrorrrrrrrrrrrrfrrrrrrrrrrorrrrhhrrrrrrrrrrrrrrrrrrrsssrrrrrrrr", 3, 0, 4,
            false},
    DemoJob{"weekly-report", "0 7 * * 1", "rrrrrrrrrfrrpp", 0, 0, 3, true},
};

core::SlotState demo_skip(char outcome) {
  switch (outcome) {
    case 'o': return core::SlotState::SkippedOverlap;
    case 'h': return core::SlotState::SkippedHeld;
    case 'p': return core::SlotState::SkippedPaused;
    default: return core::SlotState::SkippedStale;
  }
}

}  // namespace

struct DemoJobs::Played {
  Played(const DemoJob& told, ResourceName taken, Owner who, Claim first)
      : role(told), resource(std::move(taken)), owner(std::move(who)), claim(std::move(first)) {}

  const DemoJob& role;
  ResourceName resource;
  Owner owner;
  Claim claim;
  core::JobRule rule = {};
  std::optional<Token> token = {};  // of the run that goes on
  core::Slot slot = {};
  MonoTime ends{};
  MonoTime next_look{};
  int count = 0;

  api::Grip grip() const { return {resource, *token, claim, owner, std::nullopt}; }
  api::SlotProof proof() const {
    return {.job = rule.name,
            .at = slot.at,
            .attempt = slot.attempt,
            .scheduler = std::string(kDemoScheduler),
            .owner = owner,
            .grip = grip()};
  }
};

DemoJobs::DemoJobs(api::Leases& leases, api::Slots& slots, const Clock& clock, Random& random)
    : leases_(leases), slots_(slots), clock_(clock), random_(random) {
  const auto now = slots_.now();
  for (const DemoJob& role : kDemoJobs) {
    auto resource = ResourceName::parse(cat("jobs/", role.name));
    auto owner = Owner::parse(cat(kDemoScheduler, "/", role.name));
    auto expression = core::parse_cron(role.schedule);
    if (!now || !resource || !owner || !expression) continue;
    auto job = std::make_unique<Played>(role, *resource, *owner, Claim::make(random_));
    core::JobRule& rule = job->rule;
    rule.name = role.name;
    rule.schedule = role.schedule;
    rule.expression = *expression;
    rule.digest = core::schedule_digest(rule.schedule, rule.tz);
    rule.loaded_at = *now;
    rule.max_backfill = role.max_backfill;
    if (role.start_deadline > 0) rule.start_deadline = Millis(role.start_deadline * 1000);
    (void)slots_.decide({{&rule, false}}, std::string(kDemoScheduler));
    seed(*job);
    if (role.paused) (void)slots_.pause(rule, "ann");
    jobs_.push_back(std::move(job));
  }
}

DemoJobs::~DemoJobs() = default;

// What came before the demo was started; one lease for all of it.
void DemoJobs::seed(Played& job) {
  const core::JobRule& rule = job.rule;
  std::vector<core::Slot> past;
  auto at = core::whole_seconds(rule.loaded_at);
  while (past.size() < job.role.past.size()) {
    const auto before = core::previous_time(rule.expression, rule.zone, at, core::Bound::Exclusive);
    if (!before) return;
    at = before->instant;
    past.push_back({.at = core::wall_of(at), .nominal = before->nominal});
  }
  if (past.empty() || !take(job)) return;
  std::ranges::reverse(past);
  for (std::size_t i = 0; i < past.size(); ++i) seed_slot(job, past[i], job.role.past[i]);
  (void)leases_.release(job.grip(), false);
  job.token.reset();
}

void DemoJobs::seed_slot(Played& job, const core::Slot& slot, char outcome) {
  const auto added = slots_.add(job.rule, slot, std::string(kDemoScheduler));
  if (!added || added->what != api::SlotAdded::What::Added) return;
  job.slot = slot;
  if (std::string_view("rfl").find(outcome) == std::string_view::npos) {
    (void)slots_.skip({.job = job.rule.name,
                       .at = slot.at,
                       .attempt = 1,
                       .scheduler = std::string(kDemoScheduler),
                       .why = demo_skip(outcome),
                       .by = std::nullopt});
    return;
  }
  (void)slots_.claim(job.proof());
  (void)slots_.start(job.proof());
  core::SlotEnd end;
  if (outcome == 'r') end.exit_code = 0;
  if (outcome == 'f') end = {.state = core::SlotState::Failed, .exit_code = 3};
  if (outcome == 'l') {
    end = {.state = core::SlotState::Lost,
           .cause = "the lease ran out and nobody said how it ended"};
  }
  (void)slots_.end(job.proof(), end, job.rule);
}

bool DemoJobs::take(Played& job) {
  job.claim = Claim::make(random_);
  auto answer = leases_.acquire({.resource = job.resource,
                                 .owner = job.owner,
                                 .claim = job.claim,
                                 .terms = {.ttl = kDemoJobTtl},
                                 .note = std::string(job.role.schedule),
                                 .retake = std::nullopt});
  const auto* granted = answer ? std::get_if<api::Granted>(&*answer) : nullptr;
  if (granted == nullptr) return false;
  job.token = granted->lease.token;
  return true;
}

void DemoJobs::step() {
  const MonoTime now = clock_.mono();
  for (const auto& job : jobs_) {
    if (job->token && now >= job->ends) finish(*job);
    if (now < job->next_look) continue;
    job->next_look = now + Millis(500);
    look(*job);
  }
}

// Also while a run goes on: that is how what overlaps with it is noticed.
void DemoJobs::look(Played& job) {
  const auto decided = slots_.decide({{&job.rule, false}}, std::string(kDemoScheduler));
  if (decided.empty() || !decided.front() || !decided.front()->mine || job.token) return;
  const api::Decided& seen = *decided.front();
  if (const core::Slot* due = core::next_due(seen.job, false, seen.now)) begin(job, *due);
}

void DemoJobs::begin(Played& job, const core::Slot& slot) {
  if (!take(job)) return;
  job.slot = slot;
  (void)slots_.claim(job.proof());
  (void)slots_.start(job.proof());
  (void)slots_.running(job.proof());
  constexpr int kEveryLong = 9;
  const bool is_long = ++job.count % kEveryLong == 0;
  const auto about = static_cast<std::uint64_t>(job.role.length) * 1000;
  job.ends =
      clock_.mono() +
      Millis(static_cast<std::int64_t>(is_long ? about * 5 : about / 2 + random_.below(about)));
}

void DemoJobs::finish(Played& job) {
  constexpr int kEveryFails = 7;
  const bool fails = job.count % kEveryFails == 0;
  core::SlotEnd end;
  end.exit_code = fails ? 3 : 0;
  if (fails) end.state = core::SlotState::Failed;
  (void)slots_.end(job.proof(), end, job.rule);
  (void)leases_.release(job.grip(), false);
  job.token.reset();
}

}  // namespace stint::app
