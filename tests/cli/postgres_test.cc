// stint on a PostgreSQL server: runs, hand-offs, and every way in which a URL can be wrong.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "base/text.h"
#include "os/pause.h"
#include "tests/cli/stint.h"
#include "tests/support/loopback.h"
#include "tests/support/pgbouncer.h"
#include "tests/support/servers.h"

namespace stint::test {
namespace {

constexpr const char* kSecret = "s3cret-Passw0rd";

class PostgresCli : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!PostgresServer::missing().empty()) return;
    server_ = new PostgresServer({"max_connections=100"});
    const auto started = server_->start();
    ASSERT_TRUE(started) << started.error().message;
    // Everybody is trusted but the one with a password.
    write_text(server_->folder() + "/data/pg_hba.conf",
               "host all guarded 127.0.0.1/32 scram-sha-256\n"
               "hostssl all certified 127.0.0.1/32 cert\nhost all all 127.0.0.1/32 trust\n"
               "local all all trust\n");
    sql(cat("CREATE ROLE guarded LOGIN PASSWORD '", kSecret, "'; CREATE ROLE nothing LOGIN;",
            "GRANT CREATE ON DATABASE postgres TO guarded; SELECT pg_reload_conf()"));
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }
  void SetUp() override {
    if (server_ == nullptr) GTEST_SKIP() << PostgresServer::missing();
    static int number = 0;
    schema_ = cat("cli_", ++number);
  }

  static std::string sql(const std::string& text) {
    const Finished done =
        run({.argv = {PostgresServer::program("psql"), "-XAtq", "-d", server_->url(), "-c", text}});
    return done.exit_code == 0 ? done.out : cat("failed: ", done.err);
  }
  std::string url(const std::string& more = "", const std::string& user = "postgres") const {
    return cat("postgres://", user, "@127.0.0.1:", server_->port(), "/postgres?schema=", schema_,
               more);
  }
  Finished on(const std::string& store, std::vector<std::string> words,
              Millis deadline = Millis(20'000)) const {
    // By the environment: a password in a word of the command line is refused.
    Command command = stint_.command(std::move(words));
    std::erase_if(command.env, [](const auto& each) { return each.first == "STINT_STORE"; });
    command.env.emplace_back("STINT_STORE", store);
    return run(command, deadline);
  }
  static std::vector<std::string> with(const std::string& store, std::vector<std::string> words) {
    words.insert(words.begin() + 1, {"--store", store});
    return words;
  }
  // One clear line, this exit code, and no secret.
  void expect_refusal(const std::string& store, int code, const std::string& says) const {
    const Finished done = on(store, {"ls"});
    EXPECT_EQ(done.exit_code, code) << store << ": " << done.err;
    EXPECT_NE(done.err.find(says), std::string::npos) << store << ": " << done.err;
    EXPECT_EQ(count_lines(done.err), 1) << done.err;
    EXPECT_EQ(done.err.find(kSecret), std::string::npos) << done.err;
    EXPECT_EQ(done.err.find("other-secret"), std::string::npos) << done.err;
  }

  static inline PostgresServer* server_ = nullptr;
  Stint stint_;
  std::string schema_;
};

TEST_F(PostgresCli, RunsAndLeavesReadableTraces) {
  const Finished done = on(url(), {"run", "blog", "--note", "weekly", "--", "true"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const Finished held = on(url(), {"acquire", "db", "--ttl", "60s"});
  EXPECT_EQ(held.exit_code, 0) << held.err;
  EXPECT_EQ(sql(cat("SELECT resource, token, state FROM ", schema_, ".leases")),
            "blog|1|free\ndb|1|held\n");
  EXPECT_EQ(
      sql(cat("SELECT kind, resource, token FROM ", schema_, ".events WHERE resource = 'db'")),
      "granted|db|1\n");
}

// The rights of docs/guides/store-postgres.md, and each one less or more.
TEST_F(PostgresCli, TheDoctorTellsWhatTheUserMayDo) {
  ASSERT_EQ(on(url(), {"ls"}).exit_code, 0);
  const std::string role = cat("worker_", schema_);
  sql(cat("CREATE ROLE ", role, " LOGIN; GRANT USAGE ON SCHEMA ", schema_, " TO ", role,
          "; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ", schema_, " TO ", role,
          "; GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA ", schema_, " TO ", role));
  const auto doctor = [&](const std::string& user) {
    return on(url("", user), {"doctor"}, Millis(60'000));
  };
  const Finished enough = doctor(role);
  EXPECT_EQ(enough.exit_code, 0) << enough.out << enough.err;
  EXPECT_EQ(count_lines(enough.out, "ok   permissions"), 1) << enough.out;
  EXPECT_EQ(count_lines(doctor("postgres").out, "warn permissions"), 1) << "a superuser";
  sql(cat("GRANT USAGE ON SCHEMA ", schema_, " TO PUBLIC; GRANT UPDATE ON ", schema_,
          ".record TO PUBLIC"));
  EXPECT_EQ(count_lines(doctor(role).out, "warn permissions  every role"), 1);
  sql(cat("REVOKE DELETE ON ", schema_, ".record FROM ", role));
  const Finished less = doctor(role);
  EXPECT_NE(less.exit_code, 0);
  EXPECT_EQ(count_lines(less.out, cat("lacks DELETE on ", schema_, ".record")), 1) << less.out;
}

TEST_F(PostgresCli, TheDoctorTellsOfTornPages) {
  const auto told = [&] {
    return count_lines(on(url(), {"doctor"}, Millis(60'000)).out, "warn pages");
  };
  EXPECT_EQ(told(), 0);
  sql("ALTER SYSTEM SET full_page_writes = off");
  sql("SELECT pg_reload_conf()");
  EXPECT_TRUE(wait_until([&] { return sql("SHOW full_page_writes") == "off\n"; }));
  EXPECT_EQ(told(), 1);
  sql("ALTER SYSTEM RESET full_page_writes");
  sql("SELECT pg_reload_conf()");
}

TEST_F(PostgresCli, AWaitingRunIsHandedTheLease) {
  ASSERT_EQ(on(url(), {"acquire", "r", "--ttl", "60s"}).exit_code, 0);
  Child waiting(
      stint_.command(with(url(), {"run", "r", "--on-held", "wait", "--", "date", "+%s%N"})));
  ASSERT_TRUE(wait_until([&] { return waiting.err().find("waiting") != std::string::npos; }));
  ASSERT_TRUE(
      wait_until([&] { return sql(cat("SELECT count(*) FROM ", schema_, ".waiter")) != "0\n"; }));
  const MonoTime before = now();
  ASSERT_EQ(on(url(), {"release", "r", "--token", "1"}).exit_code, 0);
  const auto exit = waiting.wait(Millis(5'000));
  ASSERT_TRUE(exit) << waiting.err();
  EXPECT_EQ(exit->code, 0);
  EXPECT_LT(now() - before, Millis(4'000)) << "it was woken, and did not look by chance";
}

TEST_F(PostgresCli, ARevokedRunIsStopped) {
  Child running(stint_.command(with(url(), {"run", "r", "--", "sleep", "60"})));
  ASSERT_TRUE(wait_until([&] {
    return sql(cat("SELECT count(*) FROM ", schema_, ".leases WHERE state = 'held'")) == "1\n";
  }));
  const Finished revoked = on(url(), {"revoke", "r", "--token", "1", "--why", "test"});
  ASSERT_EQ(revoked.exit_code, 0) << revoked.err;
  const auto exit = running.wait(Millis(10'000));
  ASSERT_TRUE(exit) << running.err();
  EXPECT_EQ(exit->code, 75) << running.err();
}

TEST_F(PostgresCli, TwoSchemasAreTwoStores) {
  ASSERT_EQ(on(url(), {"acquire", "r", "--ttl", "60s"}).exit_code, 0);
  schema_ += "_other";
  EXPECT_EQ(on(url(), {"acquire", "r", "--ttl", "60s"}).exit_code, 0);
  const std::string plain = cat("postgres://postgres@127.0.0.1:", server_->port(), "/postgres");
  EXPECT_EQ(on(plain, {"acquire", "r", "--ttl", "60s"}).exit_code, 0);
  EXPECT_EQ(sql("SELECT resource FROM stint.leases"), "r\n") << "the schema is stint by default";
}

TEST_F(PostgresCli, APasswordIsTakenFromTheUrlOrAFileAndNeverShown) {
  const std::string good = cat("postgres://guarded:", kSecret, "@127.0.0.1:", server_->port(),
                               "/postgres?schema=", schema_);
  EXPECT_EQ(on(good, {"run", "r", "--", "true"}).exit_code, 0);
  expect_refusal(cat("postgres://guarded:other-secret@127.0.0.1:", server_->port(),
                     "/postgres?schema=", schema_),
                 77, "password authentication failed");
  expect_refusal(url("", "guarded"), 77, "password");
  const std::string file = stint_.dir().file("pass");
  write_text(file, cat("127.0.0.1:*:*:guarded:", kSecret, "\n"));
  ::chmod(file.c_str(), 0600);
  EXPECT_EQ(on(url(cat("&passfile=", file), "guarded"), {"ls"}).exit_code, 0);
  Command with_env = stint_.command(with(url("", "guarded"), {"ls"}));
  with_env.env.emplace_back("PGPASSFILE", file);
  EXPECT_EQ(run(with_env).exit_code, 0);
}

TEST_F(PostgresCli, WhatIsMissingIsSaidInOneLine) {
  expect_refusal(url("", "nothing"), 77, "permission denied");
  ASSERT_EQ(on(url(), {"run", "r", "--", "true"}).exit_code, 0);
  expect_refusal(url("", "nothing"), 77, "permission denied");
  expect_refusal(cat("postgres://postgres@127.0.0.1:", server_->port(), "/nowhere"), 69,
                 "does not exist");
  expect_refusal(cat("postgres://postgres@127.0.0.1:", free_port(), "/postgres"), 69, "refused");
  expect_refusal("postgres://postgres@no-such-host.invalid/postgres", 69, "no-such-host.invalid");
}

TEST_F(PostgresCli, BadOptionsAreRefused) {
  expect_refusal(url("&colour=blue"), 2, "unknown option 'colour'");
  expect_refusal(url("&pooler=maybe"), 2, "pooler=");
  expect_refusal(url("&listen=:x"), 2, "listen=");
  expect_refusal(url("&port=0"), 2, "port");
  expect_refusal(cat(url(), "%20\"x"), 2, "schema=");
  for (const std::string name :
       {"sslmode", "channel_binding", "gssencmode", "target_session_attrs"}) {
    expect_refusal(url(cat('&', name, "=bogus")), 2, cat("invalid ", name, " value"));
  }
}

TEST_F(PostgresCli, WhatLibpqIsToldHolds) {
  expect_refusal(url("&channel_binding=require"), 69, "channel binding");
  expect_refusal(url("&gssencmode=require"), 69, "GSSAPI");
  expect_refusal(url("&target_session_attrs=read-only"), 69, "not read-only");
}

// Whoever wants to be told everything is told on the server's side.
TEST_F(PostgresCli, NoticesOfTheServerAreNotPrinted) {
  sql("CREATE ROLE curious LOGIN SUPERUSER; ALTER ROLE curious SET client_min_messages = debug5");
  const Finished done = on(url("", "curious"), {"run", "r", "--", "true"});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_EQ(done.err, "");
}

TEST_F(PostgresCli, HostAndPortMayStandInTheOptions) {
  const std::string socket = cat("postgres://postgres@/postgres?host=", server_->folder(),
                                 "&port=", server_->port(), "&schema=", schema_);
  EXPECT_EQ(on(socket, {"run", "r", "--", "true"}).exit_code, 0);
}

TEST_F(PostgresCli, OfSeveralHostsTheOneThatAnswersIsTaken) {
  const Listener deaf = listen_loopback();  // accepts and says nothing
  const std::string several =
      cat("postgres://postgres@127.0.0.1:", free_port(), ",127.0.0.1:", deaf.port,
          ",127.0.0.1:", server_->port(), "/postgres?timeout=3s&schema=", schema_);
  const Finished done = on(several, {"run", "r", "--", "true"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
}

TEST_F(PostgresCli, AnUnreachableHostIsGivenUpInTime) {
  const Listener deaf = listen_loopback();
  const MonoTime before = now();
  expect_refusal(cat("postgres://postgres@127.0.0.1:", deaf.port, "/postgres?timeout=500ms"), 69,
                 "no answer from 127.0.0.1");
  EXPECT_LT(now() - before, Millis(3'000));
}

// Says one thing to everybody who comes.
class Imposter {
 public:
  explicit Imposter(std::string says) : says_(std::move(says)), listener_(listen_loopback()) {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        const os::Fd client(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_NONBLOCK));
        if (!client) {
          os::pause_for(Millis(5));
          continue;
        }
        // A request for encryption is eight bytes and is answered with N.
        while (receive(client.get(), 8, Millis(1'000)).bytes.size() == 8) {
          send_all(client.get(), "N");
        }
        send_all(client.get(), says_);
        receive(client.get(), SIZE_MAX, Millis(200));
      }
    });
  }
  std::uint16_t port() const { return listener_.port; }

 private:
  const std::string says_;
  Listener listener_;
  std::jthread thread_;
};

TEST_F(PostgresCli, AnotherKindOfServerAndAnOldOneAreRefused) {
  const Imposter redis("-ERR unknown command\r\n");
  expect_refusal(cat("postgres://postgres@127.0.0.1:", redis.port(), "/postgres?timeout=2s"), 69,
                 "while opening");
  using namespace std::string_literals;
  const std::string version = "server_version\0"s + "11.22\0"s;
  const std::string old = "R\0\0\0\x08\0\0\0\0"s + "S\0\0\0"s +
                          static_cast<char>(version.size() + 4) + version + "Z\0\0\0\x05I"s;
  const Imposter eleven(old);
  expect_refusal(cat("postgres://postgres@127.0.0.1:", eleven.port(), "/postgres?timeout=2s"), 69,
                 "PostgreSQL 11; Stint needs 12");
}

TEST_F(PostgresCli, ForeignTablesAndNewerSchemasAreLeftAlone) {
  sql(cat("CREATE SCHEMA ", schema_, "; CREATE TABLE ", schema_, ".meta (x int)"));
  expect_refusal(url(), 69, "not Stint's");
  sql(cat("DROP TABLE ", schema_, ".meta; CREATE TABLE ", schema_, ".record (x int)"));
  expect_refusal(url(), 69, "a relation 'record' that is not Stint's");
  sql(cat("DROP TABLE ", schema_, ".record"));
  EXPECT_EQ(on(url(), {"run", "r", "--", "true"}).exit_code, 0) << "an empty schema will do";
  sql(cat("UPDATE ", schema_, ".meta SET version = 99"));
  expect_refusal(url(), 69, "made by a newer stint");
}

TEST_F(PostgresCli, EncryptionIsAsTheUrlDemands) {
  expect_refusal(url("&sslmode=require"), 69, "SSL");
  const std::string data = server_->folder() + "/data";
  const Finished made = run(
      {.argv = {"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                "/CN=localhost", "-keyout", data + "/server.key", "-out", data + "/server.crt"}});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  struct stat owner {};
  ASSERT_EQ(::stat(data.c_str(), &owner), 0);
  for (const char* name : {"/server.key", "/server.crt"}) {
    ASSERT_EQ(::chown((data + name).c_str(), owner.st_uid, owner.st_gid), 0);
    ::chmod((data + name).c_str(), 0600);
  }
  const Finished client =
      run({.argv = {"openssl", "req", "-x509", "-newkey", "rsa:2048", "-passout",
                    cat("pass:", kSecret), "-days", "2", "-subj", "/CN=certified", "-keyout",
                    data + "/client.key", "-out", data + "/client.crt"}});
  ASSERT_EQ(client.exit_code, 0) << client.err;
  ::chmod((data + "/client.key").c_str(), 0600);
  sql("CREATE ROLE certified LOGIN SUPERUSER");
  sql("ALTER SYSTEM SET ssl_ca_file = 'client.crt'");
  sql("ALTER SYSTEM SET ssl = on");
  sql("SELECT pg_reload_conf()");
  ASSERT_TRUE(wait_until([&] { return on(url("&sslmode=require"), {"ls"}).exit_code == 0; }));
  EXPECT_EQ(on(url(cat("&sslmode=verify-ca&sslrootcert=", data, "/server.crt")), {"ls"}).exit_code,
            0);
  expect_refusal(url(cat("&sslmode=verify-full&sslrootcert=", data, "/server.crt")), 69,
                 "does not match host name");
  expect_refusal(url("&sslmode=verify-ca&sslrootcert=/nowhere"), 69, "/nowhere");
  const std::string own =
      cat("&sslmode=require&sslcert=", data, "/client.crt&sslkey=", data, "/client.key");
  expect_refusal(url(own, "certified"), 69, "client.key");  // its key is locked
  expect_refusal(url(cat(own, "&sslpassword=other-secret"), "certified"), 69, "client.key");
  EXPECT_EQ(on(url(cat(own, "&sslpassword=", kSecret), "certified"), {"ls"}).exit_code, 0);
  expect_refusal(url("&sslmode=require", "certified"), 77, "certificate");
  sql("ALTER SYSTEM RESET ssl");
  sql("SELECT pg_reload_conf()");
}

TEST_F(PostgresCli, ThroughATransactionPooler) {
  if (const std::string why = PgBouncer::missing(); !why.empty()) GTEST_SKIP() << why;
  PgBouncer pooler(server_->port());
  const auto started = pooler.start();
  ASSERT_TRUE(started) << started.error().message;
  const std::string listen = cat("&listen=127.0.0.1:", server_->port());
  for (const std::string& more : {std::string(), std::string("&pooler=1"), listen}) {
    const std::string store = cat(pooler.url(), "?schema=", schema_, more);
    const Finished done = on(store, {"run", "r", "--", "true"});
    EXPECT_EQ(done.exit_code, 0) << more << done.err;
    const Finished held = on(store, {"acquire", "r", "--ttl", "60s"});
    ASSERT_EQ(held.exit_code, 0) << held.err;
    Child waiting(stint_.command(with(store, {"run", "r", "--on-held", "wait", "--", "true"})));
    ASSERT_TRUE(wait_until([&] { return waiting.err().find("waiting") != std::string::npos; }));
    const std::string number = json_field(on(store, {"show", "r", "--json"}).out, "token");
    const auto marks = [&] {
      return sql(cat("SELECT count(*) FROM ", schema_, ".waiter")) != "0\n";
    };
    if (more == listen) {
      EXPECT_TRUE(wait_until(marks)) << "who listens leaves a mark";
    } else {
      EXPECT_FALSE(marks()) << "and nobody else";
    }
    ASSERT_EQ(on(store, {"release", "r", "--token", number}).exit_code, 0);
    EXPECT_TRUE(waiting.wait(Millis(5'000))) << more << waiting.err();
  }
  expect_refusal(cat(pooler.url(), "?pooler=0&schema=", schema_), 69, "startup parameter");
}

}  // namespace
}  // namespace stint::test
