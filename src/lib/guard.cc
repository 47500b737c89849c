// stint::guard
#include "stint/guard.h"

#include "app/guards.h"
#include "base/text.h"
#include "guard/directory_guard.h"
#include "guard/file_guard.h"
#include "guard/git_defaults.h"
#include "guard/git_guard.h"
#include "guard/words.h"
#include "lib/hold.h"
#include "os/files.h"

namespace stint {

lib::Hold& lib::hold_of(const Holder& holder) { return *holder.hold_; }

namespace guard {
namespace {

Pass pass_of(const lib::Hold& hold) {
  const api::Grip& grip = hold.grip();
  return {.resource = grip.resource,
          .token = grip.token,
          .generation = hold.granted().lease.generation,
          .claim = grip.claim,
          .owner = grip.owner.value_or(Owner()),
          .key = ""};
}

// Tells it, and leaves it in the ledger; a ledger that cannot be written changes nothing about it.
Refusal refusal_of(const lib::ClientState& client, const Refused& refused, const Pass& pass) {
  const Error error = error_of(refused, pass);
  Refusal out{.target = refused.target,
              .code = error.code,
              .message = error.message,
              .offered = refused.offered.number(),
              .fence = refused.fence ? refused.fence->token.number() : 0,
              .ran = false};
  if (auto told = app::record_refusal(client.opened->events(), client.clock, refused, pass);
      !told) {
    out.message += cat(" (This could not be recorded: ", told.error().message, ")");
  }
  return out;
}

Refused refused_with(std::string target, core::Verdict verdict, const Pass& pass) {
  return {.target = std::move(target),
          .verdict = verdict,
          .offered = pass.token,
          .fence = {},
          .newest_owner = {},
          .detail = ""};
}

Refused refused_by(const ActOptions& options, const api::FenceAnswer& answer, const Pass& pass) {
  Refused out = refused_with(api::admit_target(options.name), answer.verdict, pass);
  out.fence = answer.fence;
  out.newest_owner = answer.owner;
  return out;
}

template <class Options>
Pass writing_pass(const lib::Hold& hold, const Options& options) {
  Pass pass = pass_of(hold);
  pass.mode = options.once ? core::FenceMode::Once : core::FenceMode::AtLeast;
  pass.key = options.key;
  if constexpr (requires { options.require_live; }) pass.require_live = options.require_live;
  return pass;
}

std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

Outcome<WrittenTarget, Refusal> outcome_of(const lib::ClientState& client, const Pass& pass,
                                           Result<WriteAnswer> answer) {
  if (!answer) return answer.error();
  if (const auto* refused = std::get_if<Refused>(&*answer)) {
    return refusal_of(client, *refused, pass);
  }
  auto& written = std::get<Written>(*answer);
  return WrittenTarget{.digest = std::move(written.digest),
                       .already = written.already,
                       .narrow = std::move(written.narrow)};
}

Outcome<Acted, Refusal> earlier_result(const std::optional<api::Act>& act) {
  if (act && act->result_token && act->exit_code) {
    return Acted{.result = *act->exit_code, .already = true, .token = act->result_token->number()};
  }
  return Error{Code::UnknownOutcome,
               "this key was begun before with this token, and there is no result: whether it took "
               "effect is not known. Nothing was run now"};
}

}  // namespace

Outcome<SealedTarget, Refusal> seal(const Holder& holder, std::string_view target) {
  const lib::Hold& hold = lib::hold_of(holder);
  const lib::ClientState& client = *hold.client();
  if (auto ok = client.usable(); !ok) return ok.error();
  const Guards guards = app::guards();
  auto found = find_target(guards, target, os::absolute("."));
  if (!found) return found.error();
  const Pass pass = pass_of(hold);
  api::Fences& fences = client.opened->fences();
  auto before = fences.word(pass.resource);
  if (!before) return before.error();
  auto remembered = fences.remember(offer_of(pass, ""), {found->words});
  if (!remembered) return remembered.error();
  if (is_refusal(*remembered)) {
    return refusal_of(client, refused_with(found->words, *remembered, pass), pass);
  }
  const SealRequest request{.pass = pass, .by_order = false, .adopt = {}};
  auto answer = seal(guards, *found, request, &fences);
  if (surely_failed(guards, *found, pass, answer)) take_back(fences, request, found->words);
  if (!answer) return answer.error();
  if (const auto* refused = std::get_if<Refused>(&*answer)) {
    return refusal_of(client, *refused, pass);
  }
  const bool known = memory_of(*before, found->words) == Memory::Sealed;
  tell_standing(fences, request, {found->words},
                known && std::get<Sealed>(*answer).was_none ? core::Sealing::MadeAnew
                                                            : core::Sealing::Stands);
  return SealedTarget{found->words};
}

Outcome<WrittenTarget, Refusal> write(const Holder& holder, const WriteOptions& options) {
  const lib::Hold& hold = lib::hold_of(holder);
  const lib::ClientState& client = *hold.client();
  if (auto ok = client.usable(); !ok) return ok.error();
  const Pass pass = writing_pass(hold, options);
  return outcome_of(client, pass,
                    write_file({.path = options.path,
                                .body = options.body,
                                .if_match = options.if_match,
                                .follow = options.follow,
                                .want_digest = true},
                               pass, &client.opened->fences()));
}

Outcome<WrittenTarget, Refusal> publish(const Holder& holder, const PublishOptions& options) {
  const lib::Hold& hold = lib::hold_of(holder);
  const lib::ClientState& client = *hold.client();
  if (auto ok = client.usable(); !ok) return ok.error();
  const Pass pass = writing_pass(hold, options);
  return outcome_of(
      client, pass,
      publish_directory({.path = options.path, .staged = options.staged, .follow = options.follow},
                        pass, &client.opened->fences()));
}

Outcome<PushedTarget, Refusal> push(const Holder& holder, const PushOptions& options) {
  const lib::Hold& hold = lib::hold_of(holder);
  const lib::ClientState& client = *hold.client();
  if (auto ok = client.usable(); !ok) return ok.error();
  auto where = where_to_push(Git::in(options.directory), unless_empty(options.remote),
                             unless_empty(options.ref));
  if (!where) return where.error();
  if (!options.fence_ref.empty()) where->target.fence_prefix = options.fence_ref;
  if (options.seal_commits) where->target.fallback = GitFallback::SealCommit;
  if (!options.look.empty()) {
    const auto look = parse_look(options.look);
    if (!look) return invalid(cat("look ", quoted(options.look), " is not known: always or never"));
    where->target.look = *look;
  }
  const GitPush request{
      .pass = writing_pass(hold, options),
      .folder = options.directory,
      .target = std::move(where->target),
      .source = std::move(where->source),
      .limit = options.within,
      .fences = [&]() -> Result<api::Fences*> { return &client.opened->fences(); },
      .tell = {}};
  auto pushed = push_git(request);
  if (!pushed) return pushed.error();
  if (const auto* refused = std::get_if<Refused>(&pushed->answer)) {
    return refusal_of(client, *refused, request.pass);
  }
  return PushedTarget{.target = std::move(pushed->target),
                      .oid = std::move(pushed->oid),
                      .sealed = pushed->sealed,
                      .already = std::get<Written>(pushed->answer).already};
}

Outcome<Acted, Refusal> admit(const Holder& holder, const ActOptions& options,
                              const std::function<int()>& act) {
  const lib::Hold& hold = lib::hold_of(holder);
  const lib::ClientState& client = *hold.client();
  if (auto ok = client.usable(); !ok) return ok.error();
  const Pass pass = writing_pass(hold, options);
  const core::Offer offer = offer_of(pass, "");
  api::Act record;
  record.name = options.name;
  record.key = options.key;
  record.owner = pass.owner;
  auto gate = client.opened->fences().begin(record, offer);
  if (!gate) return gate.error();
  if (is_refusal(gate->verdict)) {
    return refusal_of(client, refused_by(options, *gate, pass), pass);
  }
  if (gate->verdict == core::Verdict::Done) return earlier_result(gate->act);
  record.exit_code = act();
  auto result = client.opened->fences().finish(record, offer);
  if (!result) return std::move(result.error()).during("recording the result of an act that ran");
  if (!is_refusal(result->verdict)) {
    return Acted{.result = *record.exit_code, .already = false, .token = pass.token.number()};
  }
  Refusal late = refusal_of(client, refused_by(options, *result, pass), pass);
  late.ran = true;
  return late;
}

}  // namespace guard
}  // namespace stint
