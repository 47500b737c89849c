// What decisions on a job (slots.cc) and the steps of one slot (slot_steps.cc) share. Only for
// these two.
#pragma once

#include "core/slots.h"

namespace stint::core {

// What is open of a job must fit into one record.
inline constexpr std::size_t kMostDue = 30;

void add_due(Job& job, Slot slot);
void clear_active(Job& job);
EndedSlot ended_active(const ActiveSlot& active, SlotState state, WallTime now);
// A further attempt, if the job allows one and there is room for it.
bool try_again(Job& job, Slot slot, const JobRule& rule, WallTime now);
// An attempt has failed before: what keeps a further one from its start is no skip.
void end_as_failed(EndedSlot& ended);
// A paused job starts nothing but what is asked for by hand.
bool may_go(const Job& job, const Slot& slot);

}  // namespace stint::core
