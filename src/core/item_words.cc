// The words of item.h's enumerations, as they stand in records, JSON and on the command line.
#include "core/item.h"
#include "core/words.h"

namespace stint::core {
namespace {

constexpr Words<Requeue, 3> kRequeues = {{{Requeue::Never, "never"},
                                          {Requeue::IfNoProgress, "if-no-progress"},
                                          {Requeue::Always, "always"}}};

constexpr Words<ItemState, 6> kStatesOfItems = {{{ItemState::Waiting, "waiting"},
                                                 {ItemState::Claimed, "claimed"},
                                                 {ItemState::Parked, "parked"},
                                                 {ItemState::Failed, "failed"},
                                                 {ItemState::Cancelled, "cancelled"},
                                                 {ItemState::Done, "done"}}};

constexpr Words<LastWord, 5> kLastWords = {{{LastWord::Open, "open"},
                                            {LastWord::Completed, "completed"},
                                            {LastWord::Failed, "failed"},
                                            {LastWord::Later, "later"},
                                            {LastWord::Released, "released"}}};

constexpr Words<ItemCause, 15> kItemCauses = {{{ItemCause::None, ""},
                                               {ItemCause::NotYet, "not_yet"},
                                               {ItemCause::Taken, "taken"},
                                               {ItemCause::NotWaiting, "not_waiting"},
                                               {ItemCause::Expired, "expired"},
                                               {ItemCause::Stalled, "stalled"},
                                               {ItemCause::Superseded, "superseded"},
                                               {ItemCause::Ordered, "ordered"},
                                               {ItemCause::Spoken, "spoken"},
                                               {ItemCause::NeverIssued, "never_issued"},
                                               {ItemCause::WrongEpoch, "wrong_epoch"},
                                               {ItemCause::Live, "live"},
                                               {ItemCause::Finished, "finished"},
                                               {ItemCause::NotFinished, "not_finished"},
                                               {ItemCause::NotThere, "not_there"}}};

constexpr Words<ItemOrder::What, 6> kOrders = {{{ItemOrder::What::Park, "park"},
                                                {ItemOrder::What::Requeue, "requeue"},
                                                {ItemOrder::What::Reassign, "reassign"},
                                                {ItemOrder::What::Cancel, "cancel"},
                                                {ItemOrder::What::Replay, "replay"},
                                                {ItemOrder::What::Drop, "drop"}}};

constexpr Words<ItemOrder::What, 6> kOrderEvents = {{{ItemOrder::What::Park, "item_parked"},
                                                     {ItemOrder::What::Requeue, "item_requeued"},
                                                     {ItemOrder::What::Reassign, "item_reassigned"},
                                                     {ItemOrder::What::Cancel, "item_cancelled"},
                                                     {ItemOrder::What::Replay, "item_replayed"},
                                                     {ItemOrder::What::Drop, "item_dropped"}}};

}  // namespace

std::string_view word(Requeue requeue) { return word_of(kRequeues, requeue); }
std::optional<Requeue> parse_requeue(std::string_view word) { return value_of(kRequeues, word); }
std::string_view word(ItemState state) { return word_of(kStatesOfItems, state); }
std::optional<ItemState> parse_item_state(std::string_view word) {
  return value_of(kStatesOfItems, word);
}
std::string_view word(LastWord last) { return word_of(kLastWords, last); }
std::optional<LastWord> parse_last_word(std::string_view word) {
  return value_of(kLastWords, word);
}
std::string_view word(ItemCause cause) { return word_of(kItemCauses, cause); }
std::optional<ItemCause> parse_item_cause(std::string_view word) {
  return value_of(kItemCauses, word);
}
std::string_view word(ItemOrder::What what) { return word_of(kOrders, what); }
std::string_view event_word(ItemOrder::What what) { return word_of(kOrderEvents, what); }
std::optional<ItemOrder::What> parse_item_order(std::string_view word) {
  return value_of(kOrders, word);
}

}  // namespace stint::core
