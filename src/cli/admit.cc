// stint admit
#include <array>
#include <cerrno>
#include <cstring>

#include "api/json.h"
#include "app/pass.h"
#include "base/json_text.h"
#include "base/sha256.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/guarding.h"
#include "cli/run_seals.h"
#include "guard/words.h"
#include "os/tee.h"

namespace stint::cli {
namespace {

constexpr std::array<Option, 7> kAdmitOptions = {
    {{"--key", "K", "what makes a repeat the same act (default: made from the command's words)"},
     {"--show", "K", "print what is known of the act with this key, and run nothing"},
     kResourceOption,
     kTokenOption,
     kModeOption,
     kSealOption,
     kNoSealOption}};
constexpr std::array<std::string_view, 3> kAdmitExamples = {
    "stint admit deploy --key release-17 -- ./deploy.sh   # inside a run",
    "stint admit mail --mode once --key \"$SLOT\" -- ./send",
    "stint admit deploy --show release-17"};

std::vector<api::JsonField> fields_of(const api::Act& act) {
  using Value = api::JsonField::second_type;
  const auto number = [](Token token) { return Value(static_cast<std::int64_t>(token.number())); };
  return {{"name", act.name},
          {"key", act.key},
          {"resource", act.resource},
          {"token", number(act.token)},
          {"owner", act.owner.text()},
          {"begun_at_ms", to_ms(act.begun_at)},
          {"result_token", act.result_token ? number(*act.result_token) : Value(nullptr)},
          {"exit_code",
           act.exit_code ? Value(static_cast<std::int64_t>(*act.exit_code)) : Value(nullptr)},
          {"digest", act.digest.empty() ? Value(nullptr) : Value(act.digest)},
          {"ended_at_ms", act.ended_at ? Value(to_ms(*act.ended_at)) : Value(nullptr)}};
}

std::string result_words(const api::Act& act) {
  if (!act.result_token) {
    return cat(quoted(act.key), " was begun with token ", act.token.number(), " by ",
               quoted(act.owner.text()), " at ", format_utc(act.begun_at),
               ", and there is no result: whether it took effect is not known");
  }
  return cat(quoted(act.key), " has the result of token ", act.result_token->number(),
             act.exit_code ? cat(": exit code ", *act.exit_code) : "",
             act.ended_at ? cat(", at ", format_utc(*act.ended_at)) : "");
}

int show(Session& session, const std::string& name, const std::string& key) {
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  auto act = (*opened)->fences().act(name, key);
  if (!act) return session.fail(act.error());
  if (!*act) {
    return session.nothing(cat("nothing is known of the key ", quoted(key), " of ", quoted(name)));
  }
  session.print(session.json() ? api::to_json(fields_of(**act)) : result_words(**act));
  return kDone;
}

guard::Refused refusal_of(const std::string& name, const api::FenceAnswer& answer,
                          const guard::Pass& pass) {
  return {.target = api::admit_target(name),
          .verdict = answer.verdict,
          .offered = pass.token,
          .fence = answer.fence,
          .newest_owner = answer.owner,
          .detail = ""};
}

std::string command_digest(const std::vector<std::string>& command) {
  std::string all;
  for (const std::string& word : command) all += cat(word, '\0');
  return cat("sha256:", to_hex(sha256(all)));
}

std::int64_t number_of(Token token) { return static_cast<std::int64_t>(token.number()); }

// Standard output is the command's.
void tell(const Session& session, const std::string& words, const std::string& fields) {
  if (session.quiet()) return;
  session.json() ? session.complain(JsonText().json("admitted", fields).done())
                 : session.say(words);
}

// This key has been begun before: the recorded result is the answer, if there is one.
int answer_again(Session& session, const api::FenceAnswer& answer) {
  if (!answer.act || !answer.act->result_token) {
    return session.fail({Code::UnknownOutcome, cat(answer.act ? result_words(*answer.act)
                                                              : std::string("it was begun before"),
                                                   ". Look whether it did; nothing was run now")});
  }
  tell(session, cat(result_words(*answer.act), "; it was not run again"),
       JsonText()
           .field("name", answer.act->name)
           .field("key", answer.act->key)
           .field("token", number_of(*answer.act->result_token))
           .truth("already", true)
           .done());
  return answer.act->exit_code.value_or(kFailed);
}

class Admission {
 public:
  Admission(Session& session, app::Opened& opened, guard::Pass pass, api::Act act)
      : session_(session), opened_(opened), pass_(std::move(pass)), act_(std::move(act)) {}

  int go() {
    const auto& command = session_.words().command();
    core::Offer offer = guard::offer_of(pass_, command_digest(command));
    offer.key = act_.key;
    const MonoTime asked = session_.clock().mono();
    auto gate = opened_.fences().begin(act_, offer);
    if (!gate) return session_.fail(gate.error());
    if (guard::is_refusal(gate->verdict)) {
      guard::Refused refusal = refusal_of(act_.name, *gate, pass_);
      if (!pass_.warn) return refused(session_, refusal, pass_);
      refusal.warned = true;
      warned(session_, refusal, pass_);
      return run_past_the_gate(command);
    }
    if (gate->verdict == core::Verdict::Done) return answer_again(session_, *gate);
    auto end = run(command);
    if (!end) return session_.fail(end.error());
    if (end->exec_error != 0) return not_executed(end->exec_error, offer);
    tell_gap(asked, *end);
    act_.exit_code = end->how->code();
    act_.digest = end->digest;
    auto result = opened_.fences().finish(act_, offer);
    // It ran: whatever the store says, that is no "nothing changed".
    if (!result) {
      return session_.fail(
          {Code::UnknownOutcome, cat("the command ran, with exit code ", end->how->code(),
                                     ", and whether its result was recorded is not known: ",
                                     result.error().message, ". See stint admit ", act_.name,
                                     " --show ", act_.key, " before anybody runs it again")});
    }
    if (!guard::is_refusal(result->verdict)) return end->how->code();
    guard::Refused late = refusal_of(act_.name, *result, pass_);
    late.detail = cat("the command had run, with exit code ", end->how->code(),
                      ", but its result does not count: a newer holder came meanwhile");
    return refused(session_, late, pass_);
  }

 private:
  Result<os::TeeEnd> run(const std::vector<std::string>& command) const {
    std::vector<std::string> environment;
    for (const auto& [name, value] : session_.environment().all()) {
      environment.push_back(cat(name, '=', value));
    }
    return os::run_teed({.argv = command, .environment = std::move(environment)});
  }

  int run_past_the_gate(const std::vector<std::string>& command) {
    auto end = run(command);
    if (!end) return session_.fail(end.error());
    return end->exec_error != 0 ? not_executed(end->exec_error, {}) : end->how->code();
  }

  // Known to have had no effect. In mode once that is the result: the token is used up, and a
  // repeat is told so. Else the next try may run.
  int not_executed(int error, const std::optional<core::Offer>& offer) {
    const int code = error == ENOENT ? kNotFound : kNotExecutable;
    std::string kept = "nothing was run";
    if (offer && pass_.mode == core::FenceMode::Once) {
      act_.exit_code = code;
      if (!opened_.fences().finish(act_, *offer)) {
        kept += "; that could not be recorded: the intent stands without a result";
      }
    }
    session_.fail({Code::Failed, cat("cannot execute ", quoted(session_.words().command().front()),
                                     ": ", std::strerror(error), "; ", kept)});
    return code;
  }

  // Narrow, not zero: how narrow it was this time.
  void tell_gap(MonoTime asked, const os::TeeEnd& end) {
    const auto to_start = std::chrono::ceil<Millis>(end.started - asked);
    const auto to_end = std::chrono::ceil<Millis>(session_.clock().mono() - asked);
    tell(session_,
         cat("gap: ", to_start.count(), " ms from the gate to the start, ", to_end.count(),
             " ms to the end; narrow, not zero: what the command did, it did without a "
             "further check"),
         JsonText()
             .field("name", act_.name)
             .field("key", act_.key)
             .field("token", number_of(pass_.token))
             .truth("already", false)
             .field("gap_ms", static_cast<std::int64_t>(to_start.count()))
             .field("end_ms", static_cast<std::int64_t>(to_end.count()))
             .done());
  }

  Session& session_;
  app::Opened& opened_;
  guard::Pass pass_;
  api::Act act_;
};

// Seal, then read, then write: the command is work that starts now. Inside the run that took the
// lease it was done when that began. Unsafe mode goes past every gate, and has none here.   G5
Status seal_first(Session& session, app::Opened& opened, const guard::Pass& pass) {
  if (pass.warn || !pass.token.issued()) return {};
  auto plan = plan_seals(session, {{pass.resource}}, session.words().values("--seal"));
  if (!plan) return plan.error();
  auto known = app::known_of(session.environment(), pass.resource);
  if (!known) return known.error();
  UnderLease lease{.pass = pass, .leads = true, .sealed = {}, .sealing = {}};
  lease.pass.mode = core::FenceMode::AtLeast;  // a seal is not the one write of a token
  const bool inside = *known && (*known)->token == pass.token;
  if (inside && !session.words().has("--seal")) return {};
  auto word = opened.fences().word(pass.resource);
  if (!word) return word.error();
  // An older one is the gate's to refuse.
  if (word->issued.newest != pass.token) return {};
  if (!inside) {
    lease.sealed = std::move(word->sealed);
    lease.sealing = std::move(word->sealing);
  }
  for (const holder::SealStep& step : seal_steps(seal_world(session, opened), *plan, {lease})) {
    if (auto done = step(); !done) return done;
  }
  return {};
}

int admit_command(Session& session) {
  const std::string& name = session.words().operands().front();
  if (const auto key = session.words().value("--show")) {
    if (!session.words().command().empty()) return session.fail(invalid("--show runs no command"));
    return show(session, name, *key);
  }
  if (session.words().command().empty()) {
    return session.fail(invalid("the command to run is missing: stint admit NAME -- CMD..."));
  }
  auto pass = pass_of(session, KeyOf::Act);
  if (!pass) return session.fail(pass.error());
  auto opened = session.open(false);
  if (!opened) return session.fail(opened.error());
  if (auto sealed = seal_first(session, **opened, *pass); !sealed) {
    return session.fail(sealed.error());
  }
  api::Act act;
  act.name = name;
  act.key = session.words().value("--key").value_or(command_digest(session.words().command()));
  act.owner = pass->owner;
  return Admission(session, **opened, std::move(*pass), std::move(act)).go();
}

}  // namespace

const Command kAdmit = {
    .name = "admit",
    .operands = "NAME [--key K] [--show K]",
    .summary = "run a command only if our token is good, and keep its result: narrow, not zero",
    .details =
        "For what has no guard of its own. The gate compares our token with the fence of NAME in "
        "the store, raises it and writes the intent (token, key) in one step; then the command "
        "runs; then its result is recorded under the same token. Only the result of the highest "
        "token counts: a command that was overtaken exits 13. Between the gate and what the "
        "command "
        "does lies a gap, which is measured and printed: narrow, not zero. Where the target can "
        "check the token itself, let it.\n\n"
        "Outside of the run that took the lease the targets of the resource are sealed first, as "
        "'stint run' does.\n\n"
        "A key that has a result is not run again: its recorded exit code is the answer. With "
        "--mode once a token runs one key; a repeat whose first run left no result exits 14.",
    .examples = kAdmitExamples,
    .options = kAdmitOptions,
    .least_operands = 1,
    .most_operands = 1,
    .runs_command = false,
    .run = admit_command,
    .may_run_command = true,
};

}  // namespace stint::cli
