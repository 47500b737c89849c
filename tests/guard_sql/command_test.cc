// `stint guard` on a database, and a seal through the module's own face.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/cli/stint.h"
#include "tests/guard_sql/session.h"

namespace stint::test {
namespace {

std::string url_of(const std::string& database) {
  return cat("postgres://postgres@127.0.0.1:", server().port(), "/", database);
}

TEST(GuardCommand, InstallsProtectsChecksAndRemoves) {
  const std::string database = new_database();
  const std::string url = url_of(database);
  Session session(database);
  session.must("CREATE TABLE posts (i int)");
  const Stint stint;
  EXPECT_EQ(stint({"guard", "check", url}).exit_code, 1);
  EXPECT_EQ(stint({"guard", "protect", url, "posts", "--resource", "blog"}).exit_code, 69);
  EXPECT_EQ(stint({"guard", "install", url}).exit_code, 0);
  EXPECT_EQ(stint({"guard", "install", url}).exit_code, 0);
  EXPECT_EQ(stint({"guard", "protect", url, "posts"}).exit_code, 2);
  EXPECT_EQ(stint({"guard", "protect", url, "nowhere", "--resource", "blog"}).exit_code, 2);
  EXPECT_EQ(stint({"guard", "protect", url, "posts", "--resource", "blog"}).exit_code, 0);
  EXPECT_EQ(session.state_of("INSERT INTO posts VALUES (1)"), "ST006");
  const Finished check = stint({"guard", "check", url + "#blog"});
  EXPECT_EQ(check.exit_code, 0) << check.out;
  EXPECT_NE(check.out.find("warn  nothing was sealed for 'blog'"), std::string::npos) << check.out;
  EXPECT_NE(check.out.find("the table posts needs a token of 'blog'"), std::string::npos)
      << check.out;
  EXPECT_EQ(check.out.find("protect again"), std::string::npos) << check.out;
  session.must("DROP EVENT TRIGGER stint_guard_follow");
  EXPECT_NE(stint({"guard", "check", url}).out.find("fail  posts is protected, and the guard"),
            std::string::npos);
  EXPECT_EQ(stint({"guard", "protect", url, "posts", "--resource", "blog"}).exit_code, 0);
  const Finished told = stint({"guard", "check", url});
  EXPECT_EQ(told.exit_code, 0) << told.out;
  EXPECT_NE(told.out.find("warn  a table that becomes a part"), std::string::npos) << told.out;
  EXPECT_EQ(stint({"guard", "uninstall", url}).exit_code, 2);
  EXPECT_EQ(stint({"guard", "unprotect", url, "posts"}).exit_code, 0);
  EXPECT_EQ(stint({"guard", "uninstall", url}).exit_code, 0);
  EXPECT_EQ(session.state_of("INSERT INTO posts VALUES (1)"), "");
}

// The whole way: runs that seal a database whose leases are elsewhere.
// EVIDENCE-OF: G5
TEST(GuardCommand, RunsSealTheDatabaseAndTheFormerTokenIsRefused) {
  const std::string database = guarded_database();
  Session session(database);
  session.must("CREATE TABLE posts (i int)");
  const std::string target = url_of(database) + "#blog";
  const Stint stint;
  const std::string write = cat(
      "exec ", PostgresServer::program("psql"), " -XAtq -v ON_ERROR_STOP=1 -d ", url_of(database),
      " -c \"BEGIN; SELECT stint.admit('$STINT_RESOURCE', ${T:-$STINT_TOKEN}, "
      "'$STINT_GENERATION'); INSERT INTO posts VALUES ($STINT_TOKEN); COMMIT\"");
  for (const char* count : {"1", "2"}) {
    const Finished done = stint({"run", "blog", "--seal", target, "--", "sh", "-c", write});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(session.value("SELECT count(*) FROM posts"), count);
  }
  const Finished late = stint({"run", "blog", "--", "sh", "-c", cat("T=2; ", write)});
  EXPECT_NE(late.exit_code, 0);
  EXPECT_NE(late.err.find("is stale"), std::string::npos) << late.err;
  EXPECT_EQ(session.value("SELECT token FROM stint.fences"), "3");
  EXPECT_EQ(stint({"seal", target, "--resource", "blog", "--token", "2"}).exit_code, 13);
  EXPECT_EQ(stint({"seal", target, "--resource", "blog", "--token", "9"}).exit_code, 13);
  // An order seals what the runs have sealed.
  const Finished revoked = stint({"revoke", "blog", "--token", "3", "--why", "stuck"});
  EXPECT_EQ(revoked.exit_code, 0) << revoked.err;
  EXPECT_EQ(session.value("SELECT token || ' ' || nobodys FROM stint.fences"), "4 true");
  // Its token is nobody's.
  const std::string generation = session.value("SELECT generation FROM stint.fences");
  EXPECT_EQ(session.state_of(cat("SELECT stint.admit('blog', 4, '", generation, "')")), "ST004");
  EXPECT_EQ(stint({"run", "blog", "--seal", target, "--", "sh", "-c", write}).exit_code, 0);
  EXPECT_EQ(session.value("SELECT token || ' ' || nobodys FROM stint.fences"), "5 false");
}

TEST(GuardCommand, SaysWhatIsWrongAndNeverAPassword) {
  const Stint stint;
  const auto expect = [&](std::vector<std::string> words, int code) {
    const Finished done = stint(std::move(words));
    EXPECT_EQ(done.exit_code, code) << done.err;
    EXPECT_EQ(done.err.find("s3cret"), std::string::npos) << done.err;
    EXPECT_EQ(count_lines(done.err), 1) << done.err;
  };
  expect({"guard", "install", "postgres://u:s3cret@127.0.0.1/db"}, 2);
  expect({"guard", "install", "postgres://u@127.0.0.1/db?password=s3cret"}, 2);
  expect({"seal", "postgres://u@127.0.0.1/db?password=s3cret#r", "--resource", "r", "--token", "1"},
         2);
  expect({"guard", "install", "sqlite:/tmp/x"}, 2);
  expect({"guard", "install", "postgres://u@127.0.0.1:1/db"}, 69);
  expect({"guard", "explode", url_of("postgres")}, 2);
  expect({"guard", "install", url_of("postgres"), "posts"}, 2);
  expect({"guard", "install", url_of("there_is_none")}, 69);
  write_text(stint.dir().file("url"), "postgres://u:s3cret@127.0.0.1:1/db\n");
  expect({"guard", "install", "@" + stint.dir().file("url")}, 69);
}

// A store that says what it is told to say.
class SayingFences final : public api::Fences {
 public:
  Result<api::TokenWord> word(const ResourceName&) override {
    ++asked;
    if (!says) return unavailable("the store is away");
    return *says;
  }
  Result<std::vector<std::string>> sealed(const ResourceName&) override { return no(); }
  Result<core::Verdict> remember(const core::Offer&, const std::vector<std::string>&) override {
    return no();
  }
  Status forget(const ResourceName&, const std::string&, const api::ForgetWord&) override {
    return no();
  }
  Result<api::FenceAnswer> admit(const std::string&, const core::Offer&) override { return no(); }
  Result<api::FenceAnswer> seal(const std::string&, const core::Offer&) override { return no(); }
  Result<std::optional<core::Fence>> fence(const std::string&) override { return no(); }
  Result<api::FenceAnswer> begin(const api::Act&, const core::Offer&) override { return no(); }
  Result<api::FenceAnswer> finish(const api::Act&, const core::Offer&) override { return no(); }
  Result<std::optional<api::Act>> act(const std::string&, const std::string&) override {
    return no();
  }

  int asked = 0;
  std::optional<api::TokenWord> says;

 private:
  static Error no() { return invalid("not asked for"); }
};

class GuardSeal : public ::testing::Test {
 protected:
  GuardSeal() : database_(guarded_database()), guard_(guard_of(database_)) {}
  void newest(std::uint64_t token, bool granted = true) {
    store_.says = api::TokenWord{.issued = {.generation = life_,
                                            .ancestors = {},
                                            .newest = Token(token),
                                            .newest_granted = granted},
                                 .owner = Owner::parse("b").value(),
                                 .claim = {},
                                 .live = true,
                                 .remaining = {}};
  }
  guard::SealRequest request(std::uint64_t token) const {
    return {.pass = {.resource = ResourceName::parse("r").value(),
                     .token = Token(token),
                     .generation = life_,
                     .claim = {},
                     .owner = {},
                     .key = ""},
            .by_order = false,
            .adopt = {}};
  }
  core::Verdict refused(const guard::SealRequest& asked) {
    auto answer = guard_->seal(asked, &store_);
    EXPECT_TRUE(answer) << answer.error().message;
    const auto* no = std::get_if<guard::Refused>(&*answer);
    EXPECT_NE(no, nullptr);
    return no == nullptr ? core::Verdict::Admitted : no->verdict;
  }
  bool sealed(const guard::SealRequest& asked, bool already) {
    auto answer = guard_->seal(asked, &store_);
    EXPECT_TRUE(answer) << answer.error().message;
    const auto* yes = answer ? std::get_if<guard::Sealed>(&*answer) : nullptr;
    return yes != nullptr && yes->already == already;
  }

  const Generation life_ = Generation::parse(kLife).value();
  std::string database_;
  std::unique_ptr<guard::PostgresGuard> guard_;
  SayingFences store_;
};

TEST_F(GuardSeal, AsksTheStoreOnceAndOnlyForATokenAboveTheFence) {
  EXPECT_EQ(guard_->seal(request(5), &store_).error().code, Code::Unavailable);
  EXPECT_EQ(guard_->seal(request(5), nullptr).error().code, Code::Unavailable);
  newest(5);
  store_.asked = 0;
  EXPECT_TRUE(sealed(request(5), false));
  EXPECT_EQ(store_.asked, 1);
  EXPECT_TRUE(sealed(request(5), true));
  EXPECT_EQ(refused(request(4)), core::Verdict::Stale);
  EXPECT_EQ(store_.asked, 1);
  EXPECT_EQ(refused(request(6)), core::Verdict::NeverIssued);
  newest(7);
  EXPECT_EQ(refused(request(6)), core::Verdict::Stale);
  newest(7, false);
  EXPECT_EQ(refused(request(7)), core::Verdict::NeverGranted);
  guard::SealRequest ordered = request(7);
  ordered.by_order = true;
  EXPECT_TRUE(sealed(ordered, false));
  newest(6);
  EXPECT_EQ(refused(request(8)), core::Verdict::Restored);
}

TEST_F(GuardSeal, AnAdoptionIsOnRecord) {
  newest(5);
  ASSERT_TRUE(sealed(request(5), false));
  guard::SealRequest foreign = request(2);
  foreign.pass.generation = Generation::parse(std::string(32, '7')).value();
  newest(2);
  store_.says->issued.generation = foreign.pass.generation;
  EXPECT_EQ(refused(foreign), core::Verdict::Foreign);
  foreign.adopt = {.why = "moved house", .by = "op"};
  EXPECT_TRUE(sealed(foreign, false));
  EXPECT_EQ(
      Session(database_).value("SELECT kind || ' ' || token || ' ' || why FROM stint.overrides"),
      "adopt 2 op: moved house");
}

TEST_F(GuardSeal, SaysWhoItWaitsForWhenTheirTimeIsLongerThanItsOwn) {
  newest(1);
  ASSERT_TRUE(sealed(request(1), false));
  Session writer(database_);
  writer.must("BEGIN; SELECT stint.admit('r', 1)");
  newest(2);
  const auto answer = guard_of(database_, "postgres", Millis(1'000))->seal(request(2), &store_);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::Unavailable) << answer.error().message;
  // Announced all the same: no older one begins.
  EXPECT_EQ(Session(database_).state_of("SELECT stint.admit('r', 1)"), "ST001");
  EXPECT_EQ(guard_->look().value().problems.size(), 1U);
  writer.must("COMMIT");
  EXPECT_TRUE(sealed(request(2), false));
  EXPECT_TRUE(guard_->look().value().problems.empty());
}

}  // namespace
}  // namespace stint::test
