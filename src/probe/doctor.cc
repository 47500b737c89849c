#include "probe/doctor.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "probe/clock_look.h"

namespace stint::probe {
namespace {

using std::chrono::duration_cast;
using store::Expect;
using store::Step;

constexpr Millis kLeftBehind{3'600'000};

std::string ms_text(Nanos length) {
  const auto us = duration_cast<std::chrono::microseconds>(length).count();
  if (us < 10'000) return cat(us / 1000, ".", us % 1000 / 100, " ms");
  return cat(us / 1000, " ms");
}

// The n-th part in a hundred of the measured times.
Nanos percentile(std::vector<Nanos> times, std::size_t percent) {
  if (times.empty()) return Nanos(0);
  std::ranges::sort(times);
  return times[std::min(times.size() - 1, times.size() * percent / 100)];
}

class Examination {
 public:
  Examination(const Practice& practice, store::Store& first, store::Store& second)
      : practice_(practice),
        first_(first),
        second_(second),
        prefix_(cat("doctor/", practice.random.id_hex(), "/")) {}

  Status run() {
    remove_left_behind();
    const auto done = checks();
    clean_up();
    return done;
  }

 private:
  using Check = Status (Examination::*)();

  Status checks() {
    constexpr std::array<Check, 11> kChecks = {
        &Examination::settings,    &Examination::promises, &Examination::skew,
        &Examination::whole,       &Examination::visible,  &Examination::atomic,
        &Examination::clock,       &Examination::timers,   &Examination::wake_up,
        &Examination::round_trips, &Examination::drift};
    for (const Check check : kChecks) {
      if (auto done = (this->*check)(); !done) return done;
    }
    return {};
  }

  void tell(Finding::Level level, std::string check, std::string text) const {
    practice_.tell({level, std::move(check), std::move(text)});
  }
  void ok(std::string check, std::string text) const {
    tell(Finding::Level::Ok, std::move(check), std::move(text));
  }
  void warn(std::string check, std::string text) const {
    tell(Finding::Level::Warn, std::move(check), std::move(text));
  }
  void fail(std::string check, std::string text) const {
    tell(Finding::Level::Fail, std::move(check), std::move(text));
  }

  std::string key(std::string_view name) const { return cat(prefix_, name); }

  // A record of the examination; its timer tells a later one when it was left behind.
  Step set(std::string_view name, std::string value) const {
    Step step;
    step.kind = Step::Kind::Set;
    step.key = key(name);
    step.value = std::move(value);
    step.timer = Step::TimerOp::Start;
    step.ttl = kLeftBehind;
    return step;
  }

  // True: committed. False: a conflict.
  static Result<bool> commit(store::Store& store, const std::vector<Step>& steps,
                             store::Sync sync = store::Sync::Relaxed) {
    auto answer = store.commit(steps, sync);
    if (!answer) return answer.error();
    return std::holds_alternative<store::Committed>(*answer);
  }

  Status settings();
  Status promises();
  Status whole();
  Status visible();
  Status atomic();
  Status skew();
  Status clock();
  Status drift();
  Status timers();
  Status wake_up();
  Status round_trips();
  void judge_clock(Nanos worst_gain, Nanos worst_loss, bool went_back);
  void remove_left_behind();
  void clean_up();
  void remove_all(const std::string& prefix, bool only_fired);

  const Practice& practice_;
  store::Store& first_;
  store::Store& second_;
  const std::string prefix_;
  std::optional<ClockLook> first_look_;  // none: the store shows no clock
};

// What the store knows about itself.
Status Examination::settings() {
  auto findings = first_.examine();
  if (!findings) return findings.error();
  for (const Finding& finding : *findings) practice_.tell(finding);
  return {};
}

Status Examination::promises() {
  const store::Capabilities& can = first_.capabilities();
  if (can.durable) {
    ok("durability",
       can.may_lose.empty()
           ? "an acknowledged grant survives a crash and a power cut"
           : cat("an acknowledged grant survives a crash and a power cut; may be lost: ",
                 can.may_lose));
  } else {
    warn("durability", cat("an acknowledged grant may be lost: ", can.may_lose));
  }
  if (can.failover_restarts_timers) {
    warn("fail-over", "after a change of leader leases last up to their full ttl longer");
  }
  return {};
}

// A commit with one step that does not hold writes nothing.
Status Examination::whole() {
  Step wrong;
  wrong.key = key("absent");
  wrong.expect = Expect::Seen;
  wrong.version = 1;
  auto committed = commit(first_, {set("half", "x"), wrong});
  if (!committed) return committed.error();
  auto reading = first_.read({key("half")});
  if (!reading) return reading.error();
  if (*committed || reading->entries.front().present()) {
    fail("whole", "a commit was done although one of its conditions did not hold");
  } else {
    ok("whole", "a commit is done as a whole or not at all");
  }
  return {};
}

// What one opening was told is done, another reads at once.
Status Examination::visible() {
  constexpr int kRounds = 20;
  int stale = 0;
  for (int i = 0; i < kRounds; ++i) {
    store::Store& writer = i % 2 == 0 ? first_ : second_;
    store::Store& reader = i % 2 == 0 ? second_ : first_;
    auto committed = commit(writer, {set("seen", std::to_string(i))});
    if (!committed) return committed.error();
    auto reading = reader.read({key("seen")});
    if (!reading) return reading.error();
    stale += reading->entries.front().value == std::to_string(i) ? 0 : 1;
  }
  if (stale > 0) {
    fail("visible", cat("of ", kRounds, " acknowledged writes ", stale,
                        " were not seen by the next reader: two could hold one lease"));
  } else {
    ok("visible", "what is acknowledged to one is seen by the next");
  }
  return {};
}

Status Examination::atomic() {
  const Contest contest{.key = key("counter")};
  auto tally = practice_.contest(contest);
  // What kept the contenders from trying says nothing of the store.
  if (!tally && tally.error().code == Code::Unavailable) return tally.error();
  if (!tally) {
    fail("atomic",
         cat("counting by ", contest.contenders, " at once failed: ", tally.error().message));
    return {};
  }
  const auto number = read_number(first_, contest.key);
  if (!number) return number.error();
  const std::string told = cat(contest.contenders, " ", practice_.contenders, " counted to ",
                               *number, ", ", tally->acknowledged, " acknowledged",
                               tally->unknown > 0 ? cat(", ", tally->unknown, " unknown") : "");
  if (*number < tally->acknowledged || *number > tally->acknowledged + tally->unknown) {
    fail("atomic",
         cat(told, ": its compare-and-commit does not hold; leases here would be worthless"));
  } else {
    ok("atomic", told);
  }
  return {};
}

Status Examination::skew() {
  if (first_.capabilities().clock == store::Capabilities::ClockKind::TimersOnly) return {};
  auto look = look_at_clock(first_, key("seen"), practice_.clock);
  if (!look) return look.error();
  first_look_ = *look;
  if (first_look_ && first_look_->ahead) practice_.tell(skew_finding(*first_look_));
  return {};
}

// Over the whole examination.
Status Examination::drift() {
  if (!first_look_) return {};
  auto look = look_at_clock(first_, key("seen"), practice_.clock);
  if (!look) return look.error();
  if (*look) practice_.tell(drift_finding(*first_look_, **look));
  return {};
}

// The store's clock beside ours, for about two seconds.
Status Examination::clock() {
  if (first_.capabilities().clock == store::Capabilities::ClockKind::TimersOnly) {
    ok("clock", "the store shows no clock; its timers are checked below");
    return {};
  }
  constexpr int kLooks = 80;
  Nanos worst_gain{0};
  Nanos worst_loss{0};
  bool went_back = false;
  std::optional<Nanos> last;
  std::optional<std::pair<MonoTime, Nanos>> start;
  for (int i = 0; i < kLooks; ++i) {
    const MonoTime before = practice_.clock.mono();
    auto reading = (i % 2 == 0 ? first_ : second_).read({key("seen")});
    const MonoTime after = practice_.clock.mono();
    if (!reading) return reading.error();
    if (!reading->store_time) {
      fail("clock", "the store says that it has a clock, and tells no time");
      return {};
    }
    const Nanos there = *reading->store_time;
    went_back |= last && there < *last;
    last = there;
    if (!start) start = {after, there};
    // Both bounds are what a store's clock at our pace could show for this answer.
    const Nanos passed = there - start->second;
    worst_gain = std::max(worst_gain, passed - Nanos(after - start->first));
    worst_loss = std::max(worst_loss, Nanos(before - start->first) - passed);
    practice_.pause(Millis(25));
  }
  judge_clock(worst_gain, worst_loss, went_back);
  return {};
}

void Examination::judge_clock(Nanos worst_gain, Nanos worst_loss, bool went_back) {
  constexpr Nanos kBearable = std::chrono::milliseconds(250);
  if (went_back) {
    fail("clock", "the store's clock went back while it was looked at");
  } else if (worst_gain > kBearable || worst_loss > kBearable) {
    fail("clock", cat("within two seconds the store's clock was up to ",
                      ms_text(std::max(worst_gain, worst_loss)),
                      " away from ours: it jumps, or it runs at another pace"));
  } else if (first_.capabilities().clock == store::Capabilities::ClockKind::Wall) {
    warn("clock", "even, but a wall clock: a step of the server's clock moves every lease's end");
  } else {
    ok("clock", "even, and no step of any wall clock moves it");
  }
}

// A timer never fires early, and hardly late.
Status Examination::timers() {
  const store::Capabilities& can = first_.capabilities();
  Step start = set("timer", "x");
  const auto grain = std::max<std::int64_t>(can.ttl_grain.count(), 1);
  start.ttl =
      Millis((std::max<std::int64_t>(can.smallest_ttl.count(), 300) + grain - 1) / grain * grain);
  const MonoTime asked = practice_.clock.mono();
  auto answer = first_.commit({start}, store::Sync::Relaxed);
  const MonoTime set_at = practice_.clock.mono();
  if (!answer) return answer.error();
  const auto* done = std::get_if<store::Committed>(&*answer);
  if (done == nullptr || done->granted_ttl.empty()) return unavailable("a plain commit conflicted");
  const Millis granted = std::max(start.ttl, done->granted_ttl.front());
  constexpr Millis kSlack{1000};
  const MonoTime latest = set_at + granted + can.step + kSlack;
  while (true) {
    const MonoTime before = practice_.clock.mono();
    auto reading = second_.read({start.key});
    const MonoTime after = practice_.clock.mono();
    if (!reading) return reading.error();
    const bool fired = reading->entries.front().timer.state == TimerState::Fired;
    if (fired && after < asked + granted) {
      fail("timers", cat("a timer of ", format_duration(granted), " fired after ",
                         ms_text(after - asked), ": leases would end early"));
      return {};
    }
    if (fired) {
      ok("timers", cat("a timer of ", format_duration(granted), " fired after ",
                       ms_text(after - asked), ", not before"));
      return {};
    }
    if (before > latest) {
      fail("timers", cat("a timer of ", format_duration(granted), " had not fired after ",
                         ms_text(before - set_at), ": leases would not end"));
      return {};
    }
    practice_.pause(Millis(20));
  }
}

Status Examination::wake_up() {
  constexpr int kRounds = 8;
  constexpr Millis kPatience{1500};
  std::vector<Nanos> times;
  int missed = 0;
  auto watch = second_.watch(key("bell"));
  if (!watch) return watch.error();
  for (int i = 0; i < kRounds && missed < 2; ++i) {
    (*watch)->acknowledge();
    auto committed = commit(first_, {set("bell", std::to_string(i))});
    if (!committed) return committed.error();
    const MonoTime rung = practice_.clock.mono();
    if (practice_.wait((*watch)->fd(), rung + kPatience)) {
      times.push_back(practice_.clock.mono() - rung);
    } else {
      ++missed;
    }
    practice_.pause(Millis(20));
  }
  if (missed > 0) {
    warn("wake-up", cat("a waiter was not woken within ", format_duration(kPatience),
                        ": it will look again after 30 s at the latest"));
  } else {
    ok("wake-up", cat("a waiter is woken after ", ms_text(percentile(times, 50)), " (p50)"));
  }
  return {};
}

Status Examination::round_trips() {
  constexpr int kReads = 60;
  constexpr int kCommits = 30;
  std::vector<Nanos> reads;
  std::vector<Nanos> commits;
  for (int i = 0; i < kReads; ++i) {
    const MonoTime start = practice_.clock.mono();
    if (auto read = first_.read({key("seen")}); !read) return read.error();
    reads.push_back(practice_.clock.mono() - start);
  }
  for (int i = 0; i < kCommits; ++i) {
    const MonoTime start = practice_.clock.mono();
    auto done = commit(first_, {set("pace", std::to_string(i))}, store::Sync::Durable);
    if (!done) return done.error();
    commits.push_back(practice_.clock.mono() - start);
  }
  constexpr Nanos kSlow = std::chrono::milliseconds(500);
  const std::string told =
      cat("reading ", ms_text(percentile(reads, 50)), " (p50) ", ms_text(percentile(reads, 99)),
          " (p99), a durable commit ", ms_text(percentile(commits, 50)), " (p50) ",
          ms_text(percentile(commits, 99)), " (p99)");
  if (percentile(commits, 50) > kSlow) {
    warn("round-trip", cat(told, ": use ttls of a minute or more"));
  } else {
    ok("round-trip", told);
  }
  return {};
}

void Examination::remove_all(const std::string& prefix, bool only_fired) {
  std::string after;
  while (true) {
    auto found = first_.scan({.prefix = prefix, .after = after, .limit = 50, .backwards = false});
    if (!found || found->entries.empty()) return;
    std::vector<Step> steps;
    for (const store::Entry& entry : found->entries) {
      if (only_fired && entry.timer.state != TimerState::Fired) continue;
      Step& step = steps.emplace_back();
      step.kind = Step::Kind::Remove;
      step.key = entry.key;
    }
    after = found->entries.back().key;
    if (!steps.empty() && !first_.commit(steps, store::Sync::Relaxed)) return;
  }
}

// Of an examination that was cut short.
void Examination::remove_left_behind() { remove_all("doctor/", true); }
void Examination::clean_up() { remove_all(prefix_, false); }

}  // namespace

Status examine(const Practice& practice) {
  auto first = practice.open();
  if (!first) return first.error();
  auto second = practice.open();
  if (!second) return second.error();
  return Examination(practice, **first, **second).run();
}

std::string_view word(Finding::Level level) {
  switch (level) {
    case Finding::Level::Ok: return "ok";
    case Finding::Level::Warn: return "warn";
    case Finding::Level::Fail: return "fail";
  }
  return "fail";
}

}  // namespace stint::probe
