#include "guard/http/answers.h"

#include "api/json.h"
#include "base/text.h"
#include "guard/words.h"

namespace stint::guard::http {
namespace {

using net::http::Answer;
using net::http::RequestHead;

int status_of(core::Verdict verdict) {
  switch (verdict) {
    case core::Verdict::Stale: return 412;
    case core::Verdict::Used: return 409;
    case core::Verdict::NoToken: return 428;
    case core::Verdict::NeverIssued:
    case core::Verdict::NeverGranted:
    case core::Verdict::Foreign:
    case core::Verdict::Restored: return 403;
    case core::Verdict::Admitted:
    case core::Verdict::Done:
    case core::Verdict::AskStore: break;
  }
  return 500;
}

NotShown wrong(std::string message) {
  return {.answer = error_answer(400, invalid(std::move(message)))};
}
NotShown missing(std::string_view name) {
  return {.answer = error_answer(
              428, {Code::NoToken,
                    cat("this upstream is fenced, and the request has no ", name,
                        ". Send Fencing-Token, Fencing-Resource and Fencing-Generation of "
                        "the lease that you hold (inside 'stint run': STINT_TOKEN, "
                        "STINT_RESOURCE, STINT_GENERATION). Nothing was forwarded.")}),
          .verdict = core::Verdict::NoToken};
}

std::variant<ResourceName, NotShown> resource_of(const RequestHead& head,
                                                 const std::optional<ResourceName>& resource) {
  const auto named = head.fields.first("Fencing-Resource");
  if (!named && !resource) return missing("Fencing-Resource");
  if (!named) return *resource;
  auto parsed = ResourceName::parse(*named);
  if (!parsed) return wrong(cat("Fencing-Resource: ", parsed.error().message));
  if (resource && *parsed != *resource) {
    return NotShown{.answer = error_answer(
                        403, {Code::Foreign, cat("this upstream is fenced for the resource ",
                                                 quoted(resource->text()),
                                                 ". Hold that one. Nothing was forwarded.")}),
                    .verdict = core::Verdict::Foreign};
  }
  return *parsed;
}

}  // namespace

bool is_safe(const std::string& method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

std::variant<Shown, NotShown> read_shown(const RequestHead& head,
                                         const std::optional<ResourceName>& resource) {
  for (const char* name : {"Fencing-Token", "Fencing-Resource", "Fencing-Generation",
                           "Fencing-Mode", "Fencing-Key", "Fencing-Order"}) {
    if (head.fields.all(name).size() > 1) return wrong(cat(name, " is given more than once"));
  }
  const auto token = head.fields.first("Fencing-Token");
  if (!token || token->empty()) return missing("Fencing-Token");
  const auto number = Token::parse(*token);
  if (!number || !number->issued()) return wrong("Fencing-Token is no token");
  auto name = resource_of(head, resource);
  if (auto* no = std::get_if<NotShown>(&name)) return std::move(*no);
  const auto life = head.fields.first("Fencing-Generation");
  if (!life || life->empty()) return missing("Fencing-Generation");
  const auto generation = Generation::parse(*life);
  if (!generation) return wrong("Fencing-Generation is no generation");
  Shown out{.pass = {.resource = std::get<ResourceName>(std::move(name)),
                     .token = *number,
                     .generation = *generation,
                     .claim = {},
                     .owner = {}}};
  out.by_order = head.fields.first("Fencing-Order") == "1";
  const auto mode = head.fields.first("Fencing-Mode").value_or("at-least");
  if (mode != "at-least" && mode != "once") return wrong("Fencing-Mode is at-least or once");
  if (mode == "once") {
    out.pass.mode = core::FenceMode::Once;
    out.pass.key = head.fields.first("Fencing-Key").value_or("");
    if (out.pass.key.size() > api::kMostKeyBytes) return wrong("Fencing-Key is too long");
  }
  return out;
}

Answer error_answer(int status, const Error& error, std::optional<int> retry) {
  Answer out{.status = status, .body = api::to_json(error)};
  if (retry) out.fields.push_back({"Retry-After", cat(*retry)});
  return out;
}

Answer refusal_answer(const Refused& refused, const Pass& pass) {
  return {.status = status_of(refused.verdict), .body = to_json(refused, pass)};
}

Answer store_answer(const Error& error) {
  if (error.code == Code::Invalid) return error_answer(400, error);
  return error_answer(503,
                      {Code::Unavailable,
                       cat("the store cannot be asked, so nothing was forwarded: ", error.message)},
                      1);
}

Answer sealed_answer(const Pass& pass, const Manner& manner) {
  return {.status = 200,
          .body = api::to_json(
              std::vector<api::JsonField>{{"sealed", true},
                                          {"resource", pass.resource.text()},
                                          {"token", static_cast<std::int64_t>(pass.token.number())},
                                          {"narrow", manner.cut},
                                          {"warn", manner.warn}})};
}

Answer ready_answer(bool ready, const Manner& manner) {
  return {.status = ready ? 200 : 503,
          .body = api::to_json(
              std::vector<api::JsonField>{{"ready", ready},
                                          {"guard", std::string("stint")},
                                          {"drain_ms", std::int64_t{manner.drain.count()}},
                                          {"narrow", manner.cut},
                                          {"warn", manner.warn}})};
}

}  // namespace stint::guard::http
