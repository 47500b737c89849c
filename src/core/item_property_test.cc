// Random verbs by three workers, a janitor and an operator, on a simulated clock, against a second,
// naive telling of the law: who was given which epoch, and what was said in its name.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "base/text.h"
#include "tests/conformance/item_model.h"

namespace stint::core {
namespace {

using stint::testing::ItemModel;

struct Action {
  int kind = 0;
  int worker = 0;  // 0..2
  int pause = 0;   // ms before it
};

void showValue(const Action& a, std::ostream& out) {
  out << cat("{kind ", a.kind, ", worker ", a.worker, ", pause ", a.pause, "}");
}

rc::Gen<Action> any_action() {
  using rc::gen::inRange;
  return rc::gen::build<Action>(rc::gen::set(&Action::kind, inRange(0, 16)),
                                rc::gen::set(&Action::worker, inRange(0, 3)),
                                rc::gen::set(&Action::pause, inRange(0, 80)));
}

class Play {
 public:
  explicit Play(const ItemLimits& limits) : item_(limits), limits_(limits) {}

  void act(const Action& a) {
    item_.now += Millis(a.pause);
    const Item before = item_.record().item;
    const bool was_live = live(item_.record());
    const ItemVerb verb = verb_of(a);
    const ItemDecision d = item_.play(verb);
    const Item after = item_.record().item;
    // G1: never back; and it moves by a claim or an operator alone.
    RC_ASSERT(after.epoch >= before.epoch);
    const bool claimed = std::holds_alternative<ClaimItem>(verb) && d.outcome == ItemOutcome::Done;
    const bool ordered = std::holds_alternative<ItemOrder>(verb) && d.outcome == ItemOutcome::Done;
    RC_ASSERT((after.epoch > before.epoch) == (claimed || ordered));
    // Never a live claim taken by another claim, nor ended by the janitor.
    if (claimed) RC_ASSERT(!was_live && before.state == ItemState::Waiting);
    if (std::holds_alternative<TendItem>(verb) && was_live) RC_ASSERT(!d.change);
    if (claimed) epochs_[a.worker] = after.epoch;
    // Worker 1 starts later: what it has not begun cannot stall.
    const bool stalled = after.reason == Reason::Stalled && before.reason != Reason::Stalled;
    if (stalled && before.epoch == epochs_[1]) RC_ASSERT(before.started);
    // G8: whoever changes something in a worker's name has the newest epoch, granted to it.
    if (is_worker(verb) && d.outcome == ItemOutcome::Done) {
      RC_ASSERT(epoch_of(verb) == before.epoch);
      RC_ASSERT(!before.claim.empty());
    }
    // G10: once, until an operator opens it.
    if (after.state == ItemState::Done && before.state != ItemState::Done) {
      RC_ASSERT(std::holds_alternative<CompleteItem>(verb));
      RC_ASSERT(!done_);
      done_ = true;
    }
    if (before.state == ItemState::Done && after.state != ItemState::Done) {
      RC_ASSERT(ordered && std::get<ItemOrder>(verb).what == ItemOrder::What::Replay);
      done_ = false;
    }
    // The janitor never gives an item more attempts than it has.
    if (std::holds_alternative<TendItem>(verb) && d.change && after.state == ItemState::Waiting) {
      RC_ASSERT(before.attempts < limits_.max_attempts);
    }
    // What was set aside has a reason.
    if (after.state == ItemState::Parked) RC_ASSERT(!after.why.empty());
  }
  bool over() const { return item_.dropped; }

 private:
  static bool is_worker(const ItemVerb& verb) {
    return !std::holds_alternative<ClaimItem>(verb) && !std::holds_alternative<TendItem>(verb) &&
           !std::holds_alternative<ItemOrder>(verb);
  }
  static Token epoch_of(const ItemVerb& verb) {
    Token out;
    std::visit(
        [&](const auto& v) {
          if constexpr (requires { v.epoch; }) out = v.epoch;
        },
        verb);
    return out;
  }
  ItemVerb verb_of(const Action& a) {
    const Owner who = Owner::parse(cat("w", a.worker)).value();
    const Token epoch = epochs_[a.worker];
    const auto order = [&](ItemOrder::What what) {
      return ItemOrder{.what = what,
                       .expected = item_.record().item.epoch,
                       .why = "w",
                       .by = "op",
                       .id = cat("o", ++orders_),
                       .to = {},
                       .hold = {}};
    };
    switch (a.kind) {
      case 0:
      case 1:
      case 2:
        return ClaimItem{.owner = who,
                         .claim = ClaimHash(cat("c", ++claims_)),
                         .ttl = Millis(50),
                         .starts_later = a.worker == 1};
      case 3: return StartItem{epoch, a.worker == 0};
      case 4: return RenewItem{epoch, Millis(50)};
      case 5: return CheckpointItem{epoch, "m"};
      case 6:
      case 7: return CompleteItem{epoch, "d"};
      case 8: return FailItem{epoch, "w", {}};
      case 9: return FailItem{epoch, "w", Millis(10)};
      case 10: return ReleaseItem{epoch};
      case 11:
      case 12: return TendItem{};
      case 13: return order(ItemOrder::What::Park);
      case 14: return order(ItemOrder::What::Requeue);
      default: return order(ItemOrder::What::Replay);
    }
  }

  ItemModel item_;
  const ItemLimits limits_;
  std::map<int, Token> epochs_;
  bool done_ = false;
  int claims_ = 0;
  int orders_ = 0;
};

// EVIDENCE-OF: G8 G10
TEST(ItemProperty, TheLawHoldsForAnyOrderOfVerbs) {
  EXPECT_TRUE(rc::check("items", [] {
    ItemLimits limits;
    limits.claim_ttl = Millis(50);
    limits.backoff = Millis(10);
    limits.backoff_max = Millis(40);
    limits.max_attempts = *rc::gen::inRange<std::uint32_t>(1, 5);
    limits.requeue = *rc::gen::element(Requeue::Never, Requeue::IfNoProgress, Requeue::Always);
    limits.progress_timeout = *rc::gen::element(Millis(0), Millis(60));
    Play play(limits);
    for (const Action& a : *rc::gen::container<std::vector<Action>>(any_action())) {
      if (!play.over()) play.act(a);
    }
  }));
}

}  // namespace
}  // namespace stint::core
