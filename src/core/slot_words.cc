// The words of slots: states, keys, digests.
#include <array>
#include <utility>

#include "base/sha256.h"
#include "base/text.h"
#include "core/slots.h"

namespace stint::core {
namespace {

constexpr std::array<std::pair<SlotState, std::string_view>, 14> kWords = {{
    {SlotState::Due, "due"},
    {SlotState::Claimed, "claimed"},
    {SlotState::Starting, "starting"},
    {SlotState::Running, "running"},
    {SlotState::Ran, "ran"},
    {SlotState::Failed, "failed"},
    {SlotState::SkippedOverlap, "skipped_overlap"},
    {SlotState::SkippedHeld, "skipped_held"},
    {SlotState::SkippedStale, "skipped_stale"},
    {SlotState::SkippedLate, "skipped_late"},
    {SlotState::SkippedPaused, "skipped_paused"},
    {SlotState::SkippedLimit, "skipped_limit"},
    {SlotState::Quarantined, "quarantined"},
    {SlotState::Lost, "lost"},
}};

}  // namespace

std::string_view word(SlotState state) {
  for (const auto& [known, text] : kWords) {
    if (known == state) return text;
  }
  return {};
}

std::optional<SlotState> parse_slot_state(std::string_view text) {
  for (const auto& [state, known] : kWords) {
    if (known == text) return state;
  }
  return std::nullopt;
}

bool has_ended(SlotState state) {
  switch (state) {
    case SlotState::Due:
    case SlotState::Claimed:
    case SlotState::Starting:
    case SlotState::Running: return false;
    case SlotState::Ran:
    case SlotState::Failed:
    case SlotState::SkippedOverlap:
    case SlotState::SkippedHeld:
    case SlotState::SkippedStale:
    case SlotState::SkippedLate:
    case SlotState::SkippedPaused:
    case SlotState::SkippedLimit:
    case SlotState::Quarantined:
    case SlotState::Lost: return true;
  }
  return false;
}

bool is_skip(SlotState state) { return word(state).starts_with("skipped_"); }

std::string slot_key(std::string_view job, WallTime at) {
  std::string time = format_utc(at);
  // One that was asked for by hand lies between two seconds: it never meets a scheduled one.
  const auto ms = (at.time_since_epoch() % Millis(1000)).count();
  if (ms != 0) {
    time.pop_back();
    const std::string digits = std::to_string(1000 + (ms < 0 ? ms + 1000 : ms));
    time += cat(".", digits.substr(1), "Z");
  }
  return cat(job, "@", time);
}

std::string zone_name(const CronExpression& expression, const std::string& tz) {
  if (!expression.zone.empty()) return expression.zone;
  return tz.empty() ? "UTC" : tz;
}

std::string schedule_digest(std::string_view schedule, std::string_view zone) {
  constexpr std::size_t kDigits = 32;
  return to_hex(sha256(cat(schedule, '\n', zone))).substr(0, kDigits);
}

}  // namespace stint::core
