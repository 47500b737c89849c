// The real program on a real Redis: every URL option, everything that can be wrong with a URL or a
// server, and runs that wait, hand over and are revoked.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/cli/stint.h"
#include "tests/support/loopback.h"
#include "tests/support/servers.h"

namespace stint::test {
namespace {

using std::chrono::milliseconds;

class RedisCli : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = RedisServer::missing(); !why.empty()) GTEST_SKIP() << why;
  }
  static void start(Server& server) {
    const auto started = server.start();
    ASSERT_TRUE(started) << started.error().message << server.log();
  }
  // With the URL in the environment, where a password may stand.
  Finished at(const std::string& url, std::vector<std::string> words,
              Millis deadline = Millis(20'000)) const {
    return run(command(url, std::move(words)), deadline);
  }
  Command command(const std::string& url, std::vector<std::string> words) const {
    Command out = stint_.command(std::move(words));
    std::erase_if(out.env, [](const auto& each) { return each.first == "STINT_STORE"; });
    out.env.emplace_back("STINT_STORE", url);
    return out;
  }
  // One line, the code, and no secret in it.
  void refused(const std::string& url, int code, std::string_view says) const {
    const Finished done = at(url, {"acquire", "r"});
    EXPECT_EQ(done.exit_code, code) << url << ": " << done.err;
    EXPECT_EQ(done.out, "");
    EXPECT_EQ(count_lines(done.err), 1) << done.err;
    EXPECT_NE(done.err.find(says), std::string::npos) << url << ": " << done.err;
    EXPECT_EQ(done.err.find("s3cret"), std::string::npos) << done.err;
  }
  static std::string say(const Server& server, const std::vector<std::string>& words) {
    std::vector<std::string> argv = {"redis-cli", "-p", cat(server.port())};
    argv.insert(argv.end(), words.begin(), words.end());
    return run({.argv = std::move(argv)}).out;
  }

  const Stint stint_;
};

TEST_F(RedisCli, BadUrlsAreRefusedBeforeAnythingIsAsked) {
  refused("redis:host", 2, "//");
  refused("redis://h/db", 2, "is a number");
  refused("redis://h/70000", 2, "is a number");
  refused("redis://h:0", 2, "port");
  refused("redis://a,b", 2, "one host");
  refused("redis://ann@h", 2, "without a password");
  refused("redis://h?prefix=", 2, "prefix");
  refused("redis://h?prefix={x}", 2, "prefix");
  refused("redis://h?wait=0", 2, "wait");
  refused("redis://h?wait=many", 2, "wait");
  refused("redis://h?cacert=/x", 2, "unknown option");
  refused("redis://h?password=s3cret", 2, "unknown option");
  refused("rediss://h?cert=/x", 2, "belong together");
  refused("redis+unix:", 2, "path");
  refused("redis+unix:/tmp/s?db=x", 2, "is a number");
}

TEST_F(RedisCli, AnUnreachableServerIsOneLineWithinTheTimeout) {
  refused(cat("redis://127.0.0.1:", free_port()), 69, "Connection refused");
  refused("redis://no-such-host.invalid", 69, "no-such-host.invalid");
  refused("redis+unix:/no/such/socket", 69, "No such file");
  // Accepts, and never says a word.
  const Listener silent = listen_loopback();
  const Finished done =
      at(cat("redis://127.0.0.1:", silent.port, "?timeout=400ms"), {"acquire", "r"});
  EXPECT_EQ(done.exit_code, 69) << done.err;
  EXPECT_LT(done.took, milliseconds(3'000)) << "the default is five seconds";
  EXPECT_NE(done.err.find("in time"), std::string::npos) << done.err;
}

TEST_F(RedisCli, PasswordsUsersAndDatabasesAreUsed) {
  RedisServer server({.appendfsync = "always",
                      .appendonly = true,
                      .more = {"--user", "default", "on", ">s3cret", "~*", "&*", "+@all", "--user",
                               "ann", "on", ">s3cret2", "~{stint}:*", "&{stint}@*", "+@all"}});
  ASSERT_TRUE(server.launch());
  const std::string host = cat("127.0.0.1:", server.port());
  const std::string url = cat("redis://:s3cret@", host);
  ASSERT_TRUE(wait_until([&] { return at(url, {"show", "r"}).exit_code == 0; })) << server.log();
  EXPECT_EQ(at(url, {"acquire", "r"}).out, "1\n");
  EXPECT_EQ(at(cat("redis://ann:s3cret2@", host), {"acquire", "r"}).exit_code, 11);
  EXPECT_EQ(at(cat(url, "/3"), {"acquire", "r"}).out, "1\n") << "another database, another store";
  EXPECT_EQ(at(cat(url, "?prefix=other"), {"acquire", "r"}).out, "1\n") << "another name as well";
  refused(cat("redis://", host), 77, "password");
  refused(cat("redis://:s3cretx@", host), 77, "password");
  refused(cat("redis://ann:s3cret@", host), 77, "password");
  refused(cat("redis://ann:s3cret2@", host, "?prefix=other"), 77, "permit");
  refused(cat(url, "/99"), 69, "no database 99");
}

TEST_F(RedisCli, AUnixSocketIsReachedWithItsOwnOptions) {
  const TempDir place;
  const std::string socket = place.file("redis.sock");
  RedisServer server(
      {.appendfsync = "always", .appendonly = true, .more = {"--unixsocket", socket}});
  start(server);
  EXPECT_EQ(at(cat("redis+unix:", socket), {"acquire", "r"}).out, "1\n");
  EXPECT_EQ(at(server.url(), {"acquire", "r"}).exit_code, 11) << "the same store";
  EXPECT_EQ(at(cat("redis+unix:", socket, "?db=2"), {"acquire", "r"}).out, "1\n");
  EXPECT_EQ(at(cat("redis+unix:", socket, "?prefix=p"), {"acquire", "r"}).out, "1\n");
  say(server, {"ACL", "SETUSER", "ann", "on", ">s3cret", "~*", "&*", "+@all"});
  say(server, {"ACL", "SETUSER", "default", "off"});
  EXPECT_EQ(at(cat("redis+unix:", socket, "?user=ann&password=s3cret"), {"show", "r"}).exit_code,
            0);
  refused(cat("redis+unix:", socket, "?user=ann&password=s3cretx"), 77, "password");
  refused(cat("redis+unix:", socket), 77, "password");
}

TEST_F(RedisCli, WaitWantsItsReplicas) {
  RedisServer server;
  start(server);
  refused(cat(server.url(), "?wait=1"), 69, "has 0 replicas");
  EXPECT_EQ(at(server.url(), {"acquire", "r"}).out, "1\n");
}

TEST_F(RedisCli, AServerThatCannotCarryLeasesIsNamed) {
  RedisServer server;
  start(server);
  say(server, {"SET", "{stint}:records", "mine"});
  refused(server.url(), 69, "belongs to somebody else");
  say(server, {"FLUSHALL"});
  say(server, {"REPLICAOF", "127.0.0.1", "1"});
  refused(server.url(), 69, "replica");
  RedisServer cluster(
      {.appendfsync = "always", .appendonly = true, .more = {"--cluster-enabled", "yes"}});
  start(cluster);
  refused(cluster.url(), 69, "cluster");
  RedisServer renamed(
      {.appendfsync = "always", .appendonly = true, .more = {"--rename-command", "EVAL", ""}});
  start(renamed);
  refused(renamed.url(), 69, "has no EVAL");
  PostgresServer other;
  if (PostgresServer::missing().empty()) {
    start(other);
    refused(cat("redis://127.0.0.1:", other.port(), "?timeout=2s"), 69, "127.0.0.1");
  }
}

// A certificate authority, a server's certificate for 127.0.0.1 and a client's.
class Certificates {
 public:
  Certificates() {
    write_text(dir_.file("server.ext"), "subjectAltName=IP:127.0.0.1\n");
    make_authority("ca");
    make_authority("other");
    sign("server", "-extfile " + dir_.file("server.ext"));
    sign("client", "");
  }
  std::string file(std::string_view name) const { return dir_.file(name); }

 private:
  void openssl(const std::string& words) {
    const Finished done =
        run({.argv = {"sh", "-c", "openssl " + words}, .cwd = dir_.path()}, milliseconds(60'000));
    EXPECT_EQ(done.exit_code, 0) << words << done.err;
  }
  void make_authority(const std::string& name) {
    openssl(cat("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=", name, " -keyout ", name,
                ".key -out ", name, ".pem"));
  }
  void sign(const std::string& name, const std::string& more) {
    openssl(cat("req -newkey rsa:2048 -nodes -subj /CN=", name, " -keyout ", name, ".key -out ",
                name, ".csr"));
    openssl(cat("x509 -req -in ", name, ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 ",
                more, " -out ", name, ".pem"));
  }
  TempDir dir_;
};

TEST_F(RedisCli, TlsIsVerifiedAndClientsShowTheirCertificates) {
  if (find_program("openssl").empty()) GTEST_SKIP() << "openssl is not installed";
  const Certificates keys;
  const std::uint16_t tls_port = free_port();
  RedisServer server(
      {.appendfsync = "always",
       .appendonly = true,
       .more = {"--tls-port", cat(tls_port), "--tls-cert-file", keys.file("server.pem"),
                "--tls-key-file", keys.file("server.key"), "--tls-ca-cert-file",
                keys.file("ca.pem"), "--tls-auth-clients", "yes"}});
  start(server);
  const std::string url = cat("rediss://127.0.0.1:", tls_port);
  const std::string ours = cat("&cert=", keys.file("client.pem"), "&key=", keys.file("client.key"));
  const std::string good = cat(url, "?cacert=", keys.file("ca.pem"), ours);
  EXPECT_EQ(at(good, {"acquire", "r"}).out, "1\n");
  EXPECT_EQ(at(good, {"run", "r2", "--", "true"}).exit_code, 0);
  refused(cat(url, "?cacert=", keys.file("other.pem"), ours), 69, "not accepted");
  refused(cat(url, "?timeout=2s", ours), 69, "not accepted");
  refused(cat("rediss://localhost:", tls_port, "?cacert=", keys.file("ca.pem"), ours), 69,
          "not accepted");
  refused(cat(url, "?timeout=2s&cacert=", keys.file("ca.pem")), 69, "127.0.0.1");
  refused(cat(url, "?cacert=/no/such/file", ours), 2, "cacert");
  refused(cat(url, "?cacert=", keys.file("ca.pem"), "&cert=/none&key=/none"), 2, "cert");
  refused(cat("rediss://127.0.0.1:", server.port(), "?timeout=1s"), 69, "TLS");
  refused(cat("redis://127.0.0.1:", tls_port, "?timeout=1s"), 69, "127.0.0.1");
}

TEST_F(RedisCli, ARunHandsOverToOneThatWaits) {
  RedisServer server;
  start(server);
  const std::string go = stint_.dir().file("go");
  Child first(command(server.url(), {"run", "r", "--", "sh", "-c",
                                     cat("while [ ! -e ", go, " ]; do sleep 0.01; done")}));
  ASSERT_TRUE(wait_until([&] {
    return json_field(at(server.url(), {"show", "r", "--json"}).out, "held") == "true";
  })) << first.err();
  EXPECT_EQ(at(server.url(), {"run", "r", "--", "true"}).exit_code, 0) << "skipped";
  Child second(command(server.url(), {"run", "--on-held", "wait", "r", "--", "echo", "mine"}));
  EXPECT_FALSE(second.wait(milliseconds(300)));
  write_text(go, "");
  ASSERT_TRUE(first.wait(milliseconds(10'000)));
  const auto ended = second.wait(milliseconds(10'000));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code, 0) << second.err();
  EXPECT_EQ(second.out(), "mine\n");
}

// EVIDENCE-OF: G8
TEST_F(RedisCli, ARevokedRunIsStopped) {
  RedisServer server;
  start(server);
  Child running(command(server.url(), {"run", "r", "--ttl", "60s", "--", "sleep", "60"}));
  ASSERT_TRUE(wait_until([&] {
    return json_field(at(server.url(), {"show", "r", "--json"}).out, "held") == "true";
  })) << running.err();
  EXPECT_EQ(at(server.url(), {"revoke", "r", "--token", "1", "--why", "test"}).exit_code, 0);
  const auto ended = running.wait(milliseconds(10'000));
  ASSERT_TRUE(ended) << "a run learns of it at once, not at its next renewal";
  EXPECT_EQ(ended->code, 75) << running.err();
}

// EVIDENCE-OF: G12
TEST_F(RedisCli, AnEmptiedServerIsRefusedUntilAnOperatorHasLooked) {
  RedisServer server;
  start(server);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(at(server.url(), {"run", "r", "--", "true"}).exit_code, 0);
  }
  say(server, {"FLUSHALL"});
  refused(server.url(), 69, "is empty");
  EXPECT_EQ(at(server.url(), {"doctor", "--accept-restored", "--why", "flushed"}).exit_code, 0);
  const Finished got = at(server.url(), {"acquire", "r"});
  EXPECT_GT(parse_digits(trim(got.out)).value_or(0), 3U) << got.err;
}

}  // namespace
}  // namespace stint::test
