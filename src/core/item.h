// The law of one item of a queue: what each verb does in each state. Pure: no clock, no I/O.
//
//               Waiting      Claimed            Parked       Failed    Cancelled   Done
//   claim       grant *      refuse             refuse       refuse    refuse      refuse
//   start       lost         mark               lost         lost      lost        lost
//   renew       lost         extend **          lost         lost      lost        lost
//   checkpoint  lost         note               lost         lost      lost        lost
//   complete    late ***     done               late ***     lost      lost        repeat ****
//   fail        late ***     wait/failed        late ***     repeat    lost        lost
//   release     late ***     wait               late ***     lost      lost        lost
//   tend        -            fired: wait/park   -            -         -           -
//   park        park         park               park         refuse    refuse      refuse
//   requeue     wait         wait               wait         wait      refuse      refuse
//   reassign    reserve      reserve            reserve      reserve   refuse      refuse
//   cancel      cancel       cancel             cancel       refuse    repeat      refuse
//   replay      refuse       refuse             wait         wait      wait        wait
//   drop        gone         gone               gone         gone      gone        gone
//
//   *    not before its time, and if it is reserved then only for that owner.
//   **   only while the claim's timer runs, and the progress timer has not fired.
//   ***  a late result counts until somebody claims, if it was the janitor who ended the claim: a
//        worker that has spoken for its epoch (complete, fail, release) cannot say something else.
//        A late release changes nothing.
//   **** the same epoch with the same digest: done; anything else: lost.
//
//   The progress timer runs from the claim on, and anew from start and from each checkpoint. Of a
//   claim that starts later it runs from start (or the first checkpoint) on: until then nothing is
//   being done that could stall, and the claim's own timer bounds it.
//
//   Every verb of a worker names its epoch: another is lost, and nothing changes. Only a claim and
//   an operator's verb move the epoch; an operator must name the present one while a claim is live.
//
// The caller commits a Change under the condition that the record and its timers are still as they
// were read, judged inside the commit. A conflict means: read and decide again.        G8 G10
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/names.h"
#include "base/timer.h"
#include "core/lease.h"

namespace stint::core {

// What becomes of an item whose claim ended without a word.
enum class Requeue { Never, IfNoProgress, Always };
std::string_view word(Requeue requeue);
std::optional<Requeue> parse_requeue(std::string_view word);

// An item's own limits, from its queue when it was put. The janitor goes by them.
struct ItemLimits {
  std::uint32_t max_attempts = 3;
  Millis claim_ttl{90'000};
  Millis progress_timeout{0};  // zero: none
  Requeue requeue = Requeue::IfNoProgress;
  Millis backoff{1000};  // after the first failure; doubled with each, up to backoff_max
  Millis backoff_max{600'000};
  bool operator==(const ItemLimits&) const = default;
};
Status check_limits(const ItemLimits& limits);
// Of what is new; records of before keep what they have.
constexpr Millis kShortestClaim{100};
Status check_claim_ttl(Millis ttl);
Status check_new_limits(const ItemLimits& limits);
Millis backoff_after(const ItemLimits& limits, std::uint32_t attempts);

enum class ItemState { Waiting, Claimed, Parked, Failed, Cancelled, Done };
constexpr ItemState kItemStates[] = {ItemState::Waiting, ItemState::Claimed,   ItemState::Parked,
                                     ItemState::Failed,  ItemState::Cancelled, ItemState::Done};
std::string_view word(ItemState state);
std::optional<ItemState> parse_item_state(std::string_view word);

// What the worker of the last epoch said last. Open: nothing that ends it.
enum class LastWord { Open, Completed, Failed, Later, Released };
std::string_view word(LastWord last);
std::optional<LastWord> parse_last_word(std::string_view word);

struct Item {
  ItemState state = ItemState::Waiting;
  Token epoch;                 // of the last claim, or of an operator's verb since
  std::uint32_t attempts = 0;  // used up, the present one included
  Owner owner;                 // of the last claim
  ClaimHash claim;             // so that a lost answer to a claim is recognised
  Reason reason = Reason::First;
  std::optional<WallTime> claimed_at;
  bool started = false;  // the work of this epoch has begun
  bool reports = false;  // by a worker that declared that it reports progress
  std::string progress;  // the last marker; outlives its epoch, for the successor
  std::optional<WallTime> progress_at;
  Token progress_epoch;
  LastWord last = LastWord::Open;  // of `epoch`
  std::string digest;              // of that word
  std::string why;                 // why it stands where it does, and on whose word
  std::string by;
  std::string order;   // the operator's order that led here, so that it can be asked for again
  Owner reserved_for;  // reassigned: only this owner may claim it, until the reservation lapses
  std::optional<WallTime> ended_at;  // Done, Failed, Cancelled, Parked
  ItemLimits limits;
};

struct ItemTimers {
  Timer alive;  // of the claim
  Timer pace;   // progress_timeout since the last progress; none of what has yet to start
  Timer delay;  // Waiting: not before this has fired; of a reservation: its end
};

struct ItemRecord {
  Item item;
  ItemTimers timers;
};

// Waiting, and anybody may claim it now.
bool claimable(const ItemRecord& record);
// A claim that has neither run out nor stalled.
bool live(const ItemRecord& record);

// ---- verbs

struct ClaimItem {
  Owner owner;
  ClaimHash claim;
  Millis ttl{0};  // zero: the item's own
  bool start = false;
  bool reports = false;
  bool starts_later = false;  // StartItem will say when the work begins
};
struct StartItem {
  Token epoch;
  bool reports = false;
};
struct RenewItem {
  Token epoch;
  Millis ttl{0};  // zero: the item's own
};
struct CheckpointItem {
  Token epoch;
  std::string marker;
};
struct CompleteItem {
  Token epoch;
  std::string digest;  // of result and follow-ups
};
struct FailItem {
  Token epoch;
  std::string why;
  std::optional<Millis> later;  // try again after this (zero: the backoff), no attempt used up
};
struct ReleaseItem {
  Token epoch;
};
// The janitor's step. It uses the item's own limits.
struct TendItem {};

struct ItemOrder {
  enum class What { Park, Requeue, Reassign, Cancel, Replay, Drop };
  What what = What::Park;
  std::optional<Token> expected;  // required while a claim is live
  std::string why;
  std::string by;
  std::string id;  // random, made for this order
  Owner to;        // Reassign: empty: anybody
  Millis hold{0};  // Reassign: how long it is reserved; zero: the item's claim ttl
};
std::string_view word(ItemOrder::What what);
std::optional<ItemOrder::What> parse_item_order(std::string_view word);
std::string_view event_word(ItemOrder::What what);  // of the event: "item_parked"

using ItemVerb = std::variant<ClaimItem, StartItem, RenewItem, CheckpointItem, CompleteItem,
                              FailItem, ReleaseItem, TendItem, ItemOrder>;

// ---- decisions

struct ItemChange {
  Item item;             // as it is afterwards
  bool dropped = false;  // there is none afterwards
  TimerPlan alive;
  TimerPlan pace;
  Millis delay{0};  // Waiting afterwards: not before this has passed; zero: at once
};

// The timers as they stand after a change, for who tells of it without looking again. `granted`:
// what the store gave for the claim.
ItemTimers timers_after(const ItemTimers& before, const ItemChange& change, Millis granted);

enum class ItemOutcome {
  Done,      // the change is to be written
  Repeated,  // it was done before; nothing to write
  Nothing,   // tend: nothing to do
  Refused,   // claim, operator: not in this state
  Lost,      // the epoch has moved on, or has ended
};

enum class ItemCause {
  None,
  NotYet,       // claim: not before its time, or reserved for another
  Taken,        // claim: it is claimed already
  NotWaiting,   // claim: it is parked, or finished
  Expired,      // the claim ran out
  Stalled,      // no progress for too long
  Superseded,   // claimed again since
  Ordered,      // an operator moved it
  Spoken,       // this epoch was completed, failed or released already
  NeverIssued,  // an epoch above the newest
  WrongEpoch,   // operator: not the expected epoch
  Live,         // operator: a claim is live, and no epoch was named
  Finished,     // operator: not for a finished item
  NotFinished,  // operator: replay of an item that is not finished
  NotThere,     // there is no such item, or it was dropped
};
std::string_view word(ItemCause cause);
std::optional<ItemCause> parse_item_cause(std::string_view word);

struct ItemDecision {
  ItemOutcome outcome = ItemOutcome::Lost;
  ItemCause cause = ItemCause::None;
  std::optional<ItemChange> change;  // Done only
};

ItemDecision decide(const ItemRecord& record, const ItemVerb& verb, const Context& context);

}  // namespace stint::core
