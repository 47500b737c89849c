// Into which stores a move goes, and what goes along; tests/conformance has the rest.
#include "service/store_move.h"

#include <gtest/gtest.h>

#include <utility>

#include "store/memory/memory_store.h"
#include "store/shared_store.h"
#include "tests/schedule/desk.h"

namespace stint::service {
namespace {

void write_record(store::Store& store, const std::string& key, const std::string& value) {
  store::Step step;
  step.kind = store::Step::Kind::Set;
  step.key = key;
  step.value = value;
  ASSERT_TRUE(store.commit({step}, store::Sync::Relaxed).has_value());
}

std::string record_in(store::Store& store, const std::string& key) {
  return store.read({key}).value().entries.front().value;
}

class MoveTarget : public ::testing::Test {
 protected:
  Result<Moved> move() {
    return move_leases(desk_.store, to_, nullptr, desk_.random, desk_.clock,
                       {.from_name = "old", .to_name = "new", .by = "op"});
  }
  test::Desk desk_;
  store::MemoryStore to_{desk_.clock};
};

// EVIDENCE-OF: G9
TEST_F(MoveTarget, WithAnyRecordOfItsOwnIsRefusedAndNothingIsChanged) {
  for (const char* key : {"job/j", "slot/j", "skip/j", "once/k", "answer/k", "key/1", "queue/q",
                          "ready/q:1", "claimed/q:1", "parked/q:1", "ended/q:1", "later/q:1",
                          "uniq/q", "fence/t", "act/a", "sealed/r", "own/r", "hist/r"}) {
    store::MemoryStore to(desk_.clock);
    write_record(to, key, "{}");
    const auto moved = move_leases(desk_.store, to, nullptr, desk_.random, desk_.clock,
                                   {.from_name = "old", .to_name = "new", .by = "op"});
    ASSERT_FALSE(moved) << key;
    EXPECT_EQ(moved.error().code, Code::Invalid) << key;
    EXPECT_EQ(record_in(to, key), "{}");
    EXPECT_TRUE(read_life(desk_.store).value()->meta.moved_to.empty()) << key;
  }
}

TEST_F(MoveTarget, WithItsMetaRecordAndALedgerIsEmpty) {
  ASSERT_TRUE(begin_life(to_, desk_.random, desk_.clock.wall(), nullptr, {}).has_value());
  Ledger ledger(to_, desk_.clock, 100);
  ASSERT_TRUE(ledger.record({}).has_value());
  const auto moved = move();
  EXPECT_TRUE(moved.has_value()) << moved.error().message;
}

TEST_F(MoveTarget, GetsTheKeysOfOnceAndTheKeptAnswers) {
  write_record(desk_.store, "once/k", "one");
  write_record(desk_.store, "answer/k", "two");
  ASSERT_TRUE(move().has_value());
  EXPECT_EQ(record_in(to_, "once/k"), "one");
  EXPECT_EQ(record_in(to_, "answer/k"), "two");
}

// Somebody writes there between the look and the copy.
class WrittenMeanwhile final : public store::SharedStore {
 public:
  using SharedStore::SharedStore;
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override {
    auto answer = SharedStore::commit(steps, sync);
    if (!std::exchange(written_, true)) write_record(*this, "job/j", "newer");
    return answer;
  }

 private:
  bool written_ = false;
};

TEST_F(MoveTarget, IsNotOverwritten) {
  write_record(desk_.store, "job/j", "older");
  WrittenMeanwhile to(std::shared_ptr<store::Store>(&to_, [](store::Store*) {}));
  EXPECT_FALSE(move_leases(desk_.store, to, nullptr, desk_.random, desk_.clock,
                           {.from_name = "old", .to_name = "new", .by = "op"})
                   .has_value());
  EXPECT_EQ(record_in(to_, "job/j"), "newer");
}

}  // namespace
}  // namespace stint::service
