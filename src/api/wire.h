// The answers of the verbs as JSON and back: what the server sends is what the client reads.
// A lease's own fields are those of api/json.h; here is what travels beside them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/events.h"
#include "api/fences.h"
#include "api/leases.h"
#include "base/json_value.h"

namespace stint::api {

std::string to_json(const Granted& granted, const std::optional<Claim>& claim);
std::string to_json(const Held& held);
std::string to_json(const Refused& refused, std::string_view message);
std::string to_json(const Lost& lost, std::string_view message);
std::string to_json(const TokenWord& word);
std::string to_json(const core::Fence& fence);
std::string to_json(const Act& act);
// A refusal has `error` beside the rest.
std::string to_json(const FenceAnswer& answer, const Error* refusal);
// "[...]"
std::string to_json(const std::vector<std::string>& texts);

// Errors: Invalid.
Result<Lease> parse_lease(const JsonValue& value);
Result<Granted> parse_granted(const JsonValue& value);
Result<Held> parse_held(const JsonValue& value);
Result<PastGrant> parse_past(const JsonValue& value);
Result<Event> parse_event(const JsonValue& value);
Result<TokenWord> parse_word(const JsonValue& value);
Result<core::Fence> parse_fence(const JsonValue& value);
Result<Act> parse_act(const JsonValue& value);
Result<FenceAnswer> parse_fence_answer(const JsonValue& value);
std::optional<core::Offer> read_offer(JsonFields& fields);
std::string to_json(const core::Offer& offer);

// {"error": {...}}: the code and the words; and what stands beside them.
struct Told {
  Error error;
  std::optional<Lease> lease;
  core::Cause cause = core::Cause::None;
  std::optional<Millis> retry_in;
  std::optional<Nanos> store_time;
};
Result<Told> parse_error(const JsonValue& value);
Result<Told> parse_error(std::string_view body);

std::string_view word(core::Verdict verdict);
std::optional<core::Verdict> parse_verdict(std::string_view word);
Code code_of(core::Verdict verdict);  // of a refusal

}  // namespace stint::api
