// Jobs and slots as they travel: what the server sends is what the client reads, and back.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/slots.h"
#include "base/json_value.h"

namespace stint::api {

std::string_view word(OnceRecord::State state);
std::string_view word(SlotAdded::What what);
std::string to_json(const core::Job& job);
std::string to_json(const core::Slot& slot);
std::string to_json(const core::EndedSlot& slot);
std::string to_json(const Decided& decided);
std::string to_json(const EndAnswer& end);
std::string to_json(const SlotAdded& added);
std::string to_json(const JobHistory& history);
std::string to_json(const OnceRecord& record);
std::string to_json(const core::JobRule& rule);
std::string to_json(const SlotProof& proof, std::string_view further = {});
std::string to_json(const SlotSkip& skip);

// Errors: Invalid.
Result<core::Job> parse_job(const JsonValue& value);
Result<core::Slot> parse_slot(const JsonValue& value);
Result<Decided> parse_decided(const JsonValue& value);
Result<EndAnswer> parse_end(const JsonValue& value);
Result<SlotAdded> parse_added(const JsonValue& value);
Result<JobHistory> parse_history(const JsonValue& value);
Result<OnceRecord> parse_once_record(const JsonValue& value);
Result<SlotSkip> parse_skip(const JsonValue& value);
core::SlotEnd read_slot_end(JsonFields& fields);

// A rule's expression and zone are made anew from its texts, by whoever reads it.
using FindZone = std::function<Result<core::Zone>(const std::string& name)>;
Result<core::JobRule> parse_rule(const JsonValue& value, const FindZone& find_zone);
// The rule that a job's record was last decided by, as far as the record tells it.
Result<core::JobRule> rule_of(const std::string& name, const core::Job& job,
                              const FindZone& find_zone);

}  // namespace stint::api
