// The lower part of `stint top`: the newest events, what was refused, the jobs, the queues, or the
// history of one lease. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/events.h"
#include "api/lease.h"
#include "api/queue.h"
#include "core/slots.h"

namespace stint::report {

enum class TopPane { Latest, Refused, Jobs, Queues };
TopPane next_pane(TopPane pane);
std::string_view title_of(TopPane pane);

struct TopJob {
  std::string name;
  std::string schedule;
  bool paused = false;
  std::optional<WallTime> next;
  bool readable = true;                // false: its schedule or its zone is not known here
  std::vector<core::SlotState> slots;  // oldest first
};
struct TopQueue {
  std::string name;
  api::QueueCounts counts;
};

struct TopFacts;
// At most `most` lines; the newest of what has an age.
std::vector<std::string> pane_lines(const TopFacts& facts, TopPane pane, std::size_t most);
std::vector<std::string> history_lines(const TopFacts& facts);

// A write or a verb that came too late or without a token, or somebody who was sent away.
bool tells_refusal(const api::Event& event);

// One line of the ledger, for people.
std::string event_line(const api::Event& event);

// "####x--#>": # ran, x failed, - skipped, ? nobody knows, > runs, o due.
std::string strip_of(const std::vector<core::SlotState>& slots);

}  // namespace stint::report
