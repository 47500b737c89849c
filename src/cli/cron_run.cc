// stint cron run JOB --slot T: one slot, under its lease, step by step on record.
#include <unistd.h>

#include <cstring>
#include <thread>

#include "app/job_file.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "cli/cron.h"
#include "cli/cron_jobs.h"
#include "cli/exit_codes.h"
#include "cli/retelling.h"
#include "cli/run_seals.h"
#include "cli/run_work.h"
#include "os/host.h"
#include "os/pause.h"
#include "os/worker.h"

namespace stint::cli {
namespace {

// For those who keep their own scheduler, whose clock may be a little ahead of the store's: so long
// it is waited for.
constexpr Millis kClocksApart{5000};

struct SlotAsked {
  schedule::JobConfig job;
  core::Slot slot;
  std::string scheduler;
  bool assigned = false;  // by the scheduler that started this process
};

// The instant: RFC 3339, or a slot's key; or what the job's own clock shows.
Result<WallTime> parse_slot(const std::string& text, const core::JobRule& rule) {
  const std::string prefix = rule.name + "@";
  const std::string time = text.starts_with(prefix) ? text.substr(prefix.size()) : text;
  auto instant = parse_rfc3339(time);
  if (instant) return instant;
  auto nominal = parse_rfc3339(time + "Z");
  if (!nominal) return invalid(cat("--slot: ", instant.error().message));
  // The slot whose nominal time that is; it fires at most a day from there in UTC.
  const auto local = std::chrono::local_seconds(core::whole_seconds(*nominal).time_since_epoch());
  auto found =
      core::next_time(rule.expression, rule.zone,
                      core::whole_seconds(*nominal) - core::kWidestOffset, core::Bound::Inclusive);
  const auto last = core::whole_seconds(*nominal) + core::kWidestOffset;
  while (found && found->nominal != local && found->instant < last) {
    found = core::next_time(rule.expression, rule.zone, found->instant, core::Bound::Exclusive);
  }
  if (found && found->nominal == local) return core::wall_of(found->instant);
  return invalid(cat("--slot: ", quoted(text), " is no slot of job ", quoted(rule.name),
                     "; an instant is written like 2026-11-15T06:45:00+01:00"));
}

core::Slot slot_at(WallTime at, const core::JobRule& rule) {
  core::Slot slot{.at = at};
  const auto second = core::whole_seconds(at);
  const auto found = core::next_time(rule.expression, rule.zone, second, core::Bound::Inclusive);
  const bool scheduled = found && core::wall_of(found->instant) == at;
  slot.nominal = scheduled ? found->nominal : rule.zone.at(second).local(second);
  return slot;
}

Result<schedule::JobConfig> job_of(Session& session, const std::optional<std::string>& given) {
  if (!given) return operand_job(session);
  auto config = app::read_jobs(session.environment(), *given, "the scheduler's words");
  if (!config) return config.error();
  Jobs jobs{"the scheduler's words", std::move(*config)};
  return find_job(std::move(jobs), session.words().operands()[1]);
}

Result<SlotAsked> slot_asked(Session& session) {
  SlotAsked out;
  const auto text = session.words().value("--slot");
  if (!text) return invalid("which slot? stint cron run JOB --slot 2026-11-15T06:45:00Z");
  const auto scheduler = session.environment().get("STINT_CRON_AS");
  const auto given =
      scheduler ? session.environment().get("STINT_CRON_JOB") : std::optional<std::string>();
  auto job = job_of(session, given);
  if (!job) return job.error();
  out.job = std::move(*job);
  auto at = parse_slot(*text, out.job.rule);
  if (!at) return at.error();
  out.slot = slot_at(*at, out.job.rule);
  if (const auto attempt = session.words().value("--attempt")) {
    const auto number = parse_digits(*attempt);
    if (!number || *number < 1 || *number > 1000) return invalid("--attempt is a small number");
    out.slot.attempt = static_cast<int>(*number);
  }
  out.assigned = given.has_value();
  out.scheduler = out.assigned ? *scheduler
                               : cat(os::host_name(), "-", ::getpid(), "-",
                                     session.random().id_hex().substr(0, 8));
  return out;
}

class SlotRun {
 public:
  SlotRun(Session& session, os::Signals& signals, app::Opened& opened, SlotAsked asked)
      : session_(session), signals_(signals), opened_(opened), asked_(std::move(asked)) {}

  int go() {
    if (!asked_.assigned) {
      if (const auto code = adopt()) return *code;
    } else if (auto ok = look(); !ok) {
      return session_.fail(ok.error());
    }
    if (gone_) return tell_gone();
    if (auto ok = prepare(); !ok) return fail_before(ok.error());
    auto answer = do_work(session_, signals_, opened_, work_);
    if (reporter_.joinable()) reporter_.join();
    if (!answer) return gone_ ? tell_gone() : fail_before(answer.error());
    if (answer->waved_off) return wave_off(*answer->waved_off);
    if (answer->interrupted) {
      stand_down();
      // Told by the scheduler to start nothing more.
      const bool drained = asked_.assigned && *answer->interrupted == SIGHUP;
      return drained ? static_cast<int>(kDone) : kSignalled + *answer->interrupted;
    }
    return exit_of(session_, work_.request, answer->end);
  }

 private:
  std::string key() const { return core::slot_key(asked_.job.rule.name, asked_.slot.at); }

  // Nothing was started, and nothing will be from here.
  void stand_down() {
    if (!proof_) return;
    told(opened_.slots().hand_back(*proof_));
  }

  int tell_gone() {
    session_.say(cat(key(), " is another's, or has ended: nothing was started"));
    return kDone;
  }

  template <class Answer>
  void told(const Result<Answer>& answer) {
    if (!answer) session_.warn(cat(key(), ": ", answer.error().message));
  }

  // For those who keep their own scheduler. A code: there is nothing to run.
  std::optional<int> adopt() {
    auto now = opened_.slots().now();
    if (!now) return session_.fail(now.error());
    if (asked_.slot.at > *now && asked_.slot.at <= *now + kClocksApart) {
      constexpr Millis kNoSooner{10};
      os::pause_for(asked_.slot.at - *now + kNoSooner);
    }
    auto added = opened_.slots().add(asked_.job.rule, asked_.slot, asked_.scheduler);
    if (!added) return session_.fail(added.error());
    switch (added->what) {
      case api::SlotAdded::What::Added: return std::nullopt;
      case api::SlotAdded::What::Ended:
        session_.say(cat(key(), " has ended already: ", core::word(added->ended->state)));
        return kDone;
      case api::SlotAdded::What::ConfigDiffers:
        return session_.fail(
            invalid(cat("config_differs: the schedulers run job ", quoted(asked_.job.rule.name),
                        " by another schedule than this file's; load this file there (SIGHUP, or "
                        "'stint cron FILE --once'), or name the file that they run")));
      case api::SlotAdded::What::Open: break;
    }
    auto decided = opened_.slots().decide({{.rule = &asked_.job.rule}}, asked_.scheduler);
    if (!decided.front()) return session_.fail(decided.front().error());
    if (!take_over(decided.front()->job) || !decided.front()->mine) return tell_gone();
    return std::nullopt;
  }

  bool take_over(const core::Job& job) {
    for (const core::Slot& slot : job.due) {
      if (slot.at != asked_.slot.at) continue;
      asked_.slot = slot;
      return true;
    }
    return false;
  }

  // What the record says of the slot: whether it is to be caught up with, and which attempt it is.
  Status look() {
    auto history = opened_.slots().history(asked_.job.rule.name, 1);
    if (!history) return history.error();
    const int attempt = asked_.slot.attempt;
    const bool there = history->job && take_over(*history->job);
    gone_ = !there || asked_.slot.attempt != attempt || history->job->due_by != asked_.scheduler;
    return {};
  }

  Status prepare() {
    const schedule::JobConfig& job = asked_.job;
    holder::RunRequest& request = work_.request;
    request.resources = {job.resources.front()};
    request.others.assign(job.resources.begin() + 1, job.resources.end());
    auto owner = session_.owner();
    if (!owner) return owner.error();
    request.owner = *owner;
    request.terms = job.terms;
    request.settings = {.ttl = job.terms.ttl,
                        .grace = core::default_grace(job.terms.ttl),
                        .margin = core::default_margin(job.terms.ttl),
                        .max_hold = job.terms.max_hold};
    if (auto ok = core::check_settings(request.settings); !ok) return ok;
    request.note = printable(key());
    request.record_skip = false;
    request.command = job.command;
    // From its scheduler it means: if nothing is started yet, leave it.
    if (asked_.assigned) request.keeps_signal = [](int signal) { return signal == SIGHUP; };
    request.progress_timeout = job.progress_timeout;
    if (auto ok = set_patience(); !ok) return ok;
    auto ancestral = app::ancestral_leases(session_.environment());
    if (!ancestral) return ancestral.error();
    request.ancestral = std::move(*ancestral);
    unready_ = make_ready();
    set_environment();
    work_.first = [this](const holder::Taken& taken) { return claim(taken); };
    work_.last = [this](const holder::Taken&) { return start(); };
    work_.started = [this] {
      reporter_ = std::thread([this] { told(opened_.slots().running(*proof_)); });
    };
    work_.ended = [this](const holder::Taken&, const holder::RunEnd& end) { finish(end); };
    return {};
  }

  // What is wrong with it is told once the slot is claimed: it is a failed attempt.
  Status make_ready() {
    const schedule::JobConfig& job = asked_.job;
    if (!job.dir.empty()) {
      if (auto moved = os::change_directory(job.dir); !moved) return moved;
    }
    auto seals = plan_seals(session_, {work_.request.resources, work_.request.others}, job.seal);
    if (!seals) return seals.error();
    work_.seals = std::move(*seals);
    return {};
  }

  // Waiting counts from when the slot was due, and ends with its start deadline.
  Status set_patience() {
    holder::HeldPolicy& held = work_.request.held;
    held = asked_.job.held;
    auto now = opened_.slots().now();
    if (!now) return now.error();
    const auto left = [&](Millis length) {
      return std::max(Millis(0), asked_.slot.at + length - *now);
    };
    const auto& deadline = asked_.job.rule.start_deadline;
    // A further attempt comes when the backoff says.
    const bool timed = deadline && asked_.slot.attempt == 1;
    if (timed && !asked_.slot.manual && left(*deadline).count() == 0) late_ = true;
    if (held.what == holder::OnHeld::Retry) held.patience = std::nullopt;
    const bool first = asked_.slot.attempt == 1;
    if (held.what == holder::OnHeld::Wait && held.patience && first) {
      held.patience = left(*held.patience);
    }
    if (timed && held.what == holder::OnHeld::Wait) {
      held.patience = std::min(held.patience.value_or(left(*deadline)), left(*deadline));
    }
    if (!late_) return {};
    told(opened_.slots().skip(skip_of(core::SlotState::SkippedLate)));
    gone_ = true;
    return Error{Code::Failed, "it is later than start_deadline"};
  }

  void set_environment() {
    const core::Slot& slot = asked_.slot;
    work_.hidden = {"STINT_CRON_JOB", "STINT_CRON_AS", "STINT_BACKFILL"};
    work_.env = asked_.job.env;
    work_.env.emplace_back("STINT_SLOT", format_local(slot.nominal));
    work_.env.emplace_back("STINT_SLOT_KEY", key());
    work_.env.emplace_back("STINT_ATTEMPT", std::to_string(slot.attempt));
    if (slot.backfill) work_.env.emplace_back("STINT_BACKFILL", "1");
  }

  Status step(const Result<api::StepAnswer>& answer) {
    if (!answer) return answer.error();
    if (*answer == api::StepAnswer::Done) return {};
    gone_ = true;
    return Error{Code::Lost, "the slot is another's"};
  }

  Status claim(const holder::Taken& taken) {
    proof_ = api::SlotProof{.job = asked_.job.rule.name,
                            .at = asked_.slot.at,
                            .attempt = asked_.slot.attempt,
                            .scheduler = asked_.scheduler,
                            .owner = work_.request.owner,
                            .grip = taken.kept.front().grip};
    if (auto claimed = step(opened_.slots().claim(*proof_)); !claimed) return claimed;
    return unready_;
  }

  Status start() {
    const Status started = step(opened_.slots().start(*proof_));
    if (asked_.assigned) os::tell_ready();  // the scheduler may start others now
    return started;
  }

  void finish(const holder::RunEnd& end) {
    if (reporter_.joinable()) reporter_.join();
    if (!end.started) {
      told(opened_.slots().hand_back(*proof_));  // the lease was lost before anything was started
      return;
    }
    const auto [ended, unsure] = api::tell_until_heard<api::EndAnswer>(
        retelling(session_, signals_, key(), asked_.job.terms.ttl, end.told.has_value()),
        [&] { return opened_.slots().end(*proof_, how(end), asked_.job.rule); });
    told(ended);
    if (!ended) return;
    if (ended->step == api::StepAnswer::Gone) {
      session_.warn(cat(key(), unsure ? ": how it ended is on record, by an earlier telling whose "
                                        "answer was lost, or by another"
                                      : ": another has already recorded how it ended"));
    } else if (ended->state != core::SlotState::Ran) {
      session_.say(cat(key(), " ", core::word(ended->state),
                       ended->again ? "; it will be tried again" : ""));
    }
  }

  static core::SlotEnd how(const holder::RunEnd& end) {
    switch (end.how) {
      case holder::RunEnd::How::Exited: break;
      case holder::RunEnd::How::NotExecuted:
        return {.state = core::SlotState::Failed,
                .exit_code = end.exec_error == ENOENT ? kNotFound : kNotExecutable,
                .cause = cat("cannot execute: ", std::strerror(end.exec_error))};
      case holder::RunEnd::How::Lost:
      case holder::RunEnd::How::Overdue:
        return {.state = core::SlotState::Lost, .exit_code = {}, .cause = "the lease was lost"};
      case holder::RunEnd::How::Stalled:
        return {.state = core::SlotState::Failed, .exit_code = {}, .cause = "no progress"};
      case holder::RunEnd::How::Unguarded:
        return {
            .state = core::SlotState::Lost, .exit_code = {}, .cause = "the guardian was killed"};
    }
    if (!end.child) {
      return {.state = core::SlotState::Lost, .exit_code = {}, .cause = "nobody saw how it ended"};
    }
    const int code = end.child->code();
    if (end.told) {
      return {.state = core::SlotState::Lost, .exit_code = code, .cause = "stopped by a signal"};
    }
    const auto state = code == 0 ? core::SlotState::Ran : core::SlotState::Failed;
    return {.state = state, .exit_code = code, .cause = ""};
  }

  api::SlotSkip skip_of(core::SlotState why) const {
    return {.job = asked_.job.rule.name,
            .at = asked_.slot.at,
            .attempt = asked_.slot.attempt,
            .scheduler = asked_.scheduler,
            .why = why,
            .by = {}};
  }

  // A skip is no failure.
  int wave_off(const holder::WavedOff& off) {
    // Taken for this very slot by a process that died before it claimed it: nothing was started.
    // The slot stays due, and is tried again until that lease has run out.
    if (off.by.lease.held && off.by.lease.note == work_.request.note) return tell_gone();
    const bool fails = work_.request.held.what == holder::OnHeld::Fail;
    api::SlotSkip skip = skip_of(fails ? core::SlotState::Failed : core::SlotState::SkippedHeld);
    skip.by = off.by.lease;
    const auto skipped = opened_.slots().skip(skip);
    told(skipped);
    if (fails) return session_.held(off.by, "on_held = \"wait\" in the job's table");
    session_.skipped(cat(key(), " ", skipped ? core::word(skipped->state) : "skipped", ": ",
                         describe_holder(off.by.lease, session_.clock())),
                     off.by.lease);
    return kDone;
  }

  // Nothing was started. If it is claimed, its end is known: it failed.
  int fail_before(const Error& error) {
    if (gone_) return tell_gone();
    const bool fault = error.code == Code::Unavailable || error.code == Code::UnknownOutcome;
    if (proof_ && fault) {
      // No failure of the job's: it stays due. From `starting` on it is left to its lease.
      told(opened_.slots().hand_back(*proof_));
    } else if (proof_) {
      const core::SlotEnd end{
          .state = core::SlotState::Failed, .exit_code = {}, .cause = printable(error.message)};
      told(opened_.slots().end(*proof_, end, asked_.job.rule));
    } else if (!fault) {
      told(opened_.slots().skip(skip_of(core::SlotState::Failed)));
    }
    return session_.fail(error);
  }

  Session& session_;
  os::Signals& signals_;
  app::Opened& opened_;
  SlotAsked asked_;
  Work work_;
  std::optional<api::SlotProof> proof_;
  Status unready_;
  std::thread reporter_;
  bool gone_ = false;
  bool late_ = false;
};

}  // namespace

int cron_run(Session& session) {
  // Before the first thread: they all inherit the mask.
  auto signals = os::Signals::make();
  if (!signals) return session.fail(signals.error());
  auto asked = slot_asked(session);
  if (!asked) return session.fail(asked.error());
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  return SlotRun(session, *signals, **opened, std::move(*asked)).go();
}

}  // namespace stint::cli
