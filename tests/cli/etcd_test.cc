// `stint --store etcd://...`: the URL and its options, faults in one clear line, and a real run.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "base/text.h"
#include "tests/cli/stint.h"
#include "tests/support/loopback.h"
#include "tests/support/servers.h"

namespace stint::test {
namespace {

constexpr std::string_view kSecret = "s3cret";

// One line on stderr, the exit code, the words, and never the password.
void expect_fault(const Finished& done, int code, const std::string& says) {
  EXPECT_EQ(done.exit_code, code) << done.err;
  EXPECT_EQ(count_lines(done.err), 1) << done.err;
  EXPECT_NE(done.err.find(says), std::string::npos) << done.err;
  EXPECT_EQ((done.out + done.err).find(kSecret), std::string::npos) << done.err;
}

class EtcdCli : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = EtcdCluster::missing(); !why.empty()) GTEST_SKIP() << why;
  }
  void start() {
    const auto started = etcd_.start();
    ASSERT_TRUE(started) << started.error().message;
  }
  std::string url(const std::string& rest = "", const std::string& login = "") const {
    return cat("etcd://", login, "127.0.0.1:", port(), rest);
  }
  std::uint16_t port() const { return tls_port_ != 0 ? tls_port_ : node().port(); }
  const EtcdNode& node() const { return const_cast<EtcdCluster&>(etcd_).node(0); }
  // By the environment: a password on the command line is refused.
  Command command(const std::string& store, std::vector<std::string> words) const {
    Command out = stint_.command(std::move(words));
    out.env.emplace_back("STINT_STORE", store);
    return out;
  }
  Finished stint(const std::string& store, std::vector<std::string> words) const {
    return run(command(store, std::move(words)));
  }
  Finished ls(const std::string& store) const { return stint(store, {"ls"}); }
  Finished gateway(const std::string& path, const std::string& body,
                   const std::string& token = "") const {
    return run({.argv = {"curl", "-s", "-H", cat("Authorization: ", token), "-d", body,
                         cat("http://127.0.0.1:", node().port(), path)}});
  }
  // A certificate authority, and certificates of a server and a client.
  void start_with_tls(bool ask_clients) {
    const auto make = [&](const std::string& name, const std::string& more) {
      const std::string base = stint_.dir().file(name);
      const Finished made =
          run({.argv = {"sh", "-ec",
                        cat("openssl req -newkey rsa:2048 -nodes -subj /CN=", name, " -keyout ",
                            base, ".key ", more, " 2>/dev/null")}});
      EXPECT_EQ(made.exit_code, 0) << made.err;
    };
    make("ca", cat("-x509 -days 2 -out ", file("ca.pem")));
    write_text(file("ext"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n");
    for (const char* name : {"server", "client"}) {
      make(name, cat("-out ", file(cat(name, ".csr")), " && openssl x509 -req -days 2 -in ",
                     file(cat(name, ".csr")), " -CA ", file("ca.pem"), " -CAkey ", file("ca.key"),
                     " -CAcreateserial -extfile ", file("ext"), " -out ", file(cat(name, ".pem"))));
    }
    const std::uint16_t tls_port = free_port();
    // The plain one is for the test itself.
    const std::string urls =
        cat("https://127.0.0.1:", tls_port, ",http://127.0.0.1:", node().port());
    std::vector<std::string> more = {
        "--listen-client-urls", urls,         "--advertise-client-urls", urls, "--cert-file",
        file("server.pem"),     "--key-file", file("server.key")};
    if (ask_clients) {
      more.insert(more.end(), {"--client-cert-auth", "--trusted-ca-file", file("ca.pem")});
    }
    etcd_.node(0).with(more);
    start();
    tls_port_ = tls_port;
  }
  std::string file(const std::string& name) const { return stint_.dir().file(name); }

  const Stint stint_;
  EtcdCluster etcd_;
  std::uint16_t tls_port_ = 0;
};

TEST_F(EtcdCli, BadUrlsAreRefusedBeforeAnybodyIsAsked) {
  const std::string host = "etcd://me:s3cret@127.0.0.1:1";
  for (const auto& [store, says] : std::vector<std::pair<std::string, std::string>>{
           {cat(host, "?colour=red"), "unknown option"},
           {cat(host, "?tls=yes"), "tls is 1 or 0"},
           {cat(host, "?cacert=/etc/hostname"), "needs tls=1"},
           {cat(host, "?tls=1&cacert=/none"), "cacert"},
           {cat(host, "?tls=1&cert=/etc/hostname"), "go together"},
           {cat(host, "?tls=1&key=/etc/hostname"), "go together"},
           {cat(host, "?timeout=5"), "needs a unit"},
           {"etcd:///prefix", "names no host"},
           {"etcd://:s3cret@127.0.0.1:1", "no user"},
           {"etcd:127.0.0.1", "// is missing"},
           {"etcd://127.0.0.1:99999", "port"},
           {cat("etcd://127.0.0.1:1/", std::string(300, 'x')), "256 bytes"}}) {
    SCOPED_TRACE(store);
    expect_fault(ls(store), 2, says);
  }
}

TEST_F(EtcdCli, NobodyThereIsSaidWithinTheTime) {
  expect_fault(ls(cat("etcd://me:s3cret@127.0.0.1:", free_port())), 69, "Failed to connect");
  const Listener deaf = listen_loopback();  // takes connections and says nothing
  const Finished done = ls(cat("etcd://127.0.0.1:", deaf.port, "?timeout=1s"));
  expect_fault(done, 69, "no answer within the time");
  EXPECT_GE(done.took, Millis(900));
  EXPECT_LT(done.took, Millis(2'500));
}

TEST_F(EtcdCli, AnotherServerIsNoEtcd) {
  if (!RedisServer::missing().empty()) GTEST_SKIP() << RedisServer::missing();
  RedisServer redis;
  ASSERT_TRUE(redis.start());
  expect_fault(ls(cat("etcd://127.0.0.1:", redis.port())), 69, "etcd at http://127.0.0.1");
}

TEST_F(EtcdCli, AsksTheNextHostWhenTheFirstIsNotThere) {
  start();
  const std::string store = cat("etcd://127.0.0.1:", free_port(), ",127.0.0.1:", port());
  EXPECT_EQ(stint(store, {"acquire", "r", "--ttl", "60s"}).out, "1\n");
}

TEST_F(EtcdCli, APrefixIsAStoreOfItsOwnAndAnothersKeysAreLeftAlone) {
  start();
  EXPECT_EQ(stint(url("/a/b"), {"acquire", "r", "--ttl", "60s"}).out, "1\n");
  EXPECT_EQ(stint(url("/c"), {"acquire", "r", "--ttl", "60s"}).out, "1\n");
  EXPECT_EQ(stint(url("/c/"), {"acquire", "r", "--ttl", "60s"}).exit_code, 11) << "the same as /c";
  // "other/key" of somebody else.
  ASSERT_EQ(gateway("/v3/kv/put", R"({"key":"b3RoZXIva2V5","value":"eA=="})").exit_code, 0);
  expect_fault(ls(url("/other")), 69, "are not Stint's");
  ASSERT_EQ(gateway("/v3/kv/put", R"({"key":"b2xkL2Zvcm1hdA==","value":"c3RpbnQgOQ=="})").exit_code,
            0);
  expect_fault(ls(url("/old")), 69, "made by a newer one");
}

TEST_F(EtcdCli, UserAndPasswordAreNeededWhereTheServerAsksForThem) {
  start();
  expect_fault(ls(url("", "root:s3cret@")), 77, "authentication is not enabled");
  for (const auto& [path, body] : std::vector<std::pair<std::string, std::string>>{
           {"/v3/auth/user/add", R"({"name":"root","password":"s3cret"})"},
           {"/v3/auth/user/add", R"({"name":"guest","password":"s3cret"})"},
           {"/v3/auth/role/add", R"({"name":"root"})"},
           {"/v3/auth/user/grant", R"({"user":"root","role":"root"})"},
           {"/v3/auth/enable", "{}"}}) {
    ASSERT_EQ(gateway(path, body).exit_code, 0);
  }
  EXPECT_EQ(stint(url("", "root:s3cret@"), {"acquire", "r", "--ttl", "60s"}).out, "1\n");
  EXPECT_EQ(stint(url("", "root:s3cret@"), {"run", "q", "--", "true"}).exit_code, 0);
  expect_fault(ls(url("", "root:s3cret-wrong@")), 77, "authentication failed");
  expect_fault(ls(url("", "nobody:s3cret@")), 77, "authentication failed");
  expect_fault(ls(url()), 77, "user name is empty");
  expect_fault(ls(url("", "guest:s3cret@")), 77, "permission denied");
}

TEST_F(EtcdCli, TheDoctorTellsWhatTheUserMayDo) {
  // From "stint/" to "stint0", in base64.
  const std::string below = R"("key":"c3RpbnQv","range_end":"c3RpbnQw"}})";
  start();
  ASSERT_EQ(ls(url()).exit_code, 0);
  const auto doctor = [&](const std::string& user) {
    return run(command(url("", user), {"doctor"}), Millis(60'000)).out;
  };
  EXPECT_EQ(count_lines(doctor(""), "warn permissions"), 1) << "authentication is off";
  for (const auto& [path, body] : std::vector<std::pair<std::string, std::string>>{
           {"/v3/auth/user/add", R"({"name":"root","password":"s3cret"})"},
           {"/v3/auth/user/add", R"({"name":"worker","password":"s3cret"})"},
           {"/v3/auth/user/add", R"({"name":"reader","password":"s3cret"})"},
           {"/v3/auth/role/add", R"({"name":"root"})"},
           {"/v3/auth/role/add", R"({"name":"stint"})"},
           {"/v3/auth/role/add", R"({"name":"look"})"},
           {"/v3/auth/role/grant",
            cat(R"({"name":"stint","perm":{"permType":"READWRITE",)", below)},
           {"/v3/auth/role/grant", cat(R"({"name":"look","perm":{"permType":"READ",)", below)},
           {"/v3/auth/user/grant", R"({"user":"root","role":"root"})"},
           {"/v3/auth/user/grant", R"({"user":"worker","role":"stint"})"},
           {"/v3/auth/user/grant", R"({"user":"reader","role":"look"})"},
           {"/v3/auth/enable", "{}"}}) {
    ASSERT_EQ(gateway(path, body).exit_code, 0) << body;
  }
  const std::string enough = doctor("worker:s3cret@");
  EXPECT_EQ(count_lines(enough, "ok   permissions"), 1) << enough;
  const std::string half = doctor("reader:s3cret@");
  EXPECT_EQ(count_lines(half, "fail permissions"), 1) << half;
  EXPECT_NE(half.find("no role with write"), std::string::npos) << half;
  EXPECT_NE(doctor("root:s3cret@").find("has the role root"), std::string::npos);
}

TEST_F(EtcdCli, TlsNeedsItsOptionAndTheRightAuthority) {
  start_with_tls(false);
  const std::string ca = file("ca.pem");
  EXPECT_EQ(ls(url(cat("?tls=1&cacert=", ca))).exit_code, 0);
  expect_fault(ls(url()), 69, "add tls=1");
  expect_fault(ls(url("?tls=1")), 69, "certificate");
  expect_fault(ls(cat("etcd://127.0.0.1:", node().port(), "?tls=1&cacert=", ca)), 69, "SSL");
}

TEST_F(EtcdCli, AClientCertificateIsShownWhereTheServerAsksForIt) {
  start_with_tls(true);
  const std::string ca = cat("?tls=1&cacert=", file("ca.pem"));
  const Finished without = ls(url(ca));
  EXPECT_EQ(without.exit_code, 69) << without.err;
  const std::string mine = cat(ca, "&cert=", file("client.pem"), "&key=", file("client.key"));
  EXPECT_EQ(stint(url(mine), {"run", "r", "--", "true"}).exit_code, 0);
}

TEST_F(EtcdCli, RunsWaitsAndIsRevoked) {
  start();
  const std::string store = url("?timeout=10s");
  const Finished done =
      stint_({"run", "r", "--store", store, "--ttl", "30s", "--", "sh", "-c", "echo $STINT_TOKEN"});
  EXPECT_EQ(done.out, "1\n") << done.err;
  Child holder(command(store, {"run", "r", "--", "sleep", "60"}));
  ASSERT_TRUE(wait_until([&] {
    return json_field(stint(store, {"show", "r", "--json"}).out, "held") == "true";
  }));
  Child waiting(command(store, {"run", "r", "--on-held", "wait", "--", "echo", "got it"}));
  ASSERT_TRUE(wait_until([&] { return waiting.err().find("waiting") != std::string::npos; }));
  const std::string token = json_field(stint(store, {"show", "r", "--json"}).out, "token");
  const Finished revoked = stint(store, {"revoke", "r", "--token", token, "--why", "test"});
  EXPECT_EQ(revoked.exit_code, 0) << revoked.err;
  const auto ended = holder.wait(Millis(10'000));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code, 75) << holder.err();
  const auto next = waiting.wait(Millis(10'000));
  ASSERT_TRUE(next) << waiting.err();
  EXPECT_EQ(next->code, 0) << waiting.err();
  EXPECT_EQ(waiting.out(), "got it\n");
}

}  // namespace
}  // namespace stint::test
