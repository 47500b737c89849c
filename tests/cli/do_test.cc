// `stint --store do://...`: the URL, the secret, faults in one clear line, and a real run.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/cli/stint.h"
#include "tests/support/servers.h"

namespace stint::test {
namespace {

class DoCli : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WorkerdServer::missing(); !why.empty()) GTEST_SKIP() << why;
    const auto started = server_.start();
    ASSERT_TRUE(started) << started.error().message;
  }
  Finished stint(const std::string& store, std::vector<std::string> words,
                 std::optional<std::string> key = WorkerdServer::kSecret) const {
    Command out = stint_.command(std::move(words));
    out.env.emplace_back("STINT_STORE", store);
    out.env.emplace_back("STINT_KEY", std::move(key));
    return run(out);
  }
  Finished stint(std::vector<std::string> words) const {
    return stint(server_.url(), std::move(words));
  }
  // One line on stderr, the exit code, the words, and never the secret.
  static void expect_fault(const Finished& done, int code, const std::string& says) {
    EXPECT_EQ(done.exit_code, code) << done.err;
    EXPECT_EQ(count_lines(done.err), 1) << done.err;
    EXPECT_NE(done.err.find(says), std::string::npos) << done.err;
    EXPECT_EQ((done.out + done.err).find(WorkerdServer::kSecret), std::string::npos) << done.err;
  }

  const Stint stint_;
  WorkerdServer server_;
};

TEST_F(DoCli, AcquiresRunsAndKeepsStoresOfOtherNamesApart) {
  EXPECT_EQ(stint({"acquire", "r", "--ttl", "60s"}).out, "1\n");
  EXPECT_EQ(stint({"acquire", "r", "--ttl", "60s"}).exit_code, 11);
  EXPECT_EQ(stint(server_.url() + "/stint", {"acquire", "r", "--ttl", "60s"}).exit_code, 11);
  EXPECT_EQ(stint(server_.url() + "/other", {"acquire", "r", "--ttl", "60s"}).out, "1\n");
  EXPECT_EQ(stint({"run", "x", "--", "true"}).exit_code, 0);
  EXPECT_EQ(stint({"run", "x", "--", "sh", "-c", "exit 7"}).exit_code, 7);
}

TEST_F(DoCli, TheChildOfARunReachesTheStoreToo) {
  const Finished done = stint(
      {"run", "x", "--", "sh", "-c", cat(stint_.binary(), " ls && ", stint_.binary(), " renew x")});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("held"), std::string::npos) << done.out;
}

TEST_F(DoCli, ASecretThatIsWrongOrMissingIsSaid) {
  for (const auto& words : {std::vector<std::string>{"ls"}, {"acquire", "r"}}) {
    expect_fault(stint(server_.url(), words, "wrong"), 77, "not the secret");
    expect_fault(stint(server_.url(), words, std::nullopt), 77, "STINT_KEY_FILE");
  }
}

TEST_F(DoCli, BadUrlsAreRefusedBeforeAnybodyIsAsked) {
  for (const auto& [store, says] : std::vector<std::pair<std::string, std::string>>{
           {"do+http://stint.example.org", "for this machine alone"},
           {"do://:s3cret@host", "out of the store URL"},
           {"do://host/a/b", "letters, digits"},
           {"do://host/..", "letters, digits"},
           {"do://one,two", "one host"},
           {"do:///name", "one host"},
           {"do:host", "// is missing"},
           {"do://host?cacert=/none", "cacert"},
           {"do+http://127.0.0.1?cacert=/etc/hostname", "unknown option"}}) {
    SCOPED_TRACE(store);
    expect_fault(stint(store, {"ls"}), 2, says);
  }
}

TEST_F(DoCli, NobodyThereIsSaid) {
  server_.kill9();
  expect_fault(stint({"ls"}), 69, "connect");
}

TEST_F(DoCli, TheDoctorNamesTheWorkerAndFindsThatItCanCarryLeases) {
  const Finished done = stint({"doctor"});
  EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
  EXPECT_NE(done.out.find("Worker 0.1.0, protocol 1"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("region"), std::string::npos);
  EXPECT_EQ(count_lines(done.out, "fail "), 0) << done.out;
}

// A store that was made anew in another's place.
// EVIDENCE-OF: G12
TEST_F(DoCli, AnObjectThatLostItsRecordsIsRefusedByWhoRemembers) {
  EXPECT_EQ(stint({"acquire", "r", "--ttl", "60s"}).out, "1\n");
  server_.stop();
  EXPECT_EQ(run({.argv = {"rm", "-r", server_.folder() + "/disk"}}).exit_code, 0);
  ASSERT_TRUE(server_.start());
  const Finished done = stint({"acquire", "r", "--ttl", "60s"});
  EXPECT_NE(done.exit_code, 0);
  EXPECT_NE(done.err.find("restore"), std::string::npos) << done.err;
}

}  // namespace
}  // namespace stint::test
