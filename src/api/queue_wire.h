// The verbs on queues as they travel: what the client writes the server reads, and back. The items
// themselves are written by api/queue_json.h.
#pragma once

#include <string>
#include <string_view>

#include "api/queue.h"
#include "api/queue_json.h"
#include "base/json_value.h"

namespace stint::api {

// ---- what is asked: the body of the request. Reading refuses nothing that check_put() and its
// like refuse; what cannot be read at all is told by fields.done().
std::string to_json(const PutRequest& request);
std::string to_json(const ClaimRequest& request);
// `further`: more fields, each with its comma in front.
std::string to_json(const ItemRef& ref, std::string_view further = {});
std::string to_json(const Completion& completion);
std::string to_json(const core::ItemId& id, const core::ItemOrder& order);
std::string to_json(const QueueConfig& config);
// ,"NAME":"text" or ,"NAME_base64":"..."; nothing if there is none.
std::string content_field(std::string_view name, const std::optional<std::string>& bytes);

Result<core::QueueName> read_queue(JsonFields& fields);
Result<core::ItemId> read_item_id(JsonFields& fields);
std::optional<std::string> read_content(JsonFields& fields, std::string_view name);
core::ItemLimits read_limits(const JsonValue& value, JsonFields& outer);
std::vector<FollowUp> read_follow_ups(JsonFields& fields);

// ---- what is answered. Errors: Invalid.
Result<QueueItem> parse_item(const JsonValue& value);
Result<PutAnswer> parse_put(const JsonValue& value);
Result<ClaimAnswer> parse_claim(const JsonValue& value);
Result<ItemDone> parse_item_done(const JsonValue& value);
Result<Tended> parse_tended(const JsonValue& value);
Result<std::pair<QueueConfig, QueueCounts>> parse_queue(const JsonValue& value);
// Of {"error":{"code":"lost","cause",...,"item"}}; empty: it is another error.
std::optional<ItemLost> parse_item_lost(const JsonValue& value);

}  // namespace stint::api
