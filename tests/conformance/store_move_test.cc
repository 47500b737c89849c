// Moving all leases from one store into another: out of each store, and into each.
#include "service/store_move.h"

#include <gtest/gtest.h>

#include "tests/conformance/queue_fixture.h"
#include "tests/support/lying_stores.h"

namespace stint::testing {
namespace {

// Fails every commit after so many.
class CutShort final : public test::SharedStore {
 public:
  CutShort(std::shared_ptr<store::Store> store, int commits)
      : SharedStore(std::move(store)), left_(commits) {}
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override {
    if (left_-- <= 0) return unavailable("cut short");
    return SharedStore::commit(steps, sync);
  }

 private:
  int left_;
};

std::uint64_t granted(Client& client, std::string_view name, Millis ttl) {
  const auto answer = client.bid(name, "ann", client.claim(), plain_terms(ttl));
  if (!answer) return 0;
  const auto* yes = std::get_if<api::Granted>(&*answer);
  return yes == nullptr ? 0 : yes->lease.token.number();
}

void revoke(Client& client, std::string_view name, std::uint64_t token) {
  EXPECT_TRUE(
      client.leases.revoke({resource(name), Token(token), "test", "op"}, core::Reason::Revoked));
}

class StoreMove : public ::testing::TestWithParam<StoreCase> {
 protected:
  Result<service::Moved> move(store::Store& from, store::Store& to) {
    return service::move_leases(from, to, nullptr, random_, clock_,
                                {.from_name = "old", .to_name = "new", .by = "op"});
  }
  std::unique_ptr<Site> other() { return stores().front().make(); }

  os::SystemRandom random_;
  FakeClock clock_;
};

// Tokens 3 for "a" (revoked) and 1 for "b", which has run out.
void use(Site& site) {
  Client client(site);
  EXPECT_EQ(granted(client, "b", site.short_ttl()), 1U);
  EXPECT_EQ(granted(client, "a", kHour), 1U);
  revoke(client, "a", 1);
  EXPECT_EQ(granted(client, "a", kHour), 3U);
  EXPECT_TRUE(site.eventually([&] { return !client.leases.get(resource("b")).value().held; }));
}

void expect_moved(Site& old_site, Site& new_site, const Generation& before) {
  Client there(new_site);
  EXPECT_GT(granted(there, "a", kHour), 4U);
  EXPECT_EQ(granted(there, "b", kHour), 2U);
  EXPECT_NE(there.leases.generation(), before);
  const auto life = service::read_life(*there.store).value();
  EXPECT_EQ(life->meta.ancestors.back(), before);
  const auto history = there.leases.history(resource("b"), 10).value();
  ASSERT_EQ(history.size(), 2U);
  EXPECT_EQ(history[1].ended, core::Reason::Expired);
  EXPECT_TRUE(history[1].ended_at.has_value());
  EXPECT_EQ(there.leases.history(resource("a"), 10).value().size(), 5U);
  // The old one is closed: to newcomers and to those who had it open.
  const auto old_store = old_site.open();
  os::SystemRandom random;
  const auto again = service::begin_life(*old_store, random, old_site.clock().wall(), nullptr, {});
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("moved to new"), std::string::npos);
}

// EVIDENCE-OF: G1 G12
TEST_P(StoreMove, TokensGoOnGrowingInTheNewStore) {
  for (const bool into : {true, false}) {
    const auto here = GetParam().make();
    const auto memory = other();
    Site& from = into ? *memory : *here;
    Site& to = into ? *here : *memory;
    use(from);
    Client late(from);
    const Generation before = late.leases.generation();
    revoke(late, "a", 3);
    const auto moved = move(*from.open(), *to.open());
    ASSERT_TRUE(moved) << moved.error().message;
    EXPECT_EQ(moved->leases, 2U);
    EXPECT_EQ(granted(late, "a", kHour), 0U) << "a grant from the closed store";
    expect_moved(from, to, before);
  }
}

TEST_P(StoreMove, IsRefusedWhileAnythingIsHeldAndChangesNothing) {
  const auto here = GetParam().make();
  const auto there = other();
  use(*here);
  const auto refused = move(*here->open(), *there->open());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Held);
  EXPECT_NE(refused.error().message.find("'a' is held"), std::string::npos);
  Client client(*here);
  revoke(client, "a", 3);
  EXPECT_EQ(granted(client, "a", kHour), 5U) << "the old store goes on";
  EXPECT_EQ(granted(client, "b", kHour), 2U);
}

// EVIDENCE-OF: G8
TEST_P(StoreMove, WhoHeldALeaseThereLearnsThatItEnded) {
  const auto here = GetParam().make();
  const auto there = other();
  Client client(*here);
  const Claim claim = client.claim();
  ASSERT_TRUE(client.bid("a", "ann", claim, plain_terms(kHour)));
  revoke(client, "a", 1);
  ASSERT_TRUE(move(*here->open(), *there->open()));
  const api::Grip grip{resource("a"), Token(1), claim, {}, {}};
  const auto checked = client.leases.check(grip);
  ASSERT_TRUE(checked) << checked.error().message;
  EXPECT_TRUE(std::holds_alternative<api::Lost>(*checked));
  const auto renewed = client.leases.renew(grip, kHour);
  ASSERT_TRUE(renewed) << renewed.error().message;
  EXPECT_TRUE(std::holds_alternative<api::Lost>(*renewed));
}

TEST_P(StoreMove, NeedsAnEmptyStoreToMoveInto) {
  const auto here = GetParam().make();
  const auto there = other();
  use(*there);
  Client client(*here);
  const auto refused = move(*here->open(), *there->open());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Invalid);
  EXPECT_EQ(granted(client, "x", kHour), 1U) << "and nothing was closed";
}

// EVIDENCE-OF: G1
TEST_P(StoreMove, CutShortAnywhereItGivesNoGrantAndGoesOnWhenStartedAgain) {
  for (int at = 0; at < 8; ++at) {
    const auto here = GetParam().make();
    const auto there = other();
    use(*here);
    Client client(*here);
    const Generation before = client.leases.generation();
    revoke(client, "a", 3);
    const std::shared_ptr<store::Store> from = here->open();
    const std::shared_ptr<store::Store> to = there->open();
    CutShort cut_from(from, at < 2 ? at : 100);
    CutShort cut_to(to, at < 2 ? 100 : at - 2);
    if (move(cut_from, cut_to)) continue;  // it needed no more commits than that
    if (at > 0) {
      EXPECT_EQ(granted(client, "a", kHour), 0U) << at;
    }
    const auto again = move(*from, *to);
    ASSERT_TRUE(again) << at << " " << again.error().message;
    expect_moved(*here, *there, before);
  }
}

// EVIDENCE-OF: G8 G10
TEST_P(StoreMove, QueuesAndItemsGoAlongUnlessOneIsClaimed) {
  const auto here = GetParam().make();
  const auto there = other();
  QueueClient old(*here, false);
  const auto put = [&](const std::string& payload, Millis delay = {}) {
    return old.queue.put({.queue = queue_name("q"),
                          .payload = payload,
                          .priority = 0,
                          .delay = delay,
                          .unique = payload.substr(0, 5),
                          .labels = {},
                          .by = "p",
                          .limits = {},
                          .create = true});
  };
  const std::string large(20'000, 'x');
  const auto first = put("first").value().id;
  const auto claimed = old.queue.claim({queue_name("q"), owner("w"), old.base.claim()});
  ASSERT_TRUE(claimed);
  const api::ItemRef ref{first, Token(1)};
  ASSERT_TRUE(put(large));
  ASSERT_TRUE(put("later", kHour));
  const auto refused = move(*old.base.store, *there->open());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Held);
  EXPECT_NE(refused.error().message.find("the queue 'q'"), std::string::npos);
  // Nothing was closed. An operator parks it, and it goes along.
  ASSERT_TRUE(old.queue.order(first, {.what = core::ItemOrder::What::Park,
                                      .expected = Token(1),
                                      .why = "moving",
                                      .by = "op",
                                      .id = {},
                                      .to = {},
                                      .hold = {}}));
  const auto moved = move(*old.base.store, *there->open());
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(moved->items, 3U);
  EXPECT_FALSE(put("again")) << "the old store takes nothing more";
  EXPECT_FALSE(old.queue.order(first, {.what = core::ItemOrder::What::Requeue,
                                       .expected = std::nullopt,
                                       .why = "late",
                                       .by = "op",
                                       .id = {},
                                       .to = {},
                                       .hold = {}}));
  QueueClient next(*there, false);
  const auto counts = next.queue.count(queue_name("q")).value();
  EXPECT_EQ(counts.ready, 1U);
  EXPECT_EQ(counts.waiting, 2U);
  EXPECT_EQ(counts.parked, 1U);
  const auto got = next.queue.claim({queue_name("q"), owner("w"), next.base.claim()});
  ASSERT_TRUE(got && std::holds_alternative<api::ClaimedItem>(*got));
  EXPECT_EQ(std::get<api::ClaimedItem>(*got).item.payload, large);
  EXPECT_EQ(next.queue.show(first).value()->item.epoch, Token(2)) << "epochs go on growing";
  const auto taken = next.queue.put({.queue = queue_name("q"),
                                     .payload = "first",
                                     .priority = 0,
                                     .delay = {},
                                     .unique = "first",
                                     .labels = {},
                                     .by = {},
                                     .limits = {},
                                     .create = false});
  EXPECT_TRUE(taken && taken->existed) << "unique keys go along";
  EXPECT_TRUE(std::holds_alternative<api::ItemLost>(next.queue.complete({ref, {}, {}}).value()));
}

// EVIDENCE-OF: G8
TEST_P(StoreMove, ALateResultIsNotTakenByAStoreThatWasLeft) {
  const auto here = GetParam().make();
  const auto there = other();
  QueueClient old(*here, false);
  const Millis brief = std::max(here->short_ttl(), old.base.leases.smallest_ttl());
  const auto id = old.queue
                      .put({.queue = queue_name("q"),
                            .payload = "x",
                            .priority = 0,
                            .delay = {},
                            .unique = {},
                            .labels = {},
                            .by = {},
                            .limits = {},
                            .create = true})
                      .value()
                      .id;
  ASSERT_TRUE(old.queue.claim({.queue = queue_name("q"),
                               .owner = owner("w"),
                               .claim = old.base.claim(),
                               .ttl = brief,
                               .start = true}));
  EXPECT_TRUE(
      here->eventually([&] { return old.queue.tend(queue_name("q")).value().parked == 1; }));
  ASSERT_TRUE(move(*old.base.store, *there->open()));
  EXPECT_FALSE(old.queue.complete({{id, Token(1)}, "late", {}})) << "it would be lost there";
  QueueClient next(*there, false);
  EXPECT_TRUE(std::holds_alternative<api::ItemDone>(
      next.queue.complete({{id, Token(1)}, "late", {}}).value()));
}

// EVIDENCE-OF: G10
TEST_P(StoreMove, WhatFallsDueInAStoreThatWasLeftIsNotMadeReadyThere) {
  const auto here = GetParam().make();
  const auto there = other();
  QueueClient old(*here, false);
  const Millis soon = std::max(here->short_ttl(), old.base.leases.smallest_ttl());
  ASSERT_TRUE(old.queue.put({.queue = queue_name("q"),
                             .payload = "x",
                             .priority = 0,
                             .delay = soon,
                             .unique = {},
                             .labels = {},
                             .by = {},
                             .limits = {},
                             .create = true}));
  ASSERT_TRUE(move(*old.base.store, *there->open()));
  const auto moved_at = here->clock().mono();
  EXPECT_TRUE(here->eventually([&] { return here->clock().mono() > moved_at + 2 * soon; }));
  (void)old.queue.tend(queue_name("q"));
  EXPECT_EQ(old.queue.count(queue_name("q")).value().ready, 0U);
  QueueClient next(*there, false);
  EXPECT_TRUE(there->eventually([&] {
    const auto got = next.queue.claim({queue_name("q"), owner("w"), next.base.claim()});
    return got && std::holds_alternative<api::ClaimedItem>(*got);
  }));
}

INSTANTIATE_TEST_SUITE_P(Store, StoreMove, ::testing::ValuesIn(stores()),
                         [](const auto& store) { return store.param.name; });

}  // namespace
}  // namespace stint::testing
