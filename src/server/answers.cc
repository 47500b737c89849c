#include "server/answers.h"

#include "api/json.h"
#include "api/words.h"
#include "base/text.h"

namespace stint::server {
namespace {

// Whole seconds, never zero: what Retry-After can say.
std::string seconds(Millis time) {
  return cat(std::max<std::int64_t>(1, (time.count() + 999) / 1000));
}

std::string describe_verdict(const api::FenceAnswer& answer, const core::Offer& offer) {
  const std::string what = cat("token ", offer.token.number(), " of ", quoted(offer.resource));
  const std::string newest =
      answer.fence ? cat(" The fence stands at token ", answer.fence->token.number(), ".") : "";
  switch (answer.verdict) {
    case core::Verdict::Stale:
      return cat(what, " is stale: a newer one was issued or has sealed this target.", newest,
                 " Acquire the lease anew and start from what is there now.");
    case core::Verdict::Used: return cat(what, " has made its one write already.");
    case core::Verdict::NeverIssued: return cat(what, " was never issued by this store.", newest);
    case core::Verdict::NeverGranted:
      return cat(what, " was never granted to anybody: it belongs to a revocation or a transfer.");
    case core::Verdict::Foreign:
      return cat(what, " is of another resource or of another store's life.", newest);
    case core::Verdict::Restored:
      return cat(
          "the fence is above anything that the store has issued: the store went back in "
          "time. An operator must look at it.");
    case core::Verdict::NoToken:
      return "this target is fenced, and no token was given: hold the lease, and show its token.";
    case core::Verdict::Admitted:
    case core::Verdict::Done:
    case core::Verdict::AskStore: break;
  }
  return what;
}

bool is_refusal(core::Verdict verdict) {
  return verdict != core::Verdict::Admitted && verdict != core::Verdict::Done;
}

}  // namespace

int status_of(Code code) {
  switch (code) {
    case Code::Held:
    case Code::Used: return 409;
    case Code::Lost: return 410;
    case Code::Stale: return 412;
    case Code::NoToken: return 428;
    case Code::NeverIssued:
    case Code::NeverGranted:
    case Code::Foreign:
    case Code::Denied: return 403;
    case Code::Invalid: return 400;
    case Code::Unavailable: return 503;
    case Code::UnknownOutcome: return 504;
    case Code::Failed: break;
  }
  return 500;
}

Answer ok(std::string body) { return {.status = 200, .body = std::move(body)}; }

Answer error_answer(int status, const Error& error, std::optional<Millis> retry) {
  Answer out{.status = status, .body = api::to_json(error)};
  if (retry) out.fields.push_back({"Retry-After", seconds(*retry)});
  return out;
}

Answer fault_answer(const Error& error) {
  if (api::is_once_mismatch(error)) return error_answer(422, error);
  const bool again = error.code == Code::Unavailable;
  return error_answer(status_of(error.code), error,
                      again ? std::optional(Millis(1000)) : std::nullopt);
}

Answer acquire_answer(const api::AcquireAnswer& answer, const std::optional<Claim>& made,
                      WallTime now) {
  if (const auto* granted = std::get_if<api::Granted>(&answer)) {
    return ok(api::to_json(*granted, made));
  }
  const auto& refused = std::get<api::Refused>(answer);
  Answer out{.status = 409,
             .body = api::to_json(refused, cat(api::describe_holder(refused.lease, now),
                                               "; ask with wait_ms, or again later"))};
  if (refused.retry_in) out.fields.push_back({"Retry-After", seconds(*refused.retry_in)});
  return out;
}

Answer hold_answer(const api::HoldAnswer& answer, Token offered) {
  if (const auto* held = std::get_if<api::Held>(&answer)) return ok(api::to_json(*held));
  const auto& lost = std::get<api::Lost>(answer);
  return {.status = 410, .body = api::to_json(lost, api::describe_loss(lost, offered))};
}

Answer fence_answer(const api::FenceAnswer& answer, const core::Offer& offer) {
  if (!is_refusal(answer.verdict)) return ok(api::to_json(answer, nullptr));
  const Error error{api::code_of(answer.verdict), describe_verdict(answer, offer)};
  return {.status = status_of(error.code), .body = api::to_json(answer, &error)};
}

}  // namespace stint::server
