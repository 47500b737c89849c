// The JSON of the outer contract, written once: command line, server and page use the same.
// docs/reference/json.md describes it; fields are only ever added.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/events.h"
#include "api/fences.h"
#include "api/lease.h"
#include "api/slots.h"
#include "base/error.h"

namespace stint {
class JsonText;
}

namespace stint::api {

// The fields of a lease, for what has more beside them.
void put_lease(JsonText& out, const Lease& lease);
// `claim`: only in the answer to the acquire that made it.
std::string to_json(const Lease& lease, const std::optional<Claim>& claim = std::nullopt);
std::string to_json(const std::vector<Lease>& leases);
std::string to_json(const std::vector<PastGrant>& history);
// [{"target", "sealed", "token", "at_ms", "first_token", "since_ms"}]
std::string to_json(const std::vector<SealedTarget>& targets);
std::string to_json(const Event& event);
std::string to_json(const std::vector<SlotView>& slots);
// {"error": {"code", "message", ...}}; `lease`: who is in the way.
std::string to_json(const Error& error, const Lease* lease = nullptr, std::string_view cause = {});

// The same with a code that is none of ours.
std::string error_json(std::string_view code, std::string_view message);
// {"skipped": {"message", "lease"}}: waved off, which is no error.
std::string skip_json(std::string_view message, const Lease& lease);

using JsonField =
    std::pair<std::string, std::variant<std::string, std::int64_t, bool, std::nullptr_t>>;
std::string to_json(const std::vector<JsonField>& fields);
std::string to_json(const std::vector<std::vector<JsonField>>& rows);

}  // namespace stint::api
