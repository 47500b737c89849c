// Every cell of the fence's table: no fence, below, equal, above; both modes; each word of the
// store.
#include "core/fence.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/text.h"

namespace stint::core {
namespace {

Generation generation(char digit) { return Generation::parse(std::string(32, digit)).value(); }
const Generation kG1 = generation('1');
const Generation kG2 = generation('2');
const Generation kG3 = generation('3');

Fence fence(std::uint64_t token, bool used = false) {
  return {.generation = kG1,
          .resource = "r",
          .token = Token(token),
          .used = used,
          .key = used ? "k" : "",
          .digest = used ? "d" : ""};
}

Offer offer(std::uint64_t token, FenceMode mode = FenceMode::AtLeast, std::string key = "k",
            std::string digest = "d") {
  return {.generation = kG1,
          .resource = "r",
          .token = Token(token),
          .mode = mode,
          .key = std::move(key),
          .digest = std::move(digest)};
}

Issued issued(std::uint64_t newest, bool granted = true) {
  return {.generation = kG1, .ancestors = {}, .newest = Token(newest), .newest_granted = granted};
}

Offer of(Offer o, const Generation& g) {
  o.generation = g;
  return o;
}
Issued descendant(Issued i) {
  i.generation = kG2;
  i.ancestors = {kG1};
  return i;
}

// EVIDENCE-OF: G5
TEST(FenceBelow, IsStaleInEveryModeWithoutAskingTheStore) {
  for (const auto mode : {FenceMode::AtLeast, FenceMode::Once}) {
    for (const bool used : {false, true}) {
      EXPECT_EQ(admit(fence(7, used), offer(6, mode), std::nullopt).verdict, Verdict::Stale);
      EXPECT_EQ(seal(fence(7, used), offer(6, mode), std::nullopt).verdict, Verdict::Stale);
      EXPECT_EQ(admit(fence(7, used), offer(6, mode), issued(6)).verdict, Verdict::Stale);
    }
  }
}

TEST(FenceEqual, AdmitsAtLeastManyTimesWithoutAskingTheStore) {
  const FenceDecision d = admit(fence(7), offer(7), std::nullopt);
  EXPECT_EQ(d.verdict, Verdict::Admitted);
  EXPECT_FALSE(d.fence);
  EXPECT_EQ(admit(fence(7, true), offer(7), std::nullopt).verdict, Verdict::Admitted);
}

TEST(FenceEqual, AdmitsOnceAndMarksTheFenceUsed) {
  const FenceDecision d = admit(fence(7), offer(7, FenceMode::Once), std::nullopt);
  EXPECT_EQ(d.verdict, Verdict::Admitted);
  ASSERT_TRUE(d.fence);
  EXPECT_TRUE(d.fence->used);
  EXPECT_EQ(d.fence->key, "k");
  EXPECT_EQ(d.fence->digest, "d");
  EXPECT_EQ(d.fence->token, Token(7));
}

TEST(FenceEqual, AnswersTheSameWriteDoneAndAnyOtherUsed) {
  const auto verdict = [](const char* key, const char* digest) {
    return admit(fence(7, true), offer(7, FenceMode::Once, key, digest), std::nullopt).verdict;
  };
  EXPECT_EQ(verdict("k", "d"), Verdict::Done);
  EXPECT_EQ(verdict("k", "x"), Verdict::Used);
  EXPECT_EQ(verdict("x", "d"), Verdict::Used);
}

TEST(FenceEqual, SealIsDoneAlreadyAndChangesNothing) {
  for (const bool used : {false, true}) {
    const FenceDecision d = seal(fence(7, used), offer(7, FenceMode::Once), std::nullopt);
    EXPECT_EQ(d.verdict, Verdict::Admitted);
    EXPECT_FALSE(d.fence);
  }
}

TEST(FenceAbove, AsksTheStoreAndThenBelievesIt) {
  for (const std::optional<Fence>& before : {std::optional<Fence>(), std::optional(fence(7))}) {
    EXPECT_EQ(admit(before, offer(9), std::nullopt).verdict, Verdict::AskStore);
    EXPECT_EQ(seal(before, offer(9), std::nullopt).verdict, Verdict::AskStore);
    EXPECT_EQ(admit(before, offer(9), issued(9)).verdict, Verdict::Admitted);
    EXPECT_EQ(admit(before, offer(9), issued(8)).verdict, Verdict::NeverIssued);
    EXPECT_EQ(admit(before, offer(9), issued(10)).verdict, Verdict::Stale);
    EXPECT_EQ(admit(before, offer(9), issued(9, false)).verdict, Verdict::NeverGranted);
    EXPECT_EQ(seal(before, offer(9), issued(9, false)).verdict, Verdict::NeverGranted);
    Issued elsewhere = issued(9);
    elsewhere.generation = kG3;
    EXPECT_EQ(admit(before, offer(9), elsewhere).verdict, Verdict::Foreign);
  }
}

TEST(FenceAbove, RaisesTheFenceUsedOnlyByAWriteInModeOnce) {
  const auto after = [](FenceMode mode) {
    return admit(fence(7), offer(9, mode), issued(9)).fence;
  };
  ASSERT_TRUE(after(FenceMode::AtLeast));
  EXPECT_EQ(after(FenceMode::AtLeast)->token, Token(9));
  EXPECT_FALSE(after(FenceMode::AtLeast)->used);
  EXPECT_TRUE(after(FenceMode::Once)->used);
  const auto sealed = seal(fence(7, true), offer(9, FenceMode::Once), issued(9)).fence;
  ASSERT_TRUE(sealed);
  EXPECT_FALSE(sealed->used);
  EXPECT_TRUE(sealed->key.empty());
}

TEST(FenceToken, IsNeededOnceATargetIsFencedAndForEverySeal) {
  EXPECT_EQ(admit(std::nullopt, offer(0), std::nullopt).verdict, Verdict::Admitted);
  EXPECT_FALSE(admit(std::nullopt, offer(0), std::nullopt).fence);
  EXPECT_EQ(admit(fence(7), offer(0), std::nullopt).verdict, Verdict::NoToken);
  EXPECT_EQ(seal(std::nullopt, offer(0), std::nullopt).verdict, Verdict::NoToken);
  EXPECT_EQ(seal(fence(7), offer(0), std::nullopt).verdict, Verdict::NoToken);
}

TEST(FenceResource, OfAnotherNameIsForeign) {
  Offer other = offer(9);
  other.resource = "s";
  EXPECT_EQ(admit(fence(7), other, issued(9)).verdict, Verdict::Foreign);
  EXPECT_EQ(seal(fence(7), other, issued(9)).verdict, Verdict::Foreign);
}

TEST(FenceResource, ChangesByAnOperatorsSealWithTheNewestTokenAlone) {
  Offer other = offer(3);
  other.resource = "s";
  other.adopt = true;
  EXPECT_EQ(admit(fence(7), other, issued(3)).verdict, Verdict::Foreign)
      << "a write adopts nothing";
  EXPECT_EQ(seal(fence(7), other, std::nullopt).verdict, Verdict::AskStore);
  EXPECT_EQ(seal(fence(7), other, issued(4)).verdict, Verdict::Stale);
  EXPECT_EQ(seal(fence(7), other, issued(2)).verdict, Verdict::NeverIssued);
  const FenceDecision moved = seal(fence(7, true), other, issued(3));
  EXPECT_EQ(moved.verdict, Verdict::Admitted);
  ASSERT_TRUE(moved.fence);
  EXPECT_EQ(moved.fence->resource, "s");
  EXPECT_EQ(moved.fence->token, Token(3));
  EXPECT_FALSE(moved.fence->used);
  other.adopt_from = "q";
  EXPECT_EQ(seal(fence(7), other, issued(3)).verdict, Verdict::Foreign);
  Offer same = offer(6);
  same.adopt = true;
  EXPECT_EQ(seal(fence(7), same, issued(6)).verdict, Verdict::Stale)
      << "its own resource's fence is never lowered";
}

// Every verb of a fence in the store: the newest token is as good as a fence.
// EVIDENCE-OF: G5
TEST(FenceInStore, RefusesWhatIsOlderThanTheNewestThoughItEqualsTheFence) {
  for (const auto law : {admit_in_store, seal_in_store}) {
    for (const auto mode : {FenceMode::AtLeast, FenceMode::Once}) {
      for (const bool used : {false, true}) {
        EXPECT_EQ(law(fence(7, used), offer(7, mode), issued(8)).verdict, Verdict::Stale);
        EXPECT_EQ(law(fence(7, used), offer(7, mode), issued(8, false)).verdict, Verdict::Stale);
        EXPECT_EQ(law(fence(7, used), offer(7, mode), descendant(issued(8))).verdict,
                  Verdict::Stale);
      }
    }
    EXPECT_EQ(law(fence(7), offer(7), issued(7)).verdict, Verdict::Admitted);
    EXPECT_EQ(law(fence(7), offer(8), issued(8)).verdict, Verdict::Admitted);
    EXPECT_EQ(law(std::nullopt, offer(7), issued(8)).verdict, Verdict::Stale);
  }
  EXPECT_EQ(admit_in_store(fence(7, true), offer(7, FenceMode::Once), issued(7)).verdict,
            Verdict::Done);
}

// EVIDENCE-OF: G12
TEST(FenceAboveItsStore, SaysThatTheStoreWasRestored) {
  EXPECT_EQ(admit(fence(7), offer(9), issued(6)).verdict, Verdict::Restored);
  EXPECT_EQ(seal(fence(7), offer(9), issued(0)).verdict, Verdict::Restored);
}

// EVIDENCE-OF: G12
TEST(FenceGeneration, IsLeftOnlyForADescendant) {
  const Offer next = of(offer(5000), kG2);
  EXPECT_EQ(admit(fence(7), next, std::nullopt).verdict, Verdict::AskStore);
  const FenceDecision d = admit(fence(7), next, descendant(issued(5000)));
  EXPECT_EQ(d.verdict, Verdict::Admitted);
  EXPECT_EQ(d.fence->generation, kG2);
  Issued stranger = descendant(issued(5000));
  stranger.ancestors = {kG3};
  EXPECT_EQ(admit(fence(7), next, stranger).verdict, Verdict::Foreign);
}

TEST(FenceGeneration, OfADescendantComparesTokensAllTheSame) {
  for (const std::uint64_t low : {6U, 7U}) {
    EXPECT_EQ(admit(fence(7), of(offer(low), kG2), descendant(issued(7))).verdict, Verdict::Stale);
  }
  EXPECT_EQ(admit(fence(7), of(offer(6), kG2), descendant(issued(6))).verdict, Verdict::Restored);
}

TEST(FenceGeneration, OfTheAncestorIsRefusedByADescendantsFence) {
  Fence newer = fence(7);
  newer.generation = kG2;
  for (const std::uint64_t token : {6U, 7U, 9U}) {
    EXPECT_EQ(admit(newer, offer(token), descendant(issued(9))).verdict, Verdict::Foreign);
  }
}

// Every fence, offer and word of the store: the properties that no cell may break.
void each_case(const std::function<void(const std::optional<Fence>&, const Offer&,
                                        const std::optional<Issued>&)>& f) {
  for (int f_token = -1; f_token <= 4; ++f_token) {
    for (const bool used : {false, true}) {
      std::optional<Fence> before;
      if (f_token > 0) before = fence(static_cast<std::uint64_t>(f_token), used);
      for (std::uint64_t token = 0; token <= 4; ++token) {
        for (const auto mode : {FenceMode::AtLeast, FenceMode::Once}) {
          for (const char* key : {"k", "x"}) {
            for (const auto& g : {kG1, kG2, kG3}) {
              const Offer o = of(offer(token, mode, key), g);
              f(before, o, std::nullopt);
              for (std::uint64_t newest = 0; newest <= 4; ++newest) {
                for (const bool granted : {false, true}) {
                  f(before, o, issued(newest, granted));
                  f(before, o, descendant(issued(newest, granted)));
                }
              }
            }
          }
        }
      }
    }
  }
}

// EVIDENCE-OF: G5
TEST(FenceByOrder, SealsWithATokenThatNobodyHasClaimedButWritesNothing) {
  Offer ordered = offer(8);
  ordered.by_order = true;
  EXPECT_EQ(seal(fence(7), ordered, issued(8, false)).verdict, Verdict::Admitted);
  EXPECT_EQ(seal(std::nullopt, ordered, issued(8, false)).verdict, Verdict::Admitted);
  EXPECT_EQ(admit(fence(7), ordered, issued(8, false)).verdict, Verdict::NeverGranted);
  EXPECT_EQ(seal(fence(7), ordered, issued(9, false)).verdict, Verdict::Stale);
  EXPECT_EQ(seal(fence(7), ordered, issued(7, false)).verdict, Verdict::NeverIssued);
}

// EVIDENCE-OF: G5
TEST(FenceOfARevocation, AdmitsNobodyWithoutAskingTheStore) {
  Offer ordered = offer(8);
  ordered.by_order = true;
  Issued revoked = issued(8, false);
  revoked.newest_nobodys = true;
  const auto sealed = seal(fence(7), ordered, revoked).fence;
  ASSERT_TRUE(sealed);
  EXPECT_TRUE(sealed->nobodys);
  for (const auto mode : {FenceMode::AtLeast, FenceMode::Once}) {
    EXPECT_EQ(admit(sealed, offer(8, mode), std::nullopt).verdict, Verdict::NeverGranted);
  }
  EXPECT_EQ(seal(sealed, offer(8), std::nullopt).verdict, Verdict::NeverGranted);
  EXPECT_EQ(seal(sealed, ordered, std::nullopt).verdict, Verdict::Admitted)
      << "the same order again";
  EXPECT_EQ(admit(sealed, offer(7), std::nullopt).verdict, Verdict::Stale);
  const auto next = admit(sealed, offer(9), issued(9));
  EXPECT_EQ(next.verdict, Verdict::Admitted);
  EXPECT_FALSE(next.fence->nobodys);
  // A reservation's token will be somebody's.
  EXPECT_FALSE(seal(fence(7), ordered, issued(8, false)).fence->nobodys);
}

TEST(FenceAdoption, CountsOnlyForASealOverAnotherStoresLife) {
  Offer adopting = of(offer(2), kG3);
  adopting.adopt = true;
  Issued theirs = issued(2);
  theirs.generation = kG3;
  const auto sealed = seal(fence(7), adopting, theirs);
  EXPECT_EQ(sealed.verdict, Verdict::Admitted);
  ASSERT_TRUE(sealed.fence);
  EXPECT_EQ(sealed.fence->generation, kG3);
  EXPECT_EQ(sealed.fence->token, Token(2));
  EXPECT_EQ(seal(fence(7), adopting, std::nullopt).verdict, Verdict::AskStore);
  EXPECT_EQ(admit(fence(7), adopting, theirs).verdict, Verdict::Foreign);
  // Within one life an operator's word lowers nothing.
  Offer lower = offer(6);
  lower.adopt = true;
  EXPECT_EQ(seal(fence(7), lower, issued(6)).verdict, Verdict::Stale);
}

// EVIDENCE-OF: G12
TEST(FenceRestored, IsAFenceThatItsOwnLineCannotHaveIssued) {
  EXPECT_TRUE(shows_restored(fence(7), issued(6)));
  EXPECT_FALSE(shows_restored(fence(7), issued(7)));
  // Another store's numbers tell nothing, a descendant's do.
  Issued other = issued(5);
  other.generation = kG3;
  other.ancestors = {};
  EXPECT_FALSE(shows_restored(fence(7), other));
  other.ancestors = {fence(7).generation};
  EXPECT_TRUE(shows_restored(fence(7), other));
}

TEST(FenceProperty, NeverGoesDownAndChangesOnlyWithAnAdmission) {
  each_case([](const auto& before, const Offer& o, const auto& store) {
    for (const FenceDecision& d : {admit(before, o, store), seal(before, o, store)}) {
      const bool accepted = d.verdict == Verdict::Admitted || d.verdict == Verdict::Done;
      if (d.fence) {
        EXPECT_EQ(d.verdict, Verdict::Admitted);
      }
      if (d.fence && before) {
        EXPECT_GE(d.fence->token, before->token);
      }
      if (accepted && before) {
        EXPECT_GE(o.token, before->token);
      }
      if (accepted && before && o.token == before->token) {
        EXPECT_EQ(o.generation, before->generation);
      }
      if (d.fence && before && d.fence->token == before->token) {
        EXPECT_FALSE(before->used);
      }
      if (d.fence && d.fence->nobodys) {
        EXPECT_TRUE(store && !store->newest_granted && o.by_order);
      }
      if (store) {
        EXPECT_NE(d.verdict, Verdict::AskStore);
      }
    }
  });
}

TEST(FenceProperty, ASealNeverUsesAFence) {
  each_case([](const auto& before, const Offer& o, const auto& store) {
    const FenceDecision d = seal(before, o, store);
    if (d.fence) {
      EXPECT_FALSE(d.fence->used);
    }
  });
}

}  // namespace
}  // namespace stint::core
