#include "tests/guard_sql/session.h"

#include <gtest/gtest.h>
#include <postgresql/libpq-fe.h>

#include <cstdlib>

#include "base/check.h"
#include "base/text.h"
#include "os/socket_wait.h"

namespace stint::test {
namespace {

std::string field(const pg_result* result, int code) {
  const char* text = ::PQresultErrorField(result, code);
  return text == nullptr ? std::string() : std::string(text);
}

void take(Answer& out, pg_result* result) {
  const auto status = ::PQresultStatus(result);
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
    out.rows.clear();
    for (int row = 0; row < ::PQntuples(result); ++row) {
      std::vector<std::string> columns;
      for (int column = 0; column < ::PQnfields(result); ++column) {
        columns.emplace_back(::PQgetvalue(result, row, column));
      }
      out.rows.push_back(std::move(columns));
    }
  } else if (out.state.empty()) {
    out.state = field(result, PG_DIAG_SQLSTATE);
    if (out.state.empty()) out.state = "lost";
    out.message = field(result, PG_DIAG_MESSAGE_PRIMARY);
    out.detail = field(result, PG_DIAG_MESSAGE_DETAIL);
    out.hint = field(result, PG_DIAG_MESSAGE_HINT);
  }
  ::PQclear(result);
}

}  // namespace

Session::Session(const std::string& database, const std::string& user, std::uint16_t port)
    : conn_(::PQconnectdb(cat("host=127.0.0.1 port=", port == 0 ? server().port() : port,
                              " user=", user, " dbname=", database)
                              .c_str())) {
  CHECK(::PQstatus(conn_) == CONNECTION_OK, ::PQerrorMessage(conn_));
  ::PQsetNoticeProcessor(
      conn_, [](void*, const char*) {}, nullptr);
}

Session::~Session() { ::PQfinish(conn_); }

int Session::pid() const { return ::PQbackendPID(conn_); }

void Session::send(const std::string& sql) {
  EXPECT_EQ(::PQsendQuery(conn_, sql.c_str()), 1) << sql << ": " << ::PQerrorMessage(conn_);
}

bool Session::answered() {
  if (os::readable_now(::PQsocket(conn_))) ::PQconsumeInput(conn_);
  return ::PQisBusy(conn_) == 0;
}

Answer Session::answer() {
  Answer out;
  const MonoTime until = now() + Millis(60'000);
  while (true) {
    while (::PQisBusy(conn_) != 0) {
      if (!os::wait_socket(::PQsocket(conn_), os::Wanted::Read, until)) {
        ADD_FAILURE() << "no answer for 60 s";
        out.state = "lost";
        return out;
      }
      if (::PQconsumeInput(conn_) == 0) break;
    }
    pg_result* result = ::PQgetResult(conn_);
    if (result == nullptr) {
      if (::PQstatus(conn_) != CONNECTION_OK && out.state.empty()) out.state = "lost";
      return out;
    }
    take(out, result);
  }
}

Answer Session::run(const std::string& sql) {
  if (::PQsendQuery(conn_, sql.c_str()) == 0) {
    return {
        .state = "lost", .message = ::PQerrorMessage(conn_), .detail = {}, .hint = {}, .rows = {}};
  }
  return answer();
}

Answer Session::must(const std::string& sql) {
  Answer out = run(sql);
  EXPECT_EQ(out.state, "") << sql << ": " << out.message;
  return out;
}

std::string Session::value(const std::string& sql) {
  const Answer out = must(sql);
  return out.rows.empty() || out.rows.front().empty() ? std::string() : out.rows.front().front();
}

PostgresServer& server() {
  static PostgresServer* const started = [] {
    CHECK(PostgresServer::missing().empty(), "postgresql-15 is not installed: tools/setup.sh");
    static PostgresServer one({"fsync=off", "max_connections=100", "deadlock_timeout=100ms",
                               "max_prepared_transactions=10"});
    const auto status = one.start();
    CHECK(status.has_value(), status.has_value() ? "" : status.error().message.c_str());
    return &one;
  }();
  return *started;
}

std::string new_database() {
  static int number = 0;
  const std::string name = cat("guarded_", ++number);
  Session("postgres").must(cat("CREATE DATABASE ", name));
  return name;
}

net::Address address_of(const std::string& database, const std::string& user) {
  net::Address address;
  address.scheme = "postgres";
  address.user = user;
  address.path = database;
  address.hosts = {{.name = "127.0.0.1", .port = server().port()}};
  address.printable = cat("postgres://", user, "@127.0.0.1/", database);
  return address;
}

std::unique_ptr<guard::PostgresGuard> guard_of(const std::string& database, const std::string& user,
                                               Millis timeout) {
  auto guard = guard::open_postgres_guard(
      {.address = address_of(database, user), .timeout = timeout}, clock());
  CHECK(guard.has_value(), guard.has_value() ? "" : guard.error().message.c_str());
  return std::move(*guard);
}

std::string guarded_database() {
  const std::string name = new_database();
  const auto installed = guard_of(name)->install();
  CHECK(installed.has_value(), installed.has_value() ? "" : installed.error().message.c_str());
  return name;
}

bool blocked(Session& session, Session& watcher) {
  const std::string ask =
      cat("SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = ", session.pid());
  bool waits = false;
  EXPECT_TRUE(wait_until([&] {
    waits = !session.answered() && watcher.value(ask) == "t" && !session.answered();
    return waits || session.answered();
  })) << "neither blocked nor answered";
  return waits;
}

std::string seal_sql(const std::string& resource, int token) {
  return cat("SELECT stint.seal('", resource, "', ", token, ", '", kLife, "', ", token, ", true)");
}

void seal(Session& session, const std::string& resource, int token) {
  session.must(cat("SELECT stint.announce_seal('", resource, "', ", token, ", '", kLife, "', ",
                   token, ", true)"));
  session.must(seal_sql(resource, token));
}

const os::SystemClock& clock() {
  static const os::SystemClock one;
  return one;
}

}  // namespace stint::test
