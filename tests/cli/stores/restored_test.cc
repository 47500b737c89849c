// A store that went back in time under the program: whoever remembers it refuses it, a run that is
// going on stops, and once an operator has spoken tokens are higher than any before. The same on
// every store, however it is backed up and put back.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "tests/cli/stint.h"
#include "tests/cli/stores/restorable.h"

namespace stint::test {
namespace {

std::uint64_t token_in(const Finished& done) { return parse_digits(trim(done.out)).value_or(0); }

class Restored : public ::testing::TestWithParam<RestorableKind> {
 protected:
  void SetUp() override {
    const std::string why = store_->start();
    if (why.find("not installed") != std::string::npos) GTEST_SKIP() << why;
    ASSERT_EQ(why, "");
    stint_.use_store(store_->url());
  }
  void accept(const char* why) const {
    const Finished done = stint_({"doctor", "--accept-restored", "--why", why});
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }
  static void grant(const Stint& world, int times = 1) {
    for (int i = 0; i < times; ++i) {
      const Finished done = world({"run", "r", "--", "true"});
      ASSERT_EQ(done.exit_code, 0) << done.err;
    }
  }
  static void expect_refused(const Stint& world, const char* verb, std::string_view says = {}) {
    const Finished done = world({verb, "r"});
    EXPECT_EQ(done.exit_code, 69) << verb << ": " << done.out << done.err;
    EXPECT_EQ(done.out, "");
    EXPECT_NE(done.err.find(says), std::string::npos) << done.err;
  }
  // Under a lease that outlives the time that the store is away, if nothing renews it.
  Millis ttl() const {
    const bool slow = GetParam().store == "postgres" || GetParam().store == "etcd";
    return Millis(slow ? 4'000 : 2'000);
  }
  Command holding() const {
    return stint_.command({"run", "r", "--ttl", format_duration(ttl()), "--grace", "200ms", "--",
                           "sh", "-c", cat("echo x > ", started(), "; sleep 60")});
  }
  std::string started() const { return stint_.dir().file("started"); }
  // By its work: where one process has the store, nobody else can look.
  bool holds() const {
    return wait_until([&] { return std::filesystem::exists(started()); });
  }
  // The work has been stopped, and it is said why.
  void expect_stopped(Child& holder) const {
    const auto exit = holder.wait(ttl() + Millis(3'000));
    ASSERT_TRUE(exit) << "it goes on: " << holder.err();
    EXPECT_EQ(exit->code, 75) << holder.err();
    EXPECT_NE(holder.err().find("the work was stopped"), std::string::npos) << holder.err();
  }

  const std::unique_ptr<Restorable> store_ = GetParam().make();
  Stint stint_;
};

// EVIDENCE-OF: G1 G12
TEST_P(Restored, IsRefusedByTheAnchorUntilAnOperatorHasSpokenAndNoTokenComesTwice) {
  grant(stint_);
  store_->back_up();
  grant(stint_, 3);
  ASSERT_EQ(stint_.lease("r", "token"), "4");
  store_->put_back();
  for (const char* verb : {"acquire", "show"}) expect_refused(stint_, verb, "restore.md");
  // Whoever examines it says so, and does not write it over what is remembered.
  const Finished examined = stint_({"doctor"});
  EXPECT_NE(examined.exit_code, 0) << examined.out << examined.err;
  EXPECT_NE((examined.out + examined.err).find("restore.md"), std::string::npos) << examined.out;
  EXPECT_NE(stint_({"torture", "--for", "1s", "--clients", "2"}).exit_code, 0);
  expect_refused(stint_, "acquire", "restore.md");
  // Who has no memory may use it, where it does not say so itself; those who have are not fooled.
  Stint stranger;
  stranger.use_store(store_->url());
  [[maybe_unused]] const Finished used = stranger({"run", "r", "--", "true"});
  expect_refused(stint_, "acquire", "restore.md");
  accept("restored");
  const Finished first = stint_({"acquire", "r"});
  EXPECT_GT(token_in(first), 4U) << first.err;
  EXPECT_EQ(stint_.events({"\"recovered\"", "restored"}), 1);
  // The same backup a second time: higher again.
  store_->put_back();
  expect_refused(stint_, "acquire", "restore.md");
  accept("restored again");
  const Finished second = stint_({"acquire", "r"});
  EXPECT_GT(token_in(second), token_in(first)) << second.err;
}

// EVIDENCE-OF: G12
TEST_P(Restored, IsRefusedByAPinnedClientThatRemembersNothing) {
  grant(stint_);
  store_->back_up();
  // A backup of the same generation cannot be told by its name; one from before an operator's word
  // can.
  store_->put_back();
  accept("restored");
  grant(stint_);
  const std::string issued = stint_.lease("r", "token");
  const std::string generation = stint_.lease("r", "generation");
  ASSERT_NE(generation, "");
  const auto pinned = [&](const char* verb) {
    Stint fresh;
    fresh.use_store(cat(store_->url(), "?generation=", generation));
    return fresh({verb, "r"});
  };
  EXPECT_EQ(pinned("show").exit_code, 0);
  store_->put_back();
  EXPECT_EQ(pinned("show").exit_code, 69);
  EXPECT_EQ(pinned("acquire").exit_code, 69);
  if (GetParam().empties) {
    Stint stranger;  // makes it anew, under another name
    stranger.use_store(store_->url());
    grant(stranger);
    EXPECT_EQ(pinned("acquire").exit_code, 69);
  }
  accept("restored again");
  const Finished on = pinned("acquire");
  EXPECT_EQ(on.exit_code, 0) << "it descends from the pinned one: " << on.err;
  EXPECT_GT(token_in(on), parse_digits(issued).value_or(0));
}

// Nobody is left who remembers but the target itself.
// EVIDENCE-OF: G5 G12
TEST_P(Restored, IsNoticedByAGuardsFence) {
  if (GetParam().alone) GTEST_SKIP() << "the work itself cannot ask this store";
  const TempDir site;
  const std::string page = site.file("page");
  const auto publish = [&](const Stint& world, const std::string& body) {
    return world({"run", "r", "--", "sh", "-c",
                  cat("echo ", body, " | ", stint_.binary(), " write ", page)});
  };
  grant(stint_);
  store_->back_up();
  grant(stint_, 2);
  const Finished first = publish(stint_, "before");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  store_->put_back();
  Stint stranger;
  stranger.use_store(store_->url());
  const bool usable = stranger({"show", "r"}).exit_code != 69;
  // A store that reserves tokens ahead may have gone past the fence: its token was never another's.
  const bool beyond = usable && token_in(stranger({"acquire", "r", "--ttl", "60s"})) > 4;
  if (usable) stranger({"release", "r", "--token", stranger.lease("r", "token")});
  if (usable && !beyond) {
    const Finished stale = publish(stranger, "stranger");
    EXPECT_EQ(stale.exit_code, 13) << stale.err;
    EXPECT_NE(stale.err.find(GetParam().empties ? "another store's life" : "went back in time"),
              std::string::npos)
        << stale.err;
  }
  EXPECT_EQ(read_text(page), "before\n");
  accept("restored");
  const Finished after = publish(stint_, "after");
  EXPECT_EQ(after.exit_code, 0) << after.err;
  EXPECT_EQ(read_text(page), "after\n");
}

// EVIDENCE-OF: G6 G12
TEST_P(Restored, EndsTheWorkOfARunningHolder) {
  grant(stint_);
  store_->back_up();
  grant(stint_);
  Child holder(holding());
  ASSERT_TRUE(holds()) << holder.err();
  store_->put_back();
  expect_stopped(holder);
  EXPECT_NE(holder.err().find(GetParam().says), std::string::npos) << holder.err();
}

// Who has no memory takes the same steps again in the restored store: the same token, on records
// with the same history. The holder must not take that lease for its own, nor end it.
// EVIDENCE-OF: G3 G8 G12
TEST_P(Restored, DoesNotMakeARunningHolderKeepOrEndTheLeaseOfAnother) {
  grant(stint_);
  store_->back_up();
  grant(stint_);
  Child holder(holding());
  ASSERT_TRUE(holds()) << holder.err();
  store_->put_back();
  Stint stranger;
  stranger.use_store(store_->url());
  if (stranger({"show", "r"}).exit_code == 69) GTEST_SKIP() << "nobody can use it unasked";
  grant(stranger, GetParam().empties ? 2 : 1);
  const Finished taken = stranger({"acquire", "r", "--ttl", "60s"});
  ASSERT_EQ(taken.exit_code, 0) << taken.err;
  expect_stopped(holder);
  EXPECT_TRUE(stranger.held("r"));
  EXPECT_EQ(stranger({"renew", "r", "--token", cat(token_in(taken))}).exit_code, 0);
}

INSTANTIATE_TEST_SUITE_P(Store, Restored, ::testing::ValuesIn(restorable_kinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace stint::test
