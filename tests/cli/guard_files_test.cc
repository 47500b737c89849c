// stint write and publish, as users run them.
// EVIDENCE-OF: G5
#include <gtest/gtest.h>

#include <filesystem>

#include "base/sha256.h"
#include "base/text.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

class GuardFiles : public ::testing::Test {
 protected:
  // `stint WORDS...` with a body on its standard input.
  Finished with_body(const std::string& body, std::vector<std::string> words) const {
    Command command = stint.command(std::move(words));
    command.stdin_text = body;
    return run(command);
  }
  std::string acquire(const std::string& resource) const {
    const Finished got = stint({"acquire", resource, "--ttl", "1h"});
    EXPECT_EQ(got.exit_code, 0) << got.err;
    return std::string(trim(got.out));
  }
  void revoke(const std::string& resource, const std::string& token) const {
    EXPECT_EQ(stint({"revoke", resource, "--token", token, "--why", "test"}).exit_code, 0);
  }

  Stint stint;
  std::string page = stint.dir().file("page");
};

TEST_F(GuardFiles, InsideARunNothingElseIsNeeded) {
  const Finished done = stint({"run", "site", "--", "sh", "-c",
                               cat("echo one | ", stint.binary(), " write ", page,
                                   " && echo two | ", stint.binary(), " write ", page, " --json")});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(read_text(page), "two\n");
  EXPECT_EQ(json_field(done.out, "token"), "1");
  EXPECT_EQ(json_field(done.out, "window"), "zero");
  EXPECT_EQ(json_field(done.out, "digest"), to_hex(sha256("two\n")));
}

TEST_F(GuardFiles, AStaleTokenGets13AndTheSafeNextStep) {
  const std::string old = acquire("site");
  EXPECT_EQ(with_body("one", {"write", page, "--resource", "site", "--token", old}).exit_code, 0);
  revoke("site", old);
  const std::string now = acquire("site");
  EXPECT_EQ(with_body("two", {"write", page, "--resource", "site", "--token", now}).exit_code, 0);
  const Finished late = with_body("late", {"write", page, "--resource", "site", "--token", old});
  EXPECT_EQ(late.exit_code, 13);
  EXPECT_NE(late.err.find("no longer the holder"), std::string::npos) << late.err;
  EXPECT_EQ(late.err.find("adopt"), std::string::npos) << "a refusal is no recipe";
  EXPECT_EQ(late.err.find("revoke"), std::string::npos);
  const Finished json =
      with_body("late", {"write", page, "--resource", "site", "--token", old, "--json"});
  EXPECT_EQ(json.exit_code, 13);
  EXPECT_NE(json.err.find("\"code\":\"stale\""), std::string::npos) << json.err;
  EXPECT_NE(json.err.find(cat("\"fence\":", now)), std::string::npos) << json.err;
  EXPECT_EQ(read_text(page), "two");
}

TEST_F(GuardFiles, UnderWarnItIsWrittenTheLedgerAndStderrSaySo) {
  const std::string old = acquire("site");
  revoke("site", old);
  const std::string now = acquire("site");
  ASSERT_EQ(with_body("two", {"write", page, "--resource", "site", "--token", now}).exit_code, 0);
  Command late = stint.command({"write", page, "--resource", "site", "--token", old, "--json"});
  late.stdin_text = "late";
  late.env.emplace_back("STINT_GUARD", "warn");
  const Finished done = run(late);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find("UNSAFE"), std::string::npos) << done.err;
  EXPECT_EQ(json_field(done.out, "window"), "none");
  EXPECT_EQ(read_text(page), "late");
  EXPECT_EQ(stint.events({"write_would_be_refused", cat("file:", page)}), 1);
  EXPECT_EQ(stint.events({"write_refused"}), 0);

  const std::string staged = stint.dir().file("staged");
  const std::string public_dir = stint.dir().file("public");
  std::filesystem::create_directory(staged);
  write_text(staged + "/a", "late");
  ASSERT_EQ(
      stint({"seal", cat("dir:", public_dir), "--resource", "site", "--token", now}).exit_code, 0);
  Command tree = stint.command(
      {"publish", public_dir, "--from", staged, "--resource", "site", "--token", old});
  EXPECT_EQ(run(tree).exit_code, 13);
  tree.env.emplace_back("STINT_GUARD", "warn");
  const Finished published = run(tree);
  EXPECT_EQ(published.exit_code, 0) << published.err;
  EXPECT_NE(published.err.find("UNSAFE"), std::string::npos) << published.err;
  EXPECT_EQ(read_text(public_dir + "/a"), "late");
  EXPECT_EQ(stint.events({"write_would_be_refused", cat("dir:", public_dir)}), 1);
  // A seal takes no notice.
  Command seal = stint.command({"seal", cat("file:", page), "--resource", "site", "--token", old});
  seal.env.emplace_back("STINT_GUARD", "warn");
  EXPECT_EQ(run(seal).exit_code, 13);
}

TEST_F(GuardFiles, OtherRefusalsAndFaultsHaveTheirCodes) {
  const std::string token = acquire("site");
  const auto code = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"write", page});
    return with_body("x", std::move(words)).exit_code;
  };
  EXPECT_EQ(code({}), 2);
  EXPECT_EQ(code({"--resource", "site"}), 2);
  EXPECT_EQ(code({"--resource", "site", "--token", "99"}), 13);
  EXPECT_EQ(code({"--resource", "site", "--token", token, "--mode", "twice"}), 2);
  EXPECT_EQ(code({"--resource", "site", "--token", token, "--key", "k"}), 2);
  EXPECT_EQ(code({"--resource", "site", "--token", token, "--from", "/nonexistent"}), 2);
  EXPECT_EQ(code({"--resource", "site", "--token", token, "--from", "/"}), 2);
  EXPECT_FALSE(std::filesystem::exists(page));
  EXPECT_EQ(code({"--resource", "site", "--token", token}), 0);
  EXPECT_EQ(code({"--resource", "site"}), 13);
  EXPECT_EQ(code({"--resource", "site", "--token", token, "--if-match", "none"}), 13);
  EXPECT_EQ(code({"--resource", "site", "--token", token, "--if-match", "12"}), 2);
  EXPECT_EQ(code({"--resource", "site", "--token", token, "--if-match", ""}), 2) << "an unset one";
  EXPECT_EQ(code({"--resource", "site", "--token", token, "--store", "sqlite:/proc/no/x"}), 69);
}

TEST_F(GuardFiles, OnceIsDoneOrUsed) {
  const std::string token = acquire("site");
  const auto write = [&](const std::string& body) {
    return with_body(body, {"write", page, "--resource", "site", "--token", token, "--mode", "once",
                            "--key", "today"});
  };
  EXPECT_EQ(write("one").exit_code, 0);
  const Finished again = write("one");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_NE(again.err.find("before"), std::string::npos);
  const Finished other = write("two");
  EXPECT_EQ(other.exit_code, 13);
  EXPECT_EQ(read_text(page), "one");
}

TEST_F(GuardFiles, RequireLiveRefusesALeaseThatRanOut) {
  const Finished got = stint({"acquire", "site", "--ttl", "100ms"});
  const std::string token(trim(got.out));
  ASSERT_TRUE(wait_until([&] { return !stint.held("site"); }));
  const auto write = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"write", page, "--resource", "site", "--token", token});
    return with_body("x", std::move(more)).exit_code;
  };
  EXPECT_EQ(write({"--require-live"}), 13);
  EXPECT_EQ(write({}), 0);  // late, but nobody took over
}

TEST_F(GuardFiles, AnotherLeaseOfTheRunIsPickedByItsName) {
  const Finished done = stint({"run", "a", "b", "--", "sh", "-c",
                               cat("echo x | ", stint.binary(), " write ", page, " --resource b")});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(read_text(stint.dir().file(".page.fence.1")).find("resource b"), std::string::npos);
}

TEST_F(GuardFiles, SealAndRevokeRaiseTheFenceAtTheFile) {
  const std::string old = acquire("site");
  const Finished sealed = stint({"seal", cat("file:", page), "--resource", "site", "--token", old});
  EXPECT_EQ(sealed.exit_code, 0) << sealed.err;
  EXPECT_TRUE(std::filesystem::exists(stint.dir().file(".page.fence.1")));
  revoke("site", old);
  EXPECT_TRUE(std::filesystem::exists(stint.dir().file(".page.fence.2")));
  EXPECT_EQ(with_body("late", {"write", page, "--resource", "site", "--token", old}).exit_code, 13);
  // The token of the revocation is nobody's, also where it sealed.
  for (const std::string verb : {"write", "seal"}) {
    const std::string target = verb == "seal" ? cat("file:", page) : page;
    const Finished no = with_body("x", {verb, target, "--resource", "site", "--token", "2"});
    EXPECT_EQ(no.exit_code, 13) << no.err;
    EXPECT_NE(no.err.find("nobody was ever granted that token"), std::string::npos) << no.err;
  }
  EXPECT_FALSE(std::filesystem::exists(page));
  // A fence that is gone although the record lists the target: made anew by the live holder of the
  // newest token, and by nobody else.
  const auto lose_it = [&](const std::string& token) {
    std::filesystem::remove(stint.dir().file(cat(".page.fence.", token)));
  };
  lose_it("2");
  const std::string now = acquire("site");
  const auto write = [&] {
    return with_body("new", {"write", page, "--resource", "site", "--token", now}).exit_code;
  };
  EXPECT_EQ(write(), 0);
  EXPECT_EQ(stint.events({"fence_made_anew", "page"}), 1);
  lose_it(now);
  EXPECT_EQ(with_body("late", {"write", page, "--resource", "site", "--token", old}).exit_code, 13);
  ASSERT_EQ(stint({"release", "site", "--token", now}).exit_code, 0);
  EXPECT_EQ(write(), 69) << "no longer its holder";
  EXPECT_EQ(stint.events({"fence_made_anew"}), 1);
}

// Two stores: the file goes over from one to the other by an operator's word, on record.
TEST_F(GuardFiles, AnOperatorAdoptsAFileOfAnotherStore) {
  const std::string old = acquire("site");
  const std::vector<std::string> by_old = {"write", page, "--resource", "site", "--token", old};
  ASSERT_EQ(with_body("one", by_old).exit_code, 0);
  Stint other;
  ASSERT_EQ(other({"acquire", "site", "--ttl", "1h"}).out, "1\n");
  const std::vector<std::string> seal = {"seal", cat("file:", page), "--resource",
                                         "site", "--token",          "1"};
  const Finished refused = other(seal);
  EXPECT_EQ(refused.exit_code, 13) << refused.err;
  EXPECT_EQ(refused.err.find("--adopt"), std::string::npos) << "a refusal is no recipe";
  std::vector<std::string> adopt = seal;
  adopt.insert(adopt.end(), {"--adopt", "--why", "moved to the new store"});
  const Finished adopted = other(adopt);
  EXPECT_EQ(adopted.exit_code, 0) << adopted.err;
  EXPECT_EQ(other.events({"target_adopted", "moved to the new store"}), 1);
  Command write = other.command({"write", page, "--resource", "site", "--token", "1"});
  write.stdin_text = "two";
  EXPECT_EQ(run(write).exit_code, 0);
  EXPECT_NE(with_body("late", by_old).exit_code, 0);
  EXPECT_EQ(read_text(page), "two");
}

TEST_F(GuardFiles, PublishPutsAWholeTreeInPlace) {
  const std::string staged = stint.dir().file("out");
  std::filesystem::create_directories(staged + "/css");
  write_text(staged + "/css/a", "one");
  const std::string site = stint.dir().file("www");
  const std::string old = acquire("site");
  const auto publish = [&](const std::string& token) {
    return stint({"publish", site, "--from", staged, "--resource", "site", "--token", token})
        .exit_code;
  };
  EXPECT_EQ(publish(old), 0);
  revoke("site", old);
  const std::string now = acquire("site");
  write_text(staged + "/css/a", "two");
  EXPECT_EQ(publish(now), 0);
  EXPECT_EQ(read_text(site + "/css/a"), "two");
  write_text(staged + "/css/a", "late");
  EXPECT_EQ(publish(old), 13);
  EXPECT_EQ(read_text(site + "/css/a"), "two");
  EXPECT_EQ(stint({"publish", site, "--resource", "site", "--token", now}).exit_code, 2);
}

// A copy of the live tree, changed and published back, with the fence that stood when it was made.
TEST_F(GuardFiles, APublishedCopyBringsNoOldFenceAndTakesNone) {
  namespace fs = std::filesystem;
  const std::string live = stint.dir().file("live");
  const std::string out = stint.dir().file("out");
  fs::create_directory(live);
  const auto write = [&](const std::string& token) {
    return with_body("by " + token, {"write", live + "/a", "--resource", "site", "--token", token});
  };
  const auto publish = [&](const std::string& token) {
    return stint({"publish", live, "--from", out, "--resource", "site", "--token", token});
  };
  const std::string old = acquire("site");
  ASSERT_EQ(write(old).exit_code, 0);
  fs::copy(live, out, fs::copy_options::recursive);
  revoke("site", old);
  const std::string now = acquire("site");
  ASSERT_EQ(write(now).exit_code, 0);
  for (int i = 0; i < 2; ++i) {
    const Finished published = publish(now);
    ASSERT_EQ(published.exit_code, 0) << published.err;
    const Finished late = write(old);
    EXPECT_EQ(late.exit_code, 13) << late.err;
    const Finished own = write(now);
    EXPECT_EQ(own.exit_code, 0) << own.err;
  }
  EXPECT_EQ(read_text(live + "/a"), "by " + now);
}

}  // namespace
}  // namespace stint::test
