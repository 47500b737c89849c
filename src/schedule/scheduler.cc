#include "schedule/scheduler.h"

#include <algorithm>

#include "base/text.h"

namespace stint::schedule {
namespace {

// How often what is open of all jobs is looked at: what another scheduler left when it died.
constexpr Millis kSweep{10'000};
constexpr Millis kAfterTrouble{5000};
// An assignment lasts 10 s: looked at before that, it goes on.
constexpr Millis kBeforeAssignmentEnds{7000};
constexpr Millis kKeep{5000};
// A runner that ended without claiming its slot is not started again at once.
constexpr Millis kNotAgainBefore{2000};
// However many there are to catch up with, the last starts about this long after the first.
constexpr Millis kLongestSpread{60'000};
// Clocks that differ by more than this are told of.
constexpr Millis kClocksApart{5000};
constexpr Millis kFarAhead = std::chrono::hours(1);
// So long a run of a job that we do not know is left to those who do.
constexpr int kStrangeSweeps = 6;
constexpr const char* kNever = "0 0 30 2 *";

}  // namespace

Scheduler::Scheduler(api::Slots& slots, api::Events& events, const Clock& clock, std::string id,
                     SchedulerHooks hooks)
    : slots_(slots), events_(events), clock_(clock), id_(std::move(id)), hooks_(std::move(hooks)) {}

WallTime Scheduler::due_now() const {
  const Nanos now = clock_.mono().time_since_epoch() + ahead_;
  return WallTime(std::chrono::floor<Millis>(now));
}

// Asked before: a little late rather than early.
void Scheduler::set_due_clock(WallTime now) {
  ahead_ = Nanos(now.time_since_epoch()) - clock_.mono().time_since_epoch();
}

Scheduler::Entry* Scheduler::find(const std::string& job) {
  for (Entry& entry : entries_) {
    if (entry.config.rule.name == job) return &entry;
  }
  return nullptr;
}

Status Scheduler::load(Config config) {
  auto now = slots_.now();
  if (!now) return now.error();
  set_due_clock(*now);
  concurrency_ = config.concurrency;
  stagger_ = config.stagger;
  std::set<std::string> live;
  for (const Entry& entry : entries_) {
    if (entry.running) live.insert(entry.config.rule.name);
  }
  std::vector<Entry> fresh;
  for (JobConfig& job : config.jobs) {
    job.rule.loaded_at = *now;
    Entry& entry = fresh.emplace_back();
    entry.running = live.erase(job.rule.name) > 0;
    entry.config = std::move(job);
    entry.next_at = *now;
  }
  for (Entry& before : entries_) {
    if (!live.contains(before.config.rule.name)) continue;
    before.removed = true;
    before.waiting.reset();
    fresh.push_back(std::move(before));
  }
  entries_ = std::move(fresh);
  look_soon();
  return {};
}

MonoTime Scheduler::step() {
  // Who is ending takes nothing upon itself: what comes due now is another's.
  if (!stopping_) {
    if (clock_.mono() >= sweep_at_) sweep();
    decide();
    start_waiting();
  }
  keep_waiting();
  return next_wake();
}

// What is open of jobs that nothing of ours works on: another scheduler may have died with it.
void Scheduler::sweep() {
  sweep_at_ = clock_.mono() + kSweep;
  auto now = slots_.now();
  if (!now) {
    hooks_.say(cat("the store does not answer: ", now.error().message));
    return;
  }
  set_due_clock(*now);
  auto open = slots_.open_jobs();
  if (!open) {
    hooks_.say(cat("the store does not answer: ", open.error().message));
    return;
  }
  const std::set<std::string> names(open->begin(), open->end());
  for (Entry& entry : entries_) {
    const bool ours = entry.running || entry.waiting;
    if (!ours && names.contains(entry.config.rule.name))
      entry.next_at = std::min(entry.next_at, *now);
  }
  std::map<std::string, int> strangers;
  for (const std::string& name : names) {
    if (find(name) != nullptr) continue;
    int& seen = strangers[name] = strangers_[name] + 1;
    if (seen < kStrangeSweeps) continue;
    seen = 0;
    settle_stranger(name);
  }
  strangers_ = std::move(strangers);
}

// A job that is in no file of ours, perhaps in none at all any more: if its run has run out, that
// is recorded, by the job's own retries as its record has them. Nothing else is decided for it. G9
void Scheduler::settle_stranger(const std::string& job) {
  const auto known = slots_.history(job, 1);
  if (!known || !known->job || !known->job->active) return;
  core::JobRule rule;
  rule.name = job;
  rule.schedule = kNever;
  auto never = core::parse_cron(kNever);
  if (!never) return;
  rule.expression = std::move(*never);
  rule.digest = known->job->digest;
  if (const auto& policy = known->job->policy) {
    rule.max_backfill = policy->max_backfill;
    rule.start_deadline = policy->start_deadline;
    rule.waits = policy->waits;
    rule.retries = policy->retries;
    rule.backoff = policy->backoff;
  }
  // In nobody's name: what is due again is for a scheduler that has the job.
  const auto answers = slots_.decide({{.rule = &rule}}, "");
  if (!answers.front()) return;  // not ours to reach; or the next sweep says so of the store
  for (const auto* list : {&answers.front()->ended, &answers.front()->retried}) {
    for (const core::EndedSlot& end : *list) {
      hooks_.say(cat(core::slot_key(job, end.slot.at), " ", core::word(end.state), ": ", end.cause,
                     " (a job of no file here)"));
    }
  }
}

void Scheduler::decide() {
  const WallTime now = due_now();
  std::vector<api::DecideAsk> asks;
  std::vector<Entry*> asked;
  for (Entry& entry : entries_) {
    if (entry.stopped || entry.removed || entry.next_at > now) continue;
    asks.push_back({.rule = &entry.config.rule, .held_back = entry.held_back});
    asked.push_back(&entry);
  }
  if (asks.empty()) return;
  const auto answers = slots_.decide(asks, id_);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i]) {
      settle(*asked[i], *answers[i]);
    } else {
      trouble(*asked[i], answers[i].error());
    }
  }
}

// A fault is a fault, never a skip: the slot stays undecided, and is looked at again.
void Scheduler::trouble(Entry& entry, const Error& error) {
  if (entry.trouble != error.message) {
    entry.trouble = error.message;
    hooks_.say(cat("job ", quoted(entry.config.rule.name), ": ", error.message,
                   "; nothing is skipped, trying again"));
  }
  entry.next_at = due_now() + kAfterTrouble;
}

void Scheduler::stop_job(Entry& entry) {
  entry.stopped = true;
  entry.waiting.reset();
  const std::string& name = entry.config.rule.name;
  hooks_.say(cat("config_differs: job ", quoted(name),
                 " has another schedule in the store, loaded later than ours: not run from here. "
                 "Load the same file everywhere (SIGHUP loads it again)"));
  api::Event event;
  event.at = clock_.wall();
  event.kind = "config_differs";
  event.resource = name;
  event.owner = id_;
  event.details.emplace_back("job", name);
  if (auto recorded = events_.record(event); !recorded) hooks_.say(recorded.error().message);
}

void Scheduler::settle(Entry& entry, const api::Decided& decided) {
  entry.trouble.clear();
  if (decided.config_differs) {
    stop_job(entry);
    return;
  }
  set_due_clock(decided.now);
  tell(entry, decided);
  check_clock(entry, decided);
  const core::JobRule& rule = entry.config.rule;
  entry.waiting.reset();
  if (decided.mine && !entry.running) {
    if (const core::Slot* next = core::next_due(decided.job, rule.newest_first, decided.now)) {
      entry.waiting = *next;
    }
  }
  if (!entry.waiting) entry.held_back = false;
  const auto from = core::whole_seconds(std::max(decided.job.cursor, decided.now));
  const auto next = core::next_time(rule.expression, rule.zone, from, core::Bound::Exclusive);
  WallTime at = next ? core::wall_of(next->instant) : WallTime::max();
  for (const core::Slot& slot : decided.job.due) {
    if (slot.not_before && *slot.not_before > decided.now) at = std::min(at, *slot.not_before);
  }
  if (entry.waiting) at = std::min(at, decided.now + kBeforeAssignmentEnds);
  entry.next_at = at;
}

void Scheduler::tell(const Entry& entry, const api::Decided& decided) {
  const std::string& job = entry.config.rule.name;
  for (const auto* list : {&decided.ended, &decided.retried}) {
    for (const core::EndedSlot& end : *list) {
      std::string line = cat(core::slot_key(job, end.slot.at), " ", core::word(end.state));
      if (end.state == core::SlotState::SkippedOverlap) {
        line += cat(": the run before goes on, by ", quoted(end.owner.text()), " with token ",
                    end.token.number());
      } else if (!end.cause.empty()) {
        line += cat(": ", end.cause);
      }
      hooks_.say(line);
    }
  }
  for (const core::SlotRange& range : decided.dropped) {
    hooks_.say(cat("job ", quoted(job), ": ", range.count, " slot(s) from ", format_utc(range.from),
                   " to ", format_utc(range.to), " ", core::word(range.reason)));
  }
}

// Where every scheduler goes by its own clock, the records show whose differ. And a clock that was
// ahead has decided slots that are yet to come: that must not look like quiet.
void Scheduler::check_clock(const Entry& entry, const api::Decided& decided) {
  const std::string& job = entry.config.rule.name;
  const bool apart = slots_.own_clock() && decided.job.decided_at > decided.now + kClocksApart;
  const bool ahead = decided.job.cursor > decided.now + kFarAhead;
  if (!apart && !ahead) {
    clock_told_.erase(job);
    return;
  }
  if (!clock_told_.insert(job).second) return;
  hooks_.say(cat("clock_differs: job ", quoted(job), " was decided up to ",
                 format_utc(decided.job.cursor), ", and the clock here says ",
                 format_utc(decided.now), ": nothing is due before it gets there"));
  api::Event event;
  event.at = clock_.wall();
  event.kind = "clock_differs";
  event.resource = job;
  event.owner = id_;
  event.details.emplace_back("job", job);
  event.details.emplace_back("ahead_ms", (decided.job.decided_at - decided.now).count());
  if (auto recorded = events_.record(event); !recorded) hooks_.say(recorded.error().message);
}

bool Scheduler::launch(Entry& entry) {
  if (auto started = hooks_.launch(entry.config, *entry.waiting); !started) {
    trouble(entry, started.error());
    entry.waiting.reset();
    return false;
  }
  entry.last = *entry.waiting;
  entry.again_at = clock_.mono() + kNotAgainBefore;
  entry.waiting.reset();
  entry.held_back = false;
  entry.running = true;
  entry.kept_at = clock_.mono();
  ++running_;
  return true;
}

// In the order in which they were due; those that were missed one after the other, over all jobs.
void Scheduler::start_waiting() {
  std::vector<Entry*> waiting;
  std::int64_t backfills = 0;
  for (Entry& entry : entries_) {
    if (!entry.waiting || entry.running) continue;
    waiting.push_back(&entry);
    if (entry.waiting->backfill) ++backfills;
  }
  std::ranges::sort(waiting, {}, [](const Entry* entry) { return entry->waiting->at; });
  const MonoTime now = clock_.mono();
  for (Entry* entry : waiting) {
    if (hooks_.may_launch && !hooks_.may_launch()) return;
    if (concurrency_ != 0 && running_ >= concurrency_) {
      entry->held_back = true;
      continue;
    }
    const bool backfill = entry->waiting->backfill;
    if (backfill && now < next_backfill_) continue;
    if (entry->same() && now < entry->again_at) continue;
    if (launch(*entry) && backfill) {
      next_backfill_ = now + std::min(stagger_, kLongestSpread / backfills);
    }
  }
}

// A runner that waits for a held resource keeps the slot for itself.
void Scheduler::keep_waiting() {
  const MonoTime now = clock_.mono();
  for (Entry& entry : entries_) {
    if (!entry.running || !entry.config.rule.waits || now < entry.kept_at + kKeep) continue;
    entry.kept_at = now;
    // If it fails the slot is another's sooner, no more.
    [[maybe_unused]] const bool kept = slots_.keep(entry.config.rule.name).has_value();
  }
}

MonoTime Scheduler::next_wake() const {
  MonoTime next = stopping_ ? MonoTime::max() : sweep_at_;
  const auto mono_of = [&](WallTime t) {
    if (t == WallTime::max()) return MonoTime::max();
    // Rounded up: not a moment before.
    return MonoTime(Nanos(t.time_since_epoch()) - ahead_ + Millis(1));
  };
  for (const Entry& entry : entries_) {
    if (entry.running && entry.config.rule.waits) next = std::min(next, entry.kept_at + kKeep);
    if (entry.stopped || entry.removed || stopping_) continue;
    next = std::min(next, mono_of(entry.next_at));
    const bool place = (concurrency_ == 0 || running_ < concurrency_) &&
                       (!hooks_.may_launch || hooks_.may_launch());
    if (entry.waiting && !entry.running && place) {
      MonoTime at = std::max(next_backfill_, clock_.mono());
      if (entry.same()) at = std::max(at, entry.again_at);
      next = std::min(next, at);
    }
  }
  return next;
}

void Scheduler::finished(const std::string& job) {
  Entry* entry = find(job);
  if (entry == nullptr || !entry->running) return;
  entry->running = false;
  entry->next_at = due_now();
  --running_;
  if (entry->removed)
    std::erase_if(entries_, [](const Entry& e) { return e.removed && !e.running; });
}

bool Scheduler::quiet() const {
  const WallTime now = due_now();
  return running_ == 0 && std::ranges::none_of(entries_, [&](const Entry& entry) {
           if (entry.stopped || entry.removed) return false;
           return entry.next_at <= now || (entry.waiting && !stopping_);
         });
}

}  // namespace stint::schedule
