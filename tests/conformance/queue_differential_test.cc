// Items on every store against the pure law: the same random verbs must get the same answers.
//
// Only what does not hang on the moment is compared on stores with a real clock: all times are an
// hour there. On a clock that the test moves, time passes as well.
#include <iostream>

#include "base/random.h"
#include "tests/conformance/item_model.h"
#include "tests/conformance/queue_fixture.h"

namespace stint::testing {
namespace {

using core::ItemOutcome;
using What = core::ItemOrder::What;

class QueueDifferential : public QueueTest {
 protected:
  static std::string line(bool yes, core::ItemCause cause, const core::Item& item) {
    return std::string(yes ? "yes " : "no ") + std::string(core::word(cause)) + " " +
           std::string(core::word(item.state)) + " e" + std::to_string(item.epoch.number()) + " a" +
           std::to_string(item.attempts) + " " + std::string(core::word(item.last)) + " " +
           item.progress;
  }
  void compare(const core::ItemDecision& law, const Result<api::ItemAnswer>& answer) {
    const core::ItemCause cause = lost(answer);
    const bool yes = law.outcome == ItemOutcome::Done || law.outcome == ItemOutcome::Repeated;
    if (model_->dropped) {
      EXPECT_FALSE(queue_.show(*id_).value().has_value());
      EXPECT_EQ(cause, law.cause);
      return;
    }
    EXPECT_EQ(line(cause == core::ItemCause::None, cause, show(*id_).item),
              line(yes, law.cause, model_->record().item));
  }
  void pass_time(SeededRandom& random);
  void claim_both(SeededRandom& random);
  void tend_both();
  void worker_both(SeededRandom& random);
  void order_both(SeededRandom& random);
  void play(std::uint64_t seed, int verbs);

  std::optional<core::ItemId> id_;
  std::optional<ItemModel> model_;
  std::string queue_text_;
  int steps_ = 0;
};
STINT_QUEUES_ON_EVERY_STORE(QueueDifferential);

// The service settles what has run out before it claims: so does the law.
void QueueDifferential::tend_both() {
  ASSERT_TRUE(queue_.tend(queue_name(queue_text_)));
  model_->play(core::TendItem{});
  compare({ItemOutcome::Done, core::ItemCause::None, std::nullopt},
          api::ItemAnswer(api::ItemDone{.item = show(*id_)}));
}

void QueueDifferential::claim_both(SeededRandom& random) {
  tend_both();
  const Claim claim = client_.base.claim();
  const Owner who = owner(random.below(2) == 0 ? "ann" : "bob");
  const bool later = random.below(2) == 0;
  const core::ItemDecision law = model_->play(
      core::ClaimItem{.owner = who, .claim = claim.hash(), .ttl = kHour, .starts_later = later});
  const auto answer = queue_.claim({.queue = queue_name(queue_text_),
                                    .owner = who,
                                    .claim = claim,
                                    .ttl = kHour,
                                    .starts_later = later});
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  const bool yes = std::holds_alternative<api::ClaimedItem>(*answer);
  EXPECT_EQ(line(yes, core::ItemCause::None, show(*id_).item),
            line(law.outcome == ItemOutcome::Done, core::ItemCause::None, model_->record().item));
}

void QueueDifferential::worker_both(SeededRandom& random) {
  const Token now = model_->record().item.epoch;
  // The present epoch, the one before, one that was never given.
  const std::uint64_t shift = random.below(6);
  const Token epoch(shift == 0                       ? now.number() + 1
                    : shift == 1 && now.number() > 1 ? now.number() - 1
                                                     : now.number());
  if (!epoch.issued()) return;
  const api::ItemRef ref{*id_, epoch};
  const api::Completion end = completion(ref, random.below(4) == 0 ? "other" : "same");
  switch (random.below(7)) {
    case 0: return compare(model_->play(core::StartItem{epoch, true}), queue_.start(ref, true));
    case 1: return compare(model_->play(core::RenewItem{epoch, kHour}), queue_.renew(ref, kHour));
    case 2:
      return compare(model_->play(core::CheckpointItem{epoch, "m"}),
                     queue_.checkpoint(ref, "m", "data"));
    case 3:
      return compare(model_->play(core::CompleteItem{epoch, api::digest_of(end)}),
                     queue_.complete(end));
    case 4: return compare(model_->play(core::FailItem{epoch, "w", {}}), queue_.fail(ref, "w", {}));
    case 5:
      return compare(model_->play(core::FailItem{epoch, "w", kHour}), queue_.fail(ref, "w", kHour));
    default: return compare(model_->play(core::ReleaseItem{epoch}), queue_.release(ref));
  }
}

void QueueDifferential::order_both(SeededRandom& random) {
  constexpr std::array<What, 6> kAll = {What::Park,   What::Requeue, What::Reassign,
                                        What::Cancel, What::Replay,  What::Drop};
  // A drop ends the play: rarely.
  const std::uint64_t dice = random.below(41);
  core::ItemOrder one = order(kAll[dice == 40 ? 5 : dice % 5]);
  if (random.below(3) > 0 && model_->record().item.epoch.issued()) {
    one.expected = Token(model_->record().item.epoch.number() + random.below(5) / 4);
  }
  one.id = "order-" + std::to_string(steps_);
  if (random.below(2) == 0) one.to = owner("ann");
  one.hold = kHour;
  compare(model_->play(one), queue_.order(*id_, one));
}

void QueueDifferential::pass_time(SeededRandom& random) {
  const auto* const fake = dynamic_cast<const FakeClock*>(&site_->clock());
  if (fake == nullptr) return;
  const Millis passed(static_cast<std::int64_t>(random.below(5'400'000)));
  const MonoTime until = fake->mono() + passed;
  while (fake->mono() < until) site_->tick();
  model_->now += std::chrono::duration_cast<Millis>(passed + (fake->mono() - until));
}

void QueueDifferential::play(std::uint64_t seed, int verbs) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  SeededRandom random(seed);
  queue_text_ = "q" + std::to_string(seed);
  core::ItemLimits limits;
  limits.claim_ttl = kHour;
  limits.backoff = kHour;
  limits.backoff_max = kHour * 4;
  limits.requeue = static_cast<core::Requeue>(random.below(3));
  limits.max_attempts = static_cast<std::uint32_t>(1 + random.below(4));
  if (random.below(3) == 0) limits.progress_timeout = kHour * 2;
  id_ = put("x", limits, queue_text_);
  model_.emplace(limits);
  for (int i = 0; i < verbs && !HasFailure() && !model_->dropped; ++i, ++steps_) {
    const std::uint64_t dice = random.below(16);
    SCOPED_TRACE("turn " + std::to_string(i) + ", " + std::to_string(dice));
    if (dice < 4) claim_both(random);
    if (dice >= 4 && dice < 12) worker_both(random);
    if (dice >= 12 && dice < 14) order_both(random);
    if (dice == 14) tend_both();
    if (dice == 15) pass_time(random);
  }
}

// EVIDENCE-OF: G8 G10
TEST_P(QueueDifferential, AnswersAsTheLawDoes) {
  for (std::uint64_t seed = 1; seed <= 6 && !HasFailure(); ++seed) play(seed, 70);
  std::cout << steps_ << " turns on " << GetParam().name << " and on the law\n";
}

}  // namespace
}  // namespace stint::testing
