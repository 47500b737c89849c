// The words of lease.h's enumerations, as they stand in records, JSON and on the command line.
#include "core/lease.h"
#include "core/words.h"

namespace stint::core {
namespace {

constexpr Words<Reason, 10> kReasons = {{{Reason::First, "first"},
                                         {Reason::Released, "released"},
                                         {Reason::Expired, "expired"},
                                         {Reason::Retaken, "retaken"},
                                         {Reason::Transferred, "transferred"},
                                         {Reason::TakenUp, "taken_up"},
                                         {Reason::Revoked, "revoked"},
                                         {Reason::Cancelled, "cancelled"},
                                         {Reason::Stalled, "stalled"},
                                         {Reason::Recovered, "recovered"}}};

constexpr Words<Standing, 5> kStandings = {{{Standing::Granted, "granted"},
                                            {Standing::Reserved, "reserved"},
                                            {Standing::Released, "released"},
                                            {Standing::Stalled, "stalled"},
                                            {Standing::Revoked, "revoked"}}};

constexpr Words<Cause, 12> kCauses = {{{Cause::None, ""},
                                       {Cause::Expired, "expired"},
                                       {Cause::Superseded, "superseded"},
                                       {Cause::Released, "released"},
                                       {Cause::Transferred, "transferred"},
                                       {Cause::Revoked, "revoked"},
                                       {Cause::Stalled, "stalled"},
                                       {Cause::MaxHold, "max_hold"},
                                       {Cause::NeverIssued, "never_issued"},
                                       {Cause::Restored, "restored"},
                                       {Cause::NotHolder, "not_holder"},
                                       {Cause::WrongToken, "wrong_token"}}};

constexpr Words<State, 4> kStates = {{{State::Free, "free"},
                                      {State::Held, "held"},
                                      {State::Reserved, "reserved"},
                                      {State::Resting, "resting"}}};

}  // namespace

std::string_view word(Reason reason) { return word_of(kReasons, reason); }
std::string_view word(Standing standing) { return word_of(kStandings, standing); }
std::string_view word(Cause cause) { return word_of(kCauses, cause); }
std::string_view word(State state) { return word_of(kStates, state); }
std::optional<Reason> parse_reason(std::string_view text) { return value_of(kReasons, text); }
std::optional<Standing> parse_standing(std::string_view text) { return value_of(kStandings, text); }

}  // namespace stint::core
