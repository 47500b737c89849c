// The seam: commit's expectations, versions, appends, limits.
#include <set>

#include "tests/conformance/seam_fixture.h"

namespace stint::testing {
namespace {

class SeamCommit : public SeamTest {};
STINT_FOR_EVERY_STORE(SeamCommit);

TEST_P(SeamCommit, WritesAllOrNothing) {
  commit({set("a", "old")});
  EXPECT_EQ(conflict({set("b", "new"), absent(set("a", "new")), set("c", "new")}), 1);
  EXPECT_EQ(get("a").value, "old");
  EXPECT_FALSE(get("b").present());
  EXPECT_FALSE(get("c").present());
}

TEST_P(SeamCommit, NamesTheFirstStepThatDidNotHold) {
  commit({set("a", "1")});
  EXPECT_EQ(conflict({check("x"), absent(check("a")), seen(check("b"), 77)}), 1);
}

TEST_P(SeamCommit, ExpectsAbsenceAnythingOrOneVersion) {
  const auto first = commit({absent(set("k", "1"))});
  ASSERT_TRUE(first);
  EXPECT_EQ(conflict({absent(set("k", "2"))}), 0);
  EXPECT_EQ(conflict({seen(set("k", "2"), first->versions[0] + 1)}), 0);
  const auto second = commit({seen(set("k", "2"), first->versions[0])});
  ASSERT_TRUE(second);
  EXPECT_NE(second->versions[0], first->versions[0]);
  EXPECT_EQ(conflict({seen(set("k", "3"), first->versions[0])}), 0);
  EXPECT_TRUE(commit({set("k", "3")}));
  EXPECT_EQ(conflict({seen(set("none", "1"), 5)}), 0);
}

TEST_P(SeamCommit, ExpectationsOfEachKindOfStepAreJudged) {
  const auto done = commit({set("k", "1")});
  const store::Version wrong = done->versions[0] + 100;
  EXPECT_EQ(conflict({seen(check("k"), wrong)}), 0);
  EXPECT_EQ(conflict({seen(touch("k"), wrong)}), 0);
  EXPECT_EQ(conflict({seen(remove("k"), wrong)}), 0);
  EXPECT_TRUE(commit({seen(check("k"), done->versions[0])}));
  EXPECT_TRUE(commit({seen(remove("k"), done->versions[0])}));
  EXPECT_FALSE(get("k").present());
}

TEST_P(SeamCommit, ACheckChangesNothingAndTellsTheVersion) {
  const auto done = commit({set("k", "1")});
  const auto revision = store_->revision().value();
  const auto checked = commit({check("k"), check("none")});
  EXPECT_EQ(checked->versions, (std::vector<store::Version>{done->versions[0], 0}));
  EXPECT_EQ(get("k").version, done->versions[0]);
  EXPECT_EQ(store_->revision().value(), revision);
}

TEST_P(SeamCommit, ACheckAndAWriteOfTheSameKeyAreBothJudgedByWhatWasThere) {
  const auto made = commit({absent(check("k")), set("k", "1")});
  ASSERT_TRUE(made);
  EXPECT_EQ(get("k").value, "1");
  EXPECT_EQ(conflict({absent(check("k")), set("k", "2")}), 0);
  EXPECT_TRUE(commit({seen(check("k"), made->versions[1]), set("k", "2")}));
  EXPECT_EQ(get("k").value, "2");
  EXPECT_EQ(conflict({seen(check("k"), made->versions[1]), remove("k")}), 0);
  EXPECT_TRUE(get("k").present());
}

TEST_P(SeamCommit, TheSameValueIsAChangeToo) {
  const auto one = commit({set("k", "v")});
  const auto two = commit({set("k", "v")});
  EXPECT_NE(one->versions[0], two->versions[0]);
}

TEST_P(SeamCommit, ATouchKeepsTheVersionAndNeedsARecord) {
  const auto done = commit({set("k", "v")});
  const auto touched = commit({timed(touch("k"), Step::TimerOp::Start, kLong)});
  ASSERT_TRUE(touched);
  EXPECT_EQ(touched->versions[0], done->versions[0]);
  EXPECT_EQ(get("k").version, done->versions[0]);
  EXPECT_EQ(get("k").value, "v");
  EXPECT_EQ(conflict({timed(touch("none"), Step::TimerOp::Start, kLong)}), 0);
  EXPECT_FALSE(get("none").present());
}

TEST_P(SeamCommit, RemovingWhatIsAbsentIsDone) {
  const auto done = commit({remove("none")});
  ASSERT_TRUE(done);
  EXPECT_EQ(done->versions[0], 0U);
  EXPECT_TRUE(commit({absent(remove("none"))}));
}

// EVIDENCE-OF: G1
TEST_P(SeamCommit, VersionsNeverComeAgainAlsoAfterARemoval) {
  std::set<store::Version> versions;
  for (int i = 0; i < 20; ++i) {
    const auto done = commit({set("k", "v")});
    ASSERT_TRUE(done);
    EXPECT_TRUE(versions.insert(done->versions[0]).second);
    if (i % 3 == 0) commit({remove("k")});
  }
}

TEST_P(SeamCommit, TheRevisionGrowsWithEveryCommitThatWrote) {
  std::uint64_t last = store_->revision().value();
  const auto grows = [&](const std::vector<Step>& steps) {
    const auto done = commit(steps);
    ASSERT_TRUE(done);
    EXPECT_GT(done->revision, last);
    last = done->revision;
    EXPECT_GE(store_->revision().value(), last);
  };
  grows({set("k", "1")});
  grows({append("l/", "1")});
  grows({remove("k")});
}

TEST_P(SeamCommit, AppendsInCommitOrderUnderTheirOwnPrefix) {
  for (int i = 0; i < 12; ++i) commit({append("log/", std::to_string(i)), append("other/", "x")});
  const auto entries = scan(under("log/"));
  ASSERT_EQ(entries.size(), 12U);
  for (std::size_t i = 0; i < entries.size(); ++i) EXPECT_EQ(entries[i].value, std::to_string(i));
}

TEST_P(SeamCommit, SeveralAppendsOfOneCommitKeepTheirOrder) {
  commit({append("log/", "a"), append("log/", "b"), append("log/", "c")});
  std::string all;
  for (const auto& entry : scan(under("log/"))) all += entry.value;
  EXPECT_EQ(all, "abc");
}

TEST_P(SeamCommit, AnAppendAfterRemovalsOfTheOldestStillComesLast) {
  for (int i = 0; i < 5; ++i) commit({append("log/", std::to_string(i))});
  const auto before = keys(under("log/"));
  commit({remove(before[0]), remove(before[1])});
  commit({append("log/", "new")});
  EXPECT_EQ(scan(under("log/", before[4])).front().value, "new");
}

TEST_P(SeamCommit, AConflictAppendsNothing) {
  commit({set("k", "1")});
  EXPECT_EQ(conflict({append("log/", "x"), absent(check("k"))}), 1);
  EXPECT_TRUE(keys(under("log/")).empty());
}

TEST_P(SeamCommit, TakesAsManyAndAsLargeAsItSaysAndRefusesMore) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < store::Store::kMaxSteps; ++i) {
    steps.push_back(set("k/" + std::to_string(i), std::string(store::Store::kMaxValueBytes, 'v')));
  }
  EXPECT_TRUE(commit(steps));
  EXPECT_TRUE(commit({set(std::string(store::Store::kMaxKeyBytes, 'k'), "v")}));
  const auto value =
      store_->commit({set("a", "1"), set("v", std::string(4097, 'v'))}, store::Sync::Relaxed);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, Code::Invalid);
  const auto key = store_->commit({set(std::string(1025, 'k'), "v")}, store::Sync::Relaxed);
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().code, Code::Invalid);
  EXPECT_FALSE(get("a").present());
}

TEST_P(SeamCommit, TakesAsManyConditionsAsItSays) {
  std::vector<Step> start;
  for (std::size_t i = 0; i < store::Store::kMaxConditions / 2; ++i) {
    start.push_back(timed(set("k/" + std::to_string(i), "v"), Step::TimerOp::Start, kLong));
  }
  const auto done = commit(start);
  ASSERT_TRUE(done);
  const auto renewals = [&](store::Version last) {
    std::vector<Step> steps;
    for (std::size_t i = 0; i < start.size(); ++i) {
      Step step = timed(touch(start[i].key), Step::TimerOp::Extend, kLong);
      const bool is_last = i + 1 == start.size();
      step = seen(step, is_last ? last : done->versions[i]);
      steps.push_back(demanding(step, TimerState::Running));
    }
    steps.push_back(append("log/", "x"));
    return steps;
  };
  EXPECT_TRUE(commit(renewals(done->versions.back())));
  EXPECT_EQ(conflict(renewals(done->versions.back() + 1)), static_cast<int>(start.size()) - 1);
  EXPECT_EQ(keys(under("log/")).size(), 1U);
}

TEST_P(SeamCommit, ADurableCommitAnswersLikeARelaxedOne) {
  EXPECT_TRUE(commit({set("k", "1")}, store::Sync::Durable));
  EXPECT_EQ(get("k").value, "1");
}

TEST_P(SeamCommit, OfNothingIsDone) { EXPECT_TRUE(commit({})); }

}  // namespace
}  // namespace stint::testing
