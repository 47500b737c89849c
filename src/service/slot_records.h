// The records behind api::Slots (service/records.h has the layout): keys and values.
#pragma once

#include <string>
#include <string_view>

#include "api/slots.h"

namespace stint::service {

constexpr std::string_view kJobPrefix = "job/";
constexpr std::string_view kSlotPrefix = "slot/";
constexpr std::string_view kSkipPrefix = "skip/";
constexpr std::string_view kOncePrefix = "once/";
// Written when something was asked for by hand; schedulers watch it.
constexpr std::string_view kJobBell = "bell/jobs";

std::string job_key(std::string_view job);
std::string slots_prefix(std::string_view job);
std::string slot_row_key(std::string_view job, WallTime at);
std::string skips_prefix(std::string_view job);
std::string skip_row_key(std::string_view job, WallTime from);
std::string once_key(std::string_view key);
// The instant in the key of a slot's or a range's row.
Result<WallTime> instant_of(std::string_view row_key);

std::string encode(const core::Job& job);
std::string encode(const core::EndedSlot& slot);
std::string encode(const api::RangeRow& row);
std::string encode(const api::OnceRecord& record);

// Hostile or damaged values: Code::Unavailable, never a default.
Result<core::Job> decode_job(std::string_view value);
Result<core::EndedSlot> decode_slot(WallTime at, std::string_view value);
Result<api::RangeRow> decode_range(WallTime from, std::string_view value);
Result<api::OnceRecord> decode_once(std::string_view value);

// Names come from configuration files and command lines. Code::Invalid: nothing was changed.
Status check_job_name(std::string_view name);
Status check_once_key(std::string_view key);

}  // namespace stint::service
