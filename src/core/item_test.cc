// Every cell of item.h's table, by enumeration: states x verbs, with the right epoch and with
// wrong ones.
#include "core/item.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace stint::core {
namespace {

constexpr Millis kTtl{1000};
const Context kContext{.floor = Token(), .now_wall = wall_from_ms(5000)};
const ClaimHash kClaim("aa");

Owner who(std::string_view name) { return Owner::parse(name).value(); }

Timer running() { return {TimerState::Running, Millis(500), kTtl}; }
Timer fired() { return {TimerState::Fired, Millis(-1), kTtl}; }

// As a claim with epoch 3 leaves it, or what came after it.
ItemRecord in(ItemState state) {
  ItemRecord record;
  Item& item = record.item;
  item.state = state;
  item.epoch = Token(3);
  item.attempts = 1;
  item.owner = who("ann");
  item.claim = kClaim;
  item.limits.claim_ttl = kTtl;
  switch (state) {
    case ItemState::Claimed: record.timers.alive = running(); break;
    case ItemState::Waiting:
    case ItemState::Parked: item.reason = Reason::Expired; break;  // the janitor's
    case ItemState::Failed: item.last = LastWord::Failed; break;
    case ItemState::Cancelled: item.claim = {}; break;
    case ItemState::Done:
      item.last = LastWord::Completed;
      item.digest = "d";
      break;
  }
  return record;
}

std::string said(const ItemDecision& d) {
  static const std::map<ItemOutcome, std::string> kWords = {{ItemOutcome::Done, "done"},
                                                            {ItemOutcome::Repeated, "repeated"},
                                                            {ItemOutcome::Nothing, "nothing"},
                                                            {ItemOutcome::Refused, "refused"},
                                                            {ItemOutcome::Lost, "lost"}};
  std::string out = kWords.at(d.outcome);
  if (d.cause != ItemCause::None) out += " " + std::string(word(d.cause));
  if (d.change) {
    out += d.change->dropped ? " gone" : " " + std::string(word(d.change->item.state));
    if (d.change->item.epoch != Token(3))
      out += " e" + std::to_string(d.change->item.epoch.number());
  }
  return out;
}

ItemOrder order(ItemOrder::What what) {
  return {
      .what = what, .expected = Token(3), .why = "w", .by = "op", .id = "o1", .to = {}, .hold = {}};
}

struct Row {
  std::string name;
  ItemVerb verb;
  // Waiting, Claimed, Parked, Failed, Cancelled, Done
  std::vector<std::string> cells;
};

std::vector<Row> table() {
  const Token e(3);
  const std::string gone = "lost never_issued";  // an operator's epoch is nobody's
  return {
      {"claim",
       ClaimItem{who("bob"), ClaimHash("bb"), kTtl},
       {"done claimed e4", "refused taken", "refused not_waiting", "refused not_waiting",
        "refused not_waiting", "refused not_waiting"}},
      {"start",
       StartItem{e},
       {"lost expired", "done claimed", "lost expired", "lost spoken", gone, "lost spoken"}},
      {"renew",
       RenewItem{e, kTtl},
       {"lost expired", "done claimed", "lost expired", "lost spoken", gone, "lost spoken"}},
      {"checkpoint",
       CheckpointItem{e, "m"},
       {"lost expired", "done claimed", "lost expired", "lost spoken", gone, "lost spoken"}},
      {"complete",
       CompleteItem{e, "d"},
       {"done done", "done done", "done done", "lost spoken", gone, "repeated"}},
      {"complete otherwise",
       CompleteItem{e, "other"},
       {"done done", "done done", "done done", "lost spoken", gone, "lost spoken"}},
      {"fail",
       FailItem{e, "", {}},
       {"done waiting", "done waiting", "done waiting", "repeated", gone, "lost spoken"}},
      {"later",
       FailItem{e, "", Millis(5)},
       {"done waiting", "done waiting", "done waiting", "lost spoken", gone, "lost spoken"}},
      {"release",
       ReleaseItem{e},
       {"repeated", "done waiting", "repeated", "lost spoken", gone, "lost spoken"}},
      {"tend", TendItem{}, {"nothing", "nothing", "nothing", "nothing", "nothing", "nothing"}},
      {"park",
       order(ItemOrder::What::Park),
       {"done parked e4", "done parked e4", "done parked e4", "refused finished",
        "refused finished", "refused finished"}},
      {"requeue",
       order(ItemOrder::What::Requeue),
       {"done waiting e4", "done waiting e4", "done waiting e4", "done waiting e4",
        "refused finished", "refused finished"}},
      {"reassign",
       order(ItemOrder::What::Reassign),
       {"done waiting e4", "done waiting e4", "done waiting e4", "done waiting e4",
        "refused finished", "refused finished"}},
      {"cancel",
       order(ItemOrder::What::Cancel),
       {"done cancelled e4", "done cancelled e4", "done cancelled e4", "refused finished",
        "repeated", "refused finished"}},
      {"replay",
       order(ItemOrder::What::Replay),
       {"refused not_finished", "refused not_finished", "done waiting e4", "done waiting e4",
        "done waiting e4", "done waiting e4"}},
      {"drop",
       order(ItemOrder::What::Drop),
       {"done gone e4", "done gone e4", "done gone e4", "done gone e4", "done gone e4",
        "done gone e4"}},
  };
}

// EVIDENCE-OF: G8 G10
TEST(ItemTable, EveryCell) {
  for (const Row& row : table()) {
    ASSERT_EQ(row.cells.size(), std::size(kItemStates));
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      EXPECT_EQ(said(decide(in(kItemStates[i]), row.verb, kContext)), row.cells[i])
          << row.name << " of an item that is " << word(kItemStates[i]);
    }
  }
}

ItemVerb with_epoch(const ItemVerb& verb, Token epoch) {
  ItemVerb out = verb;
  std::visit(
      [&](auto& v) {
        if constexpr (requires { v.expected; }) {
          v.expected = epoch;
        } else if constexpr (requires { v.epoch; }) {
          v.epoch = epoch;
        }
      },
      out);
  return out;
}

bool names_an_epoch(const ItemVerb& verb) {
  return !std::holds_alternative<ClaimItem>(verb) && !std::holds_alternative<TendItem>(verb);
}

// EVIDENCE-OF: G8
TEST(ItemTable, AnotherEpochIsLostInEveryState) {
  for (const Row& row : table()) {
    if (!names_an_epoch(row.verb)) continue;
    for (const ItemState state : kItemStates) {
      for (const std::uint64_t epoch : {0U, 1U, 2U, 4U, 99U}) {
        const ItemDecision d = decide(in(state), with_epoch(row.verb, Token(epoch)), kContext);
        EXPECT_EQ(d.outcome, ItemOutcome::Lost)
            << row.name << " with epoch " << epoch << " of an item that is " << word(state);
        EXPECT_FALSE(d.change.has_value());
      }
    }
  }
}

TEST(ItemClaim, ReplaysOnlyItsOwnRequest) {
  const ItemDecision again =
      decide(in(ItemState::Claimed), ClaimItem{who("ann"), kClaim, kTtl}, kContext);
  EXPECT_EQ(again.outcome, ItemOutcome::Repeated);
  // The same owner's other request is another's.
  EXPECT_EQ(
      said(decide(in(ItemState::Claimed), ClaimItem{who("ann"), ClaimHash("cc"), kTtl}, kContext)),
      "refused taken");
  // Not even when it has run out: the janitor's step comes first.
  ItemRecord out = in(ItemState::Claimed);
  out.timers.alive = fired();
  EXPECT_EQ(said(decide(out, ClaimItem{who("bob"), ClaimHash("cc"), kTtl}, kContext)),
            "refused taken");
}

TEST(ItemClaim, IsAboveTheFloor) {
  const ItemDecision d =
      decide(in(ItemState::Waiting), ClaimItem{who("bob"), ClaimHash("bb"), kTtl},
             {.floor = Token(100), .now_wall = {}});
  EXPECT_EQ(d.change->item.epoch, Token(101));
}

TEST(ItemClaim, NotBeforeItsTime) {
  ItemRecord record = in(ItemState::Waiting);
  record.timers.delay = running();
  const ItemVerb bid = ClaimItem{who("bob"), ClaimHash("bb"), kTtl};
  EXPECT_EQ(said(decide(record, bid, kContext)), "refused not_yet");
  record.timers.delay = fired();
  EXPECT_EQ(said(decide(record, bid, kContext)), "done claimed e4");
}

TEST(ItemClaim, AReservationIsForItsOwnerUntilItLapses) {
  ItemRecord record = in(ItemState::Waiting);
  record.item.reserved_for = who("bob");
  record.timers.delay = running();
  const ItemVerb ann = ClaimItem{who("ann"), ClaimHash("bb"), kTtl};
  EXPECT_EQ(said(decide(record, ann, kContext)), "refused not_yet");
  const ItemDecision bob = decide(record, ClaimItem{who("bob"), ClaimHash("bb"), kTtl}, kContext);
  ASSERT_TRUE(bob.change);
  EXPECT_EQ(bob.change->item.reason, Reason::TakenUp);
  record.timers.delay = fired();
  EXPECT_EQ(said(decide(record, ann, kContext)), "done claimed e4");
}

// Who waits for something before the work begins has nothing to report yet.
TEST(ItemClaim, ThatStartsLaterHasNoPaceUntilThen) {
  for (unsigned bits = 0; bits < 8; ++bits) {
    const bool start = (bits & 1U) != 0;
    const bool later = (bits & 2U) != 0;
    ItemRecord record = in(ItemState::Waiting);
    record.item.limits.progress_timeout = (bits & 4U) != 0 ? Millis(70) : Millis(0);
    const Millis pace = record.item.limits.progress_timeout;
    const ClaimItem bid{.owner = who("bob"),
                        .claim = ClaimHash("bb"),
                        .ttl = kTtl,
                        .start = start,
                        .starts_later = later};
    const ItemDecision claimed = decide(record, bid, kContext);
    ASSERT_TRUE(claimed.change);
    const bool runs = pace.count() > 0 && (start || !later);
    EXPECT_EQ(claimed.change->pace.op, runs ? TimerPlan::Op::Start : TimerPlan::Op::Stop) << bits;
    // However long it waits: only its claim can run out.
    record = {claimed.change->item, timers_after(record.timers, *claimed.change, kTtl)};
    EXPECT_EQ(record.timers.pace.state == TimerState::Running, runs) << bits;
    EXPECT_TRUE(live(record));
    if (start) continue;
    for (const ItemVerb& verb :
         {ItemVerb(StartItem{Token(4)}), ItemVerb(CheckpointItem{Token(4), "m"})}) {
      const ItemDecision begun = decide(record, verb, kContext);
      ASSERT_TRUE(begun.change);
      EXPECT_TRUE(begun.change->item.started);
      EXPECT_EQ(begun.change->pace.length, pace) << bits;
      const bool begins = begun.change->pace.op == TimerPlan::Op::Start;
      EXPECT_EQ(begins, pace.count() > 0) << bits;
    }
    EXPECT_EQ(decide(record, RenewItem{Token(4)}, kContext).change->pace.op, TimerPlan::Op::Keep);
  }
}

TEST(ItemRenew, NeedsARunningTimerAndProgress) {
  ItemRecord record = in(ItemState::Claimed);
  record.timers.alive = fired();
  EXPECT_EQ(said(decide(record, RenewItem{Token(3)}, kContext)), "lost expired");
  EXPECT_EQ(said(decide(record, StartItem{Token(3)}, kContext)), "lost expired");
  // Late, but not superseded.
  EXPECT_EQ(said(decide(record, CheckpointItem{Token(3), "m"}, kContext)), "done claimed");
  EXPECT_EQ(said(decide(record, CompleteItem{Token(3), "d"}, kContext)), "done done");
  record = in(ItemState::Claimed);
  record.timers.pace = fired();
  EXPECT_EQ(said(decide(record, RenewItem{Token(3)}, kContext)), "lost stalled");
  EXPECT_EQ(said(decide(record, CheckpointItem{Token(3), "m"}, kContext)), "lost stalled");
}

// ---- the janitor: policy x started x declared x reported x attempts

struct Case {
  Requeue requeue;
  bool started;
  bool reports;
  bool progress;
  bool used_up;
};

bool expected_rerun(const Case& c) {
  if (c.used_up || c.requeue == Requeue::Never) return false;
  return c.requeue == Requeue::Always || !c.started || (c.reports && !c.progress);
}

// EVIDENCE-OF: G8
TEST(ItemJanitor, EveryPolicy) {
  for (const Requeue requeue : {Requeue::Never, Requeue::IfNoProgress, Requeue::Always}) {
    for (unsigned bits = 0; bits < 32; ++bits) {
      const Case c{requeue, (bits & 1U) != 0, (bits & 2U) != 0, (bits & 4U) != 0, (bits & 8U) != 0};
      ItemRecord record = in(ItemState::Claimed);
      Item& item = record.item;
      item.limits.requeue = requeue;
      item.limits.max_attempts = c.used_up ? 1 : 2;
      item.started = c.started;
      item.reports = c.reports;
      if (c.progress) item.progress_epoch = item.epoch;
      const bool stalled = (bits & 16U) != 0;
      (stalled ? record.timers.pace : record.timers.alive) = fired();
      const ItemDecision d = decide(record, TendItem{}, kContext);
      ASSERT_TRUE(d.change.has_value());
      const Item& after = d.change->item;
      EXPECT_EQ(after.state, expected_rerun(c) ? ItemState::Waiting : ItemState::Parked) << bits;
      EXPECT_EQ(after.epoch, Token(3));  // a late result still counts
      EXPECT_EQ(after.reason, stalled ? Reason::Stalled : Reason::Expired);
      EXPECT_EQ(after.by, "janitor");
      EXPECT_FALSE(after.why.empty());
      EXPECT_EQ(said(decide({after, {}}, CompleteItem{Token(3), "d"}, kContext)), "done done");
    }
  }
}

// eliza#10854: one attempt means one.
TEST(ItemJanitor, HonoursOneAttempt) {
  ItemRecord record = in(ItemState::Claimed);
  record.item.limits.max_attempts = 1;
  record.item.limits.requeue = Requeue::Always;
  record.timers.alive = fired();
  EXPECT_EQ(said(decide(record, TendItem{}, kContext)), "done parked");
}

TEST(ItemFail, BacksOffThenFails) {
  ItemRecord record = in(ItemState::Claimed);
  record.item.limits.backoff = Millis(100);
  record.item.limits.backoff_max = Millis(250);
  ItemDecision d = decide(record, FailItem{Token(3), "no", {}}, kContext);
  EXPECT_EQ(d.change->delay, Millis(100));
  record.item.attempts = 2;
  d = decide(record, FailItem{Token(3), "no", {}}, kContext);
  EXPECT_EQ(d.change->delay, Millis(200));
  record.item.attempts = 3;
  d = decide(record, FailItem{Token(3), "no", {}}, kContext);
  EXPECT_EQ(d.change->item.state, ItemState::Failed);
  EXPECT_EQ(backoff_after(record.item.limits, 1000), Millis(250));
  // "Later" uses up nothing, however often.
  d = decide(record, FailItem{Token(3), "no", Millis(7)}, kContext);
  EXPECT_EQ(d.change->delay, Millis(7));
  EXPECT_EQ(d.change->item.attempts, 2U);
}

TEST(ItemOrders, ALiveClaimNeedsTheEpoch) {
  for (const auto what :
       {ItemOrder::What::Park, ItemOrder::What::Requeue, ItemOrder::What::Reassign,
        ItemOrder::What::Cancel, ItemOrder::What::Drop}) {
    ItemOrder blind = order(what);
    blind.expected.reset();
    EXPECT_EQ(said(decide(in(ItemState::Claimed), blind, kContext)), "refused live") << word(what);
    ItemRecord over = in(ItemState::Claimed);
    over.timers.alive = fired();
    EXPECT_EQ(decide(over, blind, kContext).outcome, ItemOutcome::Done) << word(what);
  }
}

TEST(ItemOrders, AreRecognisedWhenRepeated) {
  ItemRecord record = in(ItemState::Claimed);
  record.item = decide(record, order(ItemOrder::What::Park), kContext).change->item;
  EXPECT_EQ(decide(record, order(ItemOrder::What::Park), kContext).outcome, ItemOutcome::Repeated);
}

// EVIDENCE-OF: G3
TEST(ItemTimersAfter, AChangeAreNeverShorter) {
  const Timer left{TimerState::Running, Millis(18'000), Millis(20'000)};
  const ItemTimers before{.alive = left, .pace = left, .delay = {}};
  ItemChange change;
  change.alive = {TimerPlan::Op::Extend, Millis(5000)};
  EXPECT_EQ(timers_after(before, change, Millis(5000)).alive.remaining, Millis(18'000));
  EXPECT_EQ(timers_after(before, change, Millis(60'000)).alive.remaining, Millis(60'000));
  change.alive = TimerPlan::start(Millis(5000));
  change.pace = TimerPlan::stop();
  change.delay = Millis(7);
  const ItemTimers after = timers_after(before, change, Millis(5000));
  EXPECT_EQ(after.alive.remaining, Millis(5000));
  EXPECT_EQ(after.pace.state, TimerState::None);
  EXPECT_EQ(after.delay.remaining, Millis(7));
  EXPECT_EQ(timers_after(before, {}, Millis(0)).alive.remaining, Millis(18'000));
}

TEST(ItemLimits, AreChecked) {
  ItemLimits limits;
  EXPECT_TRUE(check_limits(limits));
  limits.max_attempts = 0;
  EXPECT_FALSE(check_limits(limits));
  limits = {};
  limits.claim_ttl = Millis(99);
  EXPECT_TRUE(check_limits(limits));  // of a record that stands
  EXPECT_FALSE(check_new_limits(limits));
  limits.claim_ttl = Millis(0);
  EXPECT_FALSE(check_limits(limits));
  limits = {};
  limits.backoff = Millis(-1);
  EXPECT_FALSE(check_limits(limits));
}

}  // namespace
}  // namespace stint::core
