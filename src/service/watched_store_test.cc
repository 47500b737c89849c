#include "service/watched_store.h"

#include <gtest/gtest.h>

#include "service/lease_service.h"
#include "store/memory/memory_store.h"
#include "store/shared_store.h"
#include "tests/conformance/stores.h"

namespace stint::service {
namespace {

class KeptAnchor final : public Anchors {
 public:
  Result<std::optional<Anchor>> recall() override { return anchor; }
  void remember(const Anchor& seen) override { anchor = seen; }
  std::optional<Anchor> anchor;
};

// One who gives leases on a store; with anchors it remembers.
class Giver {
 public:
  Giver(store::Store& store, Anchors* anchors)
      : life_(begin_life(store, random_, clock_.wall(), nullptr, {}).value()),
        ledger_(store, clock_, 1000),
        leases_(store, ledger_, life_, clock_, random_, anchors) {}

  Token grant(const std::string& name, const std::string& owner = "ann") {
    const Claim claim = Claim::make(random_);
    auto answer = leases_.acquire({.resource = resource(name),
                                   .owner = Owner::parse(owner).value(),
                                   .claim = claim,
                                   .terms = {Millis(1000), {}, {}, {}},
                                   .note = "",
                                   .retake = std::nullopt,
                                   .count_refusal = true});
    const Token token = std::get<api::Granted>(answer.value()).lease.token;
    EXPECT_TRUE(leases_.release({resource(name), token, claim, {}, {}}, false));
    return token;
  }
  static ResourceName resource(const std::string& name) {
    return ResourceName::parse(name).value();
  }
  LeaseService& leases() { return leases_; }

 private:
  testing::FakeClock clock_;
  SeededRandom random_{7};
  const Life life_;
  Ledger ledger_;
  LeaseService leases_;
};

class WatchedStoreTest : public ::testing::Test {
 protected:
  // What a backup was made of: nothing but the generation.
  void restore_to_the_beginning() {
    const std::string meta = store_.read({std::string(kMetaKey)}).value().entries.front().value;
    store::Step step;
    step.kind = store::Step::Kind::Set;
    step.key = kMetaKey;
    step.value = meta;
    ASSERT_TRUE(restored_.commit({step}, store::Sync::Durable));
  }
  static void expect_refused(store::Store& watched) {
    const auto reading = watched.read({"x"});
    ASSERT_FALSE(reading);
    EXPECT_TRUE(is_went_back(reading.error())) << reading.error().message;
    EXPECT_NE(reading.error().message.find("does not know token 2,"), std::string::npos)
        << reading.error().message;
  }

  testing::FakeClock clock_;
  SeededRandom random_{3};
  KeptAnchor anchors_;
  store::MemoryStore store_{clock_};
  store::MemoryStore restored_{clock_};
};

// EVIDENCE-OF: G1 G12
TEST_F(WatchedStoreTest, RefusesAStoreThatDoesNotKnowTheNewestTokenHoweverMuchOthersCommit) {
  Giver ours(store_, &anchors_);
  ours.grant("r");
  ASSERT_EQ(ours.grant("r").number(), 2U);
  restore_to_the_beginning();
  const auto watched = watch_over(restored_, anchors_);
  expect_refused(*watched);
  Giver strangers(restored_, nullptr);
  for (std::uint64_t token = 1; token <= 5; ++token) {
    ASSERT_EQ(strangers.grant("r", "eve").number(), token);
    expect_refused(*watched);
  }
  EXPECT_NE(watched->trouble(), "");
  const auto word = recover(restored_, random_, clock_.wall(), nullptr,
                            {.why = "restored", .by = "op", .past = {}});
  ASSERT_TRUE(word);
  EXPECT_TRUE(watched->read({"x"}));
  EXPECT_EQ(watched->trouble(), "");
}

// EVIDENCE-OF: G12
TEST_F(WatchedStoreTest, IsNotAlarmedByWhatOthersDoWithTheResource) {
  Giver ours(store_, &anchors_);
  Giver others(store_, nullptr);
  const auto watched = watch_over(store_, anchors_);
  const Token mine = ours.grant("r");
  EXPECT_TRUE(watched->read({"x"}));
  for (int i = 0; i < 1100; ++i) others.grant("r", "eve");
  EXPECT_TRUE(watched->read({"x"})) << "the line of " << mine.number() << " is dropped by now";
  const Token last = ours.grant("r");
  ASSERT_TRUE(ours.leases().transfer(
      {.resource = Giver::resource("r"), .expected = last, .why = "w", .by = "op"},
      Owner::parse("eve").value(), Millis(1000)));
  EXPECT_TRUE(watched->read({"x"}));
  others.grant("r", "eve");  // under the same token
  EXPECT_TRUE(watched->read({"x"}));
  ours.grant("r");
  ASSERT_TRUE(others.leases().forget(Giver::resource("r")));
  EXPECT_TRUE(watched->read({"x"}));
  others.grant("r", "eve");
  EXPECT_TRUE(watched->read({"x"}));
}

// A program that holds no lease has the numbers of its commits.
// EVIDENCE-OF: G12
TEST_F(WatchedStoreTest, RefusesAStoreWhoseCommitsGetNumbersThatWereGivenBefore) {
  class Switched final : public Anchors {
   public:
    explicit Switched(const Generation& generation) : anchor_{generation, 0, {}, {}} {}
    Result<std::optional<Anchor>> recall() override { return std::optional(anchor_); }
    void remember(const Anchor&) override {}

   private:
    const Anchor anchor_;
  };
  const Life life = begin_life(store_, random_, clock_.wall(), nullptr, {}).value();
  Switched anchors(life.meta.generation);
  const auto set = [](const std::string& key) {
    store::Step step;
    step.kind = store::Step::Kind::Set;
    step.key = key;
    step.value = "v";
    return std::vector{step};
  };
  // A store that forgets what came after a moment.
  class Rewound final : public store::SharedStore {
   public:
    using SharedStore::SharedStore;
    Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                       store::Sync sync) override {
      auto answer = SharedStore::commit(steps, sync);
      std::get<store::Committed>(*answer).revision -= back;
      return answer;
    }
    std::uint64_t back = 0;
  };
  Rewound store(std::shared_ptr<store::Store>(&store_, [](store::Store*) {}));
  WatchedStore watched(store, anchors);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(watched.commit(set("k"), store::Sync::Durable));
  EXPECT_TRUE(watched.read({"k"}));
  store.back = 3;
  ASSERT_TRUE(watched.commit(set("k"), store::Sync::Relaxed));
  EXPECT_TRUE(watched.read({"k"})) << "one that may be lost proves nothing";
  ASSERT_TRUE(watched.commit(set("k"), store::Sync::Durable));
  const auto reading = watched.read({"k"});
  ASSERT_FALSE(reading);
  EXPECT_TRUE(is_went_back(reading.error())) << reading.error().message;
}

}  // namespace
}  // namespace stint::service
