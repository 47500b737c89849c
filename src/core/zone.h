// A time zone as a value: which offset from UTC its clock has, and when that changes. Pure; where
// the data come from is app/zones.h.
//
// A zone is a table of past and planned changes, and behind its last one a rule that goes on for
// ever (the POSIX TZ string at the end of a TZif file), so that the year 9999 needs no table.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stint::core {

// No zone's clock is further from UTC than this (RFC 9636).
constexpr std::chrono::seconds kWidestOffset = std::chrono::hours(26);

// One of the two dates of a rule: "M3.5.0/2", "J60", "59".
struct ZoneRuleDate {
  enum class Kind { MonthWeekDay, DayWithoutLeap, DayOfYear };
  Kind kind = Kind::MonthWeekDay;
  unsigned month = 1;
  unsigned week = 1;     // 5: the last
  unsigned weekday = 0;  // 0: Sunday
  unsigned day = 0;      // of the two other kinds
  std::chrono::seconds time = std::chrono::hours(2);
};

// "CET-1CEST,M3.5.0,M10.5.0/3"
struct ZoneRule {
  std::chrono::seconds standard{0};
  struct Summer {
    std::chrono::seconds offset{0};
    ZoneRuleDate starts;
    ZoneRuleDate ends;
  };
  std::optional<Summer> summer;
};
Result<ZoneRule> parse_zone_rule(std::string_view text);

struct ZoneChange {
  std::chrono::sys_seconds at;
  std::chrono::seconds offset{0};  // from then on
};

// A stretch of time with one offset.
struct ZoneSpan {
  std::chrono::sys_seconds begin;
  std::chrono::sys_seconds end;  // the first instant after it
  std::chrono::seconds offset{0};
  // The latest time that the clock had shown up to `begin`: below the clock's own at `begin` after
  // a gap, above it after an overlap.
  std::chrono::local_seconds reached;

  std::chrono::local_seconds local(std::chrono::sys_seconds t) const {
    return std::chrono::local_seconds(t.time_since_epoch() + offset);
  }
  std::chrono::sys_seconds instant(std::chrono::local_seconds t) const {
    return std::chrono::sys_seconds(t.time_since_epoch() - offset);
  }
};

class Zone {
 public:
  // UTC.
  Zone() : Zone(std::chrono::seconds(0), {}, std::nullopt) {}
  // REQUIRES: `changes` ascend.
  Zone(std::chrono::seconds first_offset, const std::vector<ZoneChange>& changes,
       std::optional<ZoneRule> afterwards);

  // The stretch that holds `t`. Neighbours may have the same offset.
  ZoneSpan at(std::chrono::sys_seconds t) const;

 private:
  ZoneSpan by_rule(std::chrono::sys_seconds t) const;
  std::vector<ZoneSpan> table_;  // without holes; the last one is open
  std::optional<ZoneRule> rule_;
};

// The content of a TZif file (RFC 9636), version 2 or later, checked strictly.
Result<Zone> parse_tzif(std::string_view content);

}  // namespace stint::core
