// The SQLSTATEs of a refusal: one for each verdict (docs/reference/sqlstates.md). The class ST is
// one that the standard and PostgreSQL leave to others.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "core/fence.h"

namespace stint::guard {

struct SqlState {
  std::string_view state;
  core::Verdict verdict;
  std::string_view word;  // as stint.verdict() says it
};

constexpr std::array<SqlState, 8> kSqlStates = {{
    {"ST001", core::Verdict::Stale, "stale"},
    {"ST002", core::Verdict::Used, "used"},
    {"ST003", core::Verdict::NeverIssued, "never_issued"},
    {"ST004", core::Verdict::NeverGranted, "never_granted"},
    {"ST005", core::Verdict::Foreign, "foreign"},
    {"ST006", core::Verdict::NoToken, "no_token"},
    {"ST007", core::Verdict::Restored, "restored"},
    {"ST008", core::Verdict::AskStore, "ask_store"},
}};

constexpr std::optional<core::Verdict> verdict_of_sqlstate(std::string_view state) {
  for (const SqlState& known : kSqlStates) {
    if (known.state == state) return known.verdict;
  }
  return std::nullopt;
}

}  // namespace stint::guard
