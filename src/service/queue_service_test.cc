// What a queue on a store writes into the ledger, and which times it takes.
#include "service/queue_service.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/text.h"
#include "service/once_records.h"
#include "store/shared_store.h"
#include "tests/schedule/desk.h"
#include "tests/support/queue_asks.h"

namespace stint::service {
namespace {

using What = core::ItemOrder::What;
constexpr Millis kTenYears{std::int64_t{3650} * 24 * 3600 * 1000};

class QueueDesk : public ::testing::Test {
 protected:
  core::ItemId put() { return queue_.put(test::put_request(name_)).value().id; }
  api::ItemRef claim() {
    auto answer = queue_.claim({.queue = name_,
                                .owner = Owner::parse("ann").value(),
                                .claim = Claim::make(desk_.random),
                                .ttl = std::chrono::minutes(1)});
    const auto& item = std::get<api::ClaimedItem>(answer.value()).item;
    return {item.id, item.item.epoch};
  }
  static core::ItemOrder order(What what) {
    core::ItemOrder out;
    out.what = what;
    out.why = "w";
    out.by = "op";
    return out;
  }
  std::string last_kind() { return desk_.ledger.list({}).value().back().kind; }

  test::Desk desk_;
  QueueService queue_{desk_.store, desk_.ledger, desk_.clock, desk_.random};
  const core::QueueName name_ = core::QueueName::parse("jobs").value();
};

TEST_F(QueueDesk, OrdersAreToldUnderTheirNames) {
  const core::ItemId id = put();
  for (const auto& [what, kind] : test::kOrderEvents) {
    const auto done = queue_.order(id, order(what));
    ASSERT_TRUE(done && std::holds_alternative<api::ItemDone>(*done)) << kind;
    EXPECT_EQ(last_kind(), kind);
  }
}

TEST_F(QueueDesk, NoTimeIsLongerThanAYearNorNegative) {
  put();
  const api::ItemRef ref = claim();
  for (const Millis wrong : {kTenYears, Millis(-5)}) {
    EXPECT_EQ(queue_.renew(ref, wrong).error().code, Code::Invalid);
    EXPECT_EQ(queue_.fail(ref, "w", wrong).error().code, Code::Invalid);
    core::ItemOrder to_bob = order(What::Reassign);
    to_bob.expected = ref.epoch;
    to_bob.to = Owner::parse("bob").value();
    to_bob.hold = wrong;
    EXPECT_EQ(queue_.order(ref.id, to_bob).error().code, Code::Invalid);
  }
  EXPECT_TRUE(queue_.renew(ref, Millis(0)).has_value());
  EXPECT_TRUE(queue_.fail(ref, "w", Millis(0)).has_value());
}

// What becomes of a commit is played by its number.
class Played final : public store::SharedStore {
 public:
  using SharedStore::SharedStore;
  enum class Fate { Made, Refused, Lost };
  void play(std::function<Fate(int number)> fate) {
    fate_ = std::move(fate);
    number_ = 0;
  }
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override {
    switch (fate_(++number_)) {
      case Fate::Made: break;
      case Fate::Refused: return unavailable("played");
      case Fate::Lost: return Error{Code::UnknownOutcome, "played"};
    }
    return SharedStore::commit(steps, sync);
  }

 private:
  std::function<Fate(int number)> fate_;
  int number_ = 0;
};

// Follow-ups whose contents do not fit into the commit that names them.
class WrittenAhead : public QueueDesk {
 protected:
  using Fate = Played::Fate;
  Result<api::ItemAnswer> complete(const std::function<Fate(int)>& fate,
                                   const std::optional<api::Once>& once = std::nullopt) {
    put();
    api::Completion completion{.ref = claim(), .result = "r", .then = {}};
    completion.ref.once = once;
    constexpr std::size_t kLong = 9000;
    for (int i = 0; i < 40; ++i) completion.then.push_back({name_, std::string(kLong, 'p')});
    store_.play(fate);
    return played_.complete(completion);
  }
  std::size_t pieces() {
    std::size_t out = 0;
    std::string after;
    while (true) {
      const auto page =
          desk_.store.scan({.prefix = "blob/", .after = after, .limit = 100, .backwards = false})
              .value()
              .entries;
      if (page.empty()) return out;
      out += page.size();
      after = page.back().key;
    }
  }

  Played store_{std::shared_ptr<store::Store>(&desk_.store, [](store::Store*) {})};
  QueueService played_{store_, desk_.ledger, desk_.clock, desk_.random};
};

TEST_F(WrittenAhead, IsRemovedWhereAnotherRequestHadTheKeyFirst) {
  const api::Once once{.key = "k", .digest = "d"};
  const auto told = complete(
      [&](int number) {
        if (number == 1) {
          EXPECT_TRUE(OnceService(desk_.store, desk_.clock).bind(once));
        }
        return Fate::Made;
      },
      once);
  ASSERT_FALSE(told.has_value());
  EXPECT_EQ(told.error().code, Code::Unavailable) << told.error().message;
  EXPECT_EQ(pieces(), 0U);
}

TEST_F(WrittenAhead, IsRemovedWhereNotAllOfItCouldBeWritten) {
  const auto told = complete([](int number) { return number == 2 ? Fate::Refused : Fate::Made; });
  ASSERT_FALSE(told.has_value());
  EXPECT_EQ(pieces(), 0U);
}

// The commit that names them is lost, and made by the next try with contents of its own.
TEST_F(WrittenAhead, IsRemovedWhenTheCommitThatWasLostCanNoLongerBeMade) {
  const auto plain = complete([](int) { return Fate::Made; });
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  const std::size_t named = pieces();
  ASSERT_GT(named, store::Store::kMaxSteps);
  const int ahead = static_cast<int>((named + 59) / 60);
  const auto told =
      complete([&](int number) { return number == ahead + 1 ? Fate::Lost : Fate::Made; });
  ASSERT_TRUE(told.has_value()) << told.error().message;
  EXPECT_EQ(std::get<api::ItemDone>(*told).follow_ups.size(), 40U);
  EXPECT_EQ(pieces(), 2 * named);
}

// The second half of a forgetting fails.
class NoHistory final : public store::SharedStore {
 public:
  using SharedStore::SharedStore;
  Result<store::Reading> scan(const ScanRange& range) override {
    if (range.prefix.starts_with("hist/")) return unavailable("away");
    return SharedStore::scan(range);
  }
};

TEST(LeaseBooks, WhatIsForgottenIsToldAsDoneWhateverBecomesOfItsHistory) {
  test::Desk desk;
  const ResourceName r = ResourceName::parse("r").value();
  const Claim claim = Claim::make(desk.random);
  auto answer = desk.leases.acquire({.resource = r,
                                     .owner = Owner::parse("ann").value(),
                                     .claim = claim,
                                     .terms = {.ttl = std::chrono::minutes(1)},
                                     .note = {},
                                     .retake = {},
                                     .count_refusal = false});
  const Token token = std::get<api::Granted>(answer.value()).lease.token;
  desk.clock.advance(std::chrono::minutes(2));
  NoHistory store(std::shared_ptr<store::Store>(&desk.store, [](store::Store*) {}));
  LeaseService leases(store, desk.ledger,
                      begin_life(store, desk.random, desk.clock.wall(), nullptr, {}).value(),
                      desk.clock, desk.random, nullptr);
  const auto forgotten = leases.forget(r);
  ASSERT_TRUE(forgotten.has_value()) << forgotten.error().message;
  EXPECT_EQ(*forgotten, token);
  EXPECT_EQ(leases.get(r).value().token, Token());
}

}  // namespace
}  // namespace stint::service
