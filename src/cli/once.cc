// stint once KEY -- CMD

#include <array>

#include "app/environment.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/retelling.h"
#include "cli/run_work.h"
#include "cli/session.h"
#include "core/holder_policy.h"

namespace stint::cli {
namespace {

class Once {
 public:
  Once(Session& session, os::Signals& signals, app::Opened& opened)
      : session_(session),
        signals_(signals),
        opened_(opened),
        key_(session.words().operands().front()) {}

  int go() {
    // Most calls are for what is done: no lease is taken for the answer.
    auto before = opened_.slots().once(key_);
    if (!before) return session_.fail(before.error());
    if (before->state == api::OnceRecord::State::Done) return tell_done();
    if (auto ok = prepare(); !ok) return session_.fail(ok.error());
    auto answer = do_work(session_, signals_, opened_, work_);
    if (done_) return tell_done();
    if (unknown_) return tell_unknown();
    if (!answer) return session_.fail(answer.error());
    if (answer->waved_off) return session_.held(answer->waved_off->by, "");
    if (answer->interrupted) return kSignalled + *answer->interrupted;
    return exit_of(session_, work_.request, answer->end);
  }

 private:
  int tell_done() {
    session_.say(cat(quoted(key_), " is done already"));
    return kDone;
  }

  int tell_unknown() {
    return session_.fail(
        {Code::UnknownOutcome,
         cat(quoted(key_), " was started by ", quoted(found_.owner.text()),
             found_.started_at ? cat(" at ", format_utc(*found_.started_at)) : "",
             ", and nobody said how it ended: it may or may not have been done. Look at what it "
             "does; --again-if-unknown runs it again")});
  }

  Status prepare() {
    auto resource = ResourceName::parse(api::once_resource(key_));
    if (!resource) return resource.error();
    holder::RunRequest& request = work_.request;
    request.resources = {*resource};
    auto owner = session_.owner();
    if (!owner) return owner.error();
    request.owner = *owner;
    auto settings = session_.settings();
    if (!settings) return settings.error();
    auto ttl = parse_duration((*settings)->ttl.value);
    if (!ttl) return invalid(cat((*settings)->ttl.source, ": ", ttl.error().message));
    if (*ttl < core::kShortestRunTtl) return invalid("a ttl of 1s is the least");
    request.terms.ttl = *ttl;
    request.settings = {
        .ttl = *ttl, .grace = core::default_grace(*ttl), .margin = core::default_margin(*ttl)};
    if (auto ok = core::check_settings(request.settings); !ok) return ok;
    request.held.what = holder::OnHeld::Fail;
    request.note = printable(session_.words().command().front());
    request.command = session_.words().command();
    auto ancestral = app::ancestral_leases(session_.environment());
    if (!ancestral) return ancestral.error();
    request.ancestral = std::move(*ancestral);
    auto seals = plan_seals(session_, {request.resources}, session_.words().values("--seal"));
    if (!seals) return seals.error();
    work_.seals = std::move(*seals);
    work_.env.emplace_back("STINT_ONCE_KEY", key_);
    work_.first = [this](const holder::Taken& taken) { return start(taken); };
    work_.ended = [this](const holder::Taken& taken, const holder::RunEnd& end) {
      finish(taken, end);
    };
    return {};
  }

  // Under the lease: nobody else changes it now.
  Status start(const holder::Taken& taken) {
    auto found = opened_.slots().once(key_);
    if (!found) return found.error();
    found_ = *found;
    done_ = found_.state == api::OnceRecord::State::Done;
    unknown_ = found_.state == api::OnceRecord::State::Started &&
               !session_.words().has("--again-if-unknown");
    if (done_ || unknown_) return Error{Code::Failed, "not to be run"};
    const api::Grip& grip = taken.kept.front().grip;
    auto started = opened_.slots().once_start(key_, grip, work_.request.owner);
    if (!started) return started.error();
    if (*started == api::StepAnswer::Done) return {};
    return Error{Code::Lost, "the lease was lost before anything was started"};
  }

  // What was ended for us, or lost, or not seen, has no known end: it stays started.
  void finish(const holder::Taken& taken, const holder::RunEnd& end) {
    int code = 0;
    if (end.how == holder::RunEnd::How::NotExecuted) {
      code = kNotExecutable;
    } else if (end.how != holder::RunEnd::How::Exited || end.told || !end.child ||
               end.child->signal() != 0) {
      return;
    } else {
      code = end.child->code();
    }
    const auto [ended, unsure] = api::tell_until_heard<api::StepAnswer>(
        retelling(session_, signals_, quoted(key_), work_.request.terms.ttl, end.told.has_value()),
        [&] { return opened_.slots().once_end(key_, taken.kept.front().grip, code); });
    if (!ended) {
      session_.warn(cat("it ended with exit code ", code,
                        ", but that could not be recorded: ", ended.error().message));
    }
  }

  Session& session_;
  os::Signals& signals_;
  app::Opened& opened_;
  const std::string key_;
  Work work_;
  api::OnceRecord found_;
  bool done_ = false;
  bool unknown_ = false;
};

int once_command(Session& session) {
  auto signals = os::Signals::make();
  if (!signals) return session.fail(signals.error());
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  return Once(session, *signals, **opened).go();
}

constexpr std::array<Option, 4> kOnceOptions = {
    {{"--again-if-unknown", "", "run it also if an earlier start left no end"},
     {"--ttl", "D", "how long the lease on the key lasts (default: 90s)"},
     kSealOption,
     kNoSealOption}};
constexpr std::array<std::string_view, 2> kOnceExamples = {
    "stint once \"$STINT_SLOT_KEY/mail\" -- ./send-the-mail",
    "stint once invoice-2026-11 --again-if-unknown -- ./bill"};

}  // namespace

const Command kOnce = {
    .name = "once",
    .operands = "KEY",
    .summary = "run a command unless it has been done under this key",
    .details =
        "Recorded as started before the command and as done after it ended with exit code 0. Done: "
        "exit 0 without running it again. Another runs it now: 11. Started, and nobody said how it "
        "ended: 14, and it is run again only with --again-if-unknown. A command that failed may be "
        "run again. Keys are kept for ever: make them from what the work is for, as "
        "$STINT_SLOT_KEY.",
    .examples = kOnceExamples,
    .options = kOnceOptions,
    .least_operands = 1,
    .most_operands = 1,
    .runs_command = true,
    .run = once_command,
};

}  // namespace stint::cli
