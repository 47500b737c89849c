// Every cell of the lease table: all situations that a record can be in, times all verbs.
//
// kSituations builds the records, kGrid says by hand what each cell answers, and the properties are
// checked over the whole product.
#include "core/lease.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "base/text.h"

namespace stint::core {
namespace {

constexpr Token kToken{7};
const ClaimHash kClaim("c1a1");
const ClaimHash kOther("0000");
const WallTime kNow = wall_from_ms(1'700'000'000'000);
const Terms kBidTerms{.ttl = Millis(30'000), .max_hold = {}, .at_least = {}, .cooldown = {}};

Owner owner(std::string_view name) { return Owner::parse(name).value(); }

Timer running(int ms) { return {TimerState::Running, Millis(ms), Millis(30'000)}; }
Timer fired(int ms) { return {TimerState::Fired, Millis(-ms), Millis(30'000)}; }

Record granted(Timers timers) {
  Record record;
  record.own = Ownership{.token = kToken,
                         .owner = owner("ann"),
                         .claim = kClaim,
                         .reason = Reason::First,
                         .by = {},
                         .why = {},
                         .order = {},
                         .acquired_at = kNow - Millis(60'000),
                         .terms = {Millis(30'000), Millis(0), Millis(0), Millis(0)}};
  record.pulse.standing = Standing::Granted;
  record.work = {.note = "n", .progress = "p", .progress_at = kNow, .progress_token = kToken};
  record.timers = timers;
  return record;
}

Record ended(Standing standing, Timers timers) {
  Record record = granted(timers);
  record.pulse = {standing, kNow - Millis(1000)};
  return record;
}

// Belongs to nobody, or to an heir who has not claimed it yet.
Record moved(Standing standing, Reason reason, std::string_view heir, Timers timers) {
  Record record = ended(standing, timers);
  record.own->owner = heir.empty() ? Owner() : owner(heir);
  record.own->claim = {};
  record.own->reason = reason;
  record.own->order = "order-1";
  if (standing == Standing::Reserved) record.pulse.ended_at.reset();
  return record;
}

Record with_terms(Record record) {
  record.own->terms = {Millis(30'000), Millis(300'000), Millis(20'000), Millis(10'000)};
  return record;
}

struct Situation {
  std::string name;
  State state;
  Record record;
};

std::vector<Situation> situations() {
  const Timer r = running(5000);
  const Timer f = fired(5000);
  const Timer no;
  return {
      {"never", State::Free, {}},
      {"held", State::Held, granted({r, no, no, no})},
      {"held with terms", State::Held,
       with_terms(granted({r, running(90'000), r, running(15'000)}))},
      {"held, rested", State::Held, with_terms(granted({r, running(90'000), f, running(15'000)}))},
      {"expired", State::Free, granted({f, no, no, no})},
      {"expired, at_least runs", State::Resting, with_terms(granted({f, r, r, f}))},
      {"expired, cooling", State::Resting, with_terms(granted({f, r, f, r}))},
      {"expired, all fired", State::Free, with_terms(granted({f, f, f, f}))},
      {"max_hold fired", State::Free, with_terms(granted({r, f, f, f}))},
      {"max_hold fired, cooling", State::Resting, with_terms(granted({r, f, f, r}))},
      {"released", State::Free, ended(Standing::Released, {no, no, no, no})},
      {"released, at_least runs", State::Resting,
       with_terms(ended(Standing::Released, {no, no, r, no}))},
      {"stalled", State::Free, ended(Standing::Stalled, {no, no, no, no})},
      {"stalled, cooling", State::Resting, with_terms(ended(Standing::Stalled, {no, no, f, r}))},
      {"revoked", State::Free, moved(Standing::Revoked, Reason::Revoked, "", {no, no, no, no})},
      {"revoked, cooling", State::Resting,
       with_terms(moved(Standing::Revoked, Reason::Revoked, "", {no, no, no, r}))},
      {"reserved", State::Reserved,
       moved(Standing::Reserved, Reason::Transferred, "heir", {r, no, no, no})},
      {"reserved, cooling", State::Reserved,
       with_terms(moved(Standing::Reserved, Reason::Transferred, "heir", {r, no, f, r}))},
      {"reserved, at_least runs", State::Reserved,
       with_terms(moved(Standing::Reserved, Reason::Transferred, "heir", {r, no, r, f}))},
      {"lapsed", State::Free,
       moved(Standing::Reserved, Reason::Transferred, "heir", {f, no, no, no})},
      {"lapsed, cooling", State::Resting,
       with_terms(moved(Standing::Reserved, Reason::Transferred, "heir", {f, no, no, r}))},
      {"fenced", State::Free, moved(Standing::Released, Reason::Released, "", {no, no, no, no})},
      {"fenced, at_least runs", State::Resting,
       with_terms(moved(Standing::Released, Reason::Released, "", {no, no, r, no}))},
  };
}

struct NamedVerb {
  std::string name;
  Verb verb;
};

Acquire bid(std::string_view who, const ClaimHash& claim, const ClaimHash& retake = {}) {
  return {.owner = owner(who), .claim = claim, .terms = kBidTerms, .note = "new", .retake = retake};
}

Proof right() { return {kToken, kClaim, owner("ann")}; }
Order order(Token expected, std::string id) { return {expected, "because", "op", std::move(id)}; }

// The columns of the grid, in its order.
std::vector<NamedVerb> right_verbs() {
  return {{"acquire", bid("bob", kOther)},
          {"acquire, same label", bid("ann", kOther)},
          {"acquire, same claim", bid("ann", kClaim)},
          {"acquire, re-take", bid("ann", kOther, kClaim)},
          {"acquire, heir", bid("heir", kOther)},
          {"renew", Renew{right(), Millis(30'000)}},
          {"release", Release{right(), false}},
          {"release --fence", Release{right(), true}},
          {"stall", Stall{right()}},
          {"progress", Progress{right(), "half"}},
          {"check", Check{right()}},
          {"transfer", Transfer{order(kToken, "order-2"), owner("zoe"), {}}},
          {"revoke", Revoke{order(kToken, "order-2"), Reason::Revoked}}};
}

// G granted, P replayed, R refused, N renewed, E ended, e ended before, M moved, T noted, H holds;
// L and a cause: lost (x expired, r released, v revoked, s stalled, m max_hold, n not holder,
// b restored, i never issued, w wrong token, p superseded, t transferred).
// clang-format off
const std::map<std::string, std::string> kGrid = {
    {"never",                   "G G G G G Li Li Li Li Li Li Lw Lw"},
    {"held",                    "R R P G R N E E E T H M M"},
    {"held with terms",         "R R P G R N E E E T H M M"},
    {"held, rested",            "R R P G R N E E E T H M M"},
    {"expired",                 "G G G G G Lx e E e Lx Lx M M"},
    {"expired, at_least runs",  "R R R R R Lx e E e Lx Lx M M"},
    {"expired, cooling",        "R R R R R Lx e E e Lx Lx M M"},
    {"expired, all fired",      "G G G G G Lm e E e Lm Lm M M"},
    {"max_hold fired",          "G G G G G Lm e E e Lm Lm M M"},
    {"max_hold fired, cooling", "R R R R R Lm e E e Lm Lm M M"},
    {"released",                "G G G G G Lr e E e Lr Lr M M"},
    {"released, at_least runs", "R R R R R Lr e E e Lr Lr M M"},
    {"stalled",                 "G G G G G Ls e E e Ls Ls M M"},
    {"stalled, cooling",        "R R R R R Ls e E e Ls Ls M M"},
    {"revoked",                 "G G G G G Ln Ln Ln Ln Ln Ln M M"},
    {"revoked, cooling",        "R R R R R Ln Ln Ln Ln Ln Ln M M"},
    {"reserved",                "R R R R G Ln Ln Ln Ln Ln Ln M M"},
    {"reserved, cooling",       "R R R R R Ln Ln Ln Ln Ln Ln M M"},
    {"reserved, at_least runs", "R R R R R Ln Ln Ln Ln Ln Ln M M"},
    {"lapsed",                  "G G G G G Ln Ln Ln Ln Ln Ln M M"},
    {"lapsed, cooling",         "R R R R R Ln Ln Ln Ln Ln Ln M M"},
    {"fenced",                  "G G G G G Ln Ln Ln Ln Ln Ln M M"},
    {"fenced, at_least runs",   "R R R R R Ln Ln Ln Ln Ln Ln M M"},
};
// clang-format on

std::string cause_letter(Cause cause) {
  switch (cause) {
    case Cause::None: return "-";
    case Cause::Expired: return "x";
    case Cause::Superseded: return "p";
    case Cause::Released: return "r";
    case Cause::Transferred: return "t";
    case Cause::Revoked: return "v";
    case Cause::Stalled: return "s";
    case Cause::MaxHold: return "m";
    case Cause::Restored: return "b";
    case Cause::NeverIssued: return "i";
    case Cause::NotHolder: return "n";
    case Cause::WrongToken: return "w";
  }
  return "?";
}

std::string letters(const Decision& decision) {
  switch (decision.outcome) {
    case Outcome::Granted: return "G";
    case Outcome::Replayed: return "P";
    case Outcome::Renewed: return "N";
    case Outcome::Ended: return "E";
    case Outcome::EndedBefore: return "e";
    case Outcome::Moved: return "M";
    case Outcome::MovedBefore: return "m";
    case Outcome::Noted: return "T";
    case Outcome::Holds: return "H";
    case Outcome::Refused: return "R";
    case Outcome::Lost: return "L" + cause_letter(decision.cause);
  }
  return "?";
}

std::vector<Proof> wrong_proofs() {
  return {{kToken, kOther, owner("ann")},   {kToken, ClaimHash(), owner("ann")},
          {kToken, kClaim, owner("bob")},   {Token(6), kClaim, owner("ann")},
          {Token(1), kClaim, owner("ann")}, {Token(8), kClaim, owner("ann")},
          {Token(), kClaim, std::nullopt}};
}

std::vector<NamedVerb> proved_by(const Proof& proof) {
  return {{"renew", Renew{proof, Millis(30'000)}},   {"release", Release{proof, false}},
          {"release --fence", Release{proof, true}}, {"stall", Stall{proof}},
          {"progress", Progress{proof, "x"}},        {"check", Check{proof}}};
}

std::vector<NamedVerb> all_verbs() {
  std::vector<NamedVerb> all = right_verbs();
  for (const Proof& proof : wrong_proofs()) {
    for (NamedVerb& verb : proved_by(proof)) all.push_back(std::move(verb));
  }
  for (const Token token : {Token(), Token(6), Token(8)}) {
    all.push_back({"transfer, wrong token", Transfer{order(token, "o"), owner("zoe"), {}}});
    all.push_back({"revoke, wrong token", Revoke{order(token, "o"), Reason::Cancelled}});
  }
  all.push_back({"acquire, wrong re-take", bid("bob", kOther, ClaimHash("beef"))});
  all.push_back({"transfer again", Transfer{order(kToken, "order-1"), owner("zoe"), {}}});
  all.push_back({"revoke again", Revoke{order(kToken, "order-1"), Reason::Revoked}});
  all.push_back({"renew shorter", Renew{right(), Millis(1)}});
  return all;
}

void each_cell(
    const std::function<void(const Situation&, const NamedVerb&, Token, const Decision&)>& f) {
  for (const Situation& s : situations()) {
    for (const NamedVerb& v : all_verbs()) {
      for (const Token floor : {Token(), Token(7), Token(5000)}) {
        SCOPED_TRACE(cat(s.name, " / ", v.name, " / floor ", floor.number()));
        f(s, v, floor, decide(s.record, v.verb, {.floor = floor, .now_wall = kNow}));
      }
    }
  }
}

bool writes_nothing(const Change& c) {
  const auto keep = [](const TimerPlan& plan) { return plan.op == TimerPlan::Op::Keep; };
  return !c.own && !c.pulse && !c.work && !c.past && keep(c.alive) && keep(c.cap) && keep(c.rest) &&
         keep(c.cool);
}

TEST(LeaseTable, HasTheExpectedStateInEverySituation) {
  for (const Situation& s : situations())
    EXPECT_EQ(word(state_of(s.record)), word(s.state)) << s.name;
}

// EVIDENCE-OF: G2 G3 G8
TEST(LeaseTable, AnswersEveryCellAsWrittenByHand) {
  const std::vector<NamedVerb> verbs = right_verbs();
  std::size_t cells = 0;
  for (const Situation& s : situations()) {
    ASSERT_TRUE(kGrid.contains(s.name)) << s.name;
    const auto row = split(kGrid.at(s.name), ' ');
    ASSERT_EQ(row.size(), verbs.size()) << s.name;
    for (std::size_t i = 0; i < verbs.size(); ++i, ++cells) {
      const Decision d = decide(s.record, verbs[i].verb, {.floor = Token(), .now_wall = kNow});
      EXPECT_EQ(letters(d), row[i]) << s.name << " / " << verbs[i].name;
    }
  }
  EXPECT_EQ(cells, kGrid.size() * verbs.size());
}

// EVIDENCE-OF: G8
TEST(LeaseTable, TurnsEveryWrongProofAwayWithItsCause) {
  for (const Situation& s : situations()) {
    if (!s.record.own) continue;
    const bool nobodys = s.record.own->owner.empty();
    const bool heirs = s.record.pulse.standing == Standing::Reserved;
    const bool fenced = nobodys && s.record.own->reason == Reason::Released;
    const std::string before = fenced ? "Lr" : nobodys ? "Lv" : heirs ? "Lt" : "Lp";
    const std::vector<std::string> expected = {"Ln", "Ln", "Ln", before, "Lp", "Li", "Lp"};
    const std::vector<Proof> proofs = wrong_proofs();
    for (std::size_t i = 0; i < proofs.size(); ++i) {
      for (const NamedVerb& v : proved_by(proofs[i])) {
        const Decision d = decide(s.record, v.verb, {.floor = Token(), .now_wall = kNow});
        // 0 also the second time, when the first one moved the token.
        const bool again = fenced && i == 3 && std::holds_alternative<Release>(v.verb);
        EXPECT_EQ(letters(d), again ? "e" : expected[i])
            << s.name << " / " << v.name << " / proof " << i;
      }
    }
  }
}

// A number proves nothing: only what is remembered outside of the store shows that it went back.
// EVIDENCE-OF: G12
TEST(LeaseTable, TakesANumberAboveTheNewestForARestoreOnlyWhereItIsRememberedAsIssued) {
  for (const Situation& s : situations()) {
    const Token newest = s.record.own ? s.record.own->token : Token();
    const Proof proof{newest.next(), kClaim, std::nullopt};
    for (const NamedVerb& v : proved_by(proof)) {
      const auto cause = [&](Token remembered) {
        return decide(s.record, v.verb,
                      {.floor = Token(), .remembered = remembered, .now_wall = kNow})
            .cause;
      };
      EXPECT_EQ(cause(Token()), Cause::NeverIssued) << s.name << " / " << v.name;
      EXPECT_EQ(cause(newest), Cause::NeverIssued) << s.name << " / " << v.name;
      EXPECT_EQ(cause(newest.next()), Cause::Restored) << s.name << " / " << v.name;
    }
  }
}

// EVIDENCE-OF: G8
TEST(LeaseTable, CarriesAnOrderOutOnlyOnTheExpectedTokenAndOnlyOnce) {
  for (const Situation& s : situations()) {
    const auto said = [&](const Verb& verb) {
      return letters(decide(s.record, verb, {.floor = Token(), .now_wall = kNow}));
    };
    for (const Token token : {Token(), Token(6), Token(8)}) {
      EXPECT_EQ(said(Transfer{order(token, "o"), owner("zoe"), {}}), "Lw") << s.name;
      EXPECT_EQ(said(Revoke{order(token, "o"), Reason::Revoked}), "Lw") << s.name;
    }
    // A lost answer asked for again: the token has moved on since, by this very order.
    const bool by_it = s.record.own && s.record.own->order == "order-1";
    const std::string again = by_it ? "m" : "Lw";
    EXPECT_EQ(said(Transfer{order(Token(6), "order-1"), owner("zoe"), {}}), again) << s.name;
    EXPECT_EQ(said(Revoke{order(Token(6), "order-1"), Reason::Revoked}), again) << s.name;
  }
}

TEST(LeaseTable, WritesNothingUnlessSomethingWasDone) {
  each_cell([](const Situation&, const NamedVerb&, Token, const Decision& d) {
    const bool silent = d.outcome == Outcome::Refused || d.outcome == Outcome::Lost ||
                        d.outcome == Outcome::Replayed || d.outcome == Outcome::Holds ||
                        d.outcome == Outcome::EndedBefore || d.outcome == Outcome::MovedBefore;
    EXPECT_EQ(writes_nothing(d.change), silent);
    EXPECT_EQ(d.cause != Cause::None, d.outcome == Outcome::Lost);
  });
}

// EVIDENCE-OF: G1
TEST(LeaseTable, MovesTheTokenOnlyUpAndOnlyByTheVerbsThatMay) {
  each_cell([](const Situation& s, const NamedVerb& v, Token floor, const Decision& d) {
    if (!d.change.own) return;
    const Token before = s.record.own ? s.record.own->token : Token();
    const auto* release = std::get_if<Release>(&v.verb);
    const bool may =
        std::holds_alternative<Acquire>(v.verb) || std::holds_alternative<Transfer>(v.verb) ||
        std::holds_alternative<Revoke>(v.verb) || (release != nullptr && release->fence);
    EXPECT_TRUE(may);
    if (d.change.own->reason == Reason::TakenUp) {
      EXPECT_EQ(d.change.own->token, before);
    } else {
      EXPECT_EQ(d.change.own->token, std::max(before, floor).next());
    }
  });
}

TEST(LeaseTable, ChangesOwnAndPulseTogetherSoThatAWatcherOfOneSeesBoth) {
  each_cell([](const Situation&, const NamedVerb&, Token, const Decision& d) {
    if (d.change.own) {
      EXPECT_TRUE(d.change.pulse.has_value());
    }
  });
}

// EVIDENCE-OF: G3
TEST(LeaseRenew, OnlyExtendsTheTimersOfAHeldLease) {
  each_cell([](const Situation& s, const NamedVerb& v, Token, const Decision& d) {
    if (!std::holds_alternative<Renew>(v.verb) || d.outcome != Outcome::Renewed) return;
    EXPECT_EQ(s.state, State::Held);
    EXPECT_EQ(d.change.alive.op, TimerPlan::Op::Extend);
    EXPECT_TRUE(d.change.cool.op == TimerPlan::Op::Extend ||
                d.change.cool.op == TimerPlan::Op::Keep);
    EXPECT_EQ(d.change.cap.op, TimerPlan::Op::Keep);
    EXPECT_EQ(d.change.rest.op, TimerPlan::Op::Keep);
    EXPECT_FALSE(d.change.own || d.change.pulse || d.change.work || d.change.past);
  });
}

// EVIDENCE-OF: G2
TEST(LeaseTable, LeavesAtLeastRunningForEverybodyButRevoke) {
  each_cell([](const Situation& s, const NamedVerb& v, Token, const Decision& d) {
    if (s.record.timers.rest.state != TimerState::Running) return;
    const bool cut =
        d.change.rest.op == TimerPlan::Op::Stop || d.change.rest.op == TimerPlan::Op::Start;
    EXPECT_EQ(cut, std::holds_alternative<Revoke>(v.verb) && d.outcome == Outcome::Moved);
  });
}

TEST(LeaseTable, KeepsEveryEndedGrantInTheHistoryOnce) {
  each_cell([](const Situation& s, const NamedVerb&, Token, const Decision& d) {
    const bool moves_on = d.change.own && d.change.own->reason != Reason::TakenUp && s.record.own;
    EXPECT_EQ(d.change.past.has_value(), moves_on);
    if (!d.change.past) return;
    EXPECT_EQ(d.change.past->own.token, s.record.own->token);
    EXPECT_TRUE(d.change.past->ended_at.has_value());
    EXPECT_LE(*d.change.past->ended_at, kNow);
  });
}

}  // namespace
}  // namespace stint::core
