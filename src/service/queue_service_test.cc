// What a queue on a store writes into the ledger, and which times it takes.
#include "service/queue_service.h"

#include <gtest/gtest.h>

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
