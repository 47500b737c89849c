// A user of a guarded database: a plain libpq session, nothing of ours between. And the server and
// the database that the tests of this folder share.
//
//   Session a(database());
//   a.must("BEGIN");
//   EXPECT_EQ(a.state_of("SELECT stint.admit('r', 4)"), "ST001");
//   a.send("SELECT stint.seal(...)");           // goes on without waiting
//   ASSERT_TRUE(blocked(a));                    // waits for a lock, or has an answer
//   EXPECT_EQ(a.answer().state, "");
//
// Thread safety: a session belongs to one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "guard/sql/postgres_guard.h"
#include "os/clock.h"
#include "tests/support/servers.h"

struct pg_conn;

namespace stint::test {

struct Answer {
  std::string state;  // SQLSTATE; empty: it went well
  std::string message;
  std::string detail;
  std::string hint;
  std::vector<std::vector<std::string>> rows;  // of the last statement; NULL is ""
};

class Session {
 public:
  // port: of a pooler; 0: the server itself.
  explicit Session(const std::string& database, const std::string& user = "postgres",
                   std::uint16_t port = 0);
  ~Session();
  Session(Session&&) = delete;

  Answer run(const std::string& sql);
  // A failed expectation if it fails.
  Answer must(const std::string& sql);
  std::string state_of(const std::string& sql) { return run(sql).state; }
  // The first column of the first row.
  std::string value(const std::string& sql);

  void send(const std::string& sql);
  bool answered();  // without waiting
  Answer answer();  // waits, 60 s at the most
  int pid() const;

 private:
  pg_conn* conn_;
};

// The server of this program; "" if PostgreSQL is missing.
PostgresServer& server();
// A new database of its own.
std::string new_database();
net::Address address_of(const std::string& database, const std::string& user = "postgres");
std::unique_ptr<guard::PostgresGuard> guard_of(const std::string& database,
                                               const std::string& user = "postgres",
                                               Millis timeout = Millis(40'000));
// With the guard installed.
std::string guarded_database();

// True: the session waits for a lock, as `watcher` sees it. False: it was answered.
bool blocked(Session& session, Session& watcher);

// The words of a seal whose store says: this is the newest token, and it was granted.
std::string seal_sql(const std::string& resource, int token);
// As the client of a seal does: announced in a transaction of its own, then made.
void seal(Session& session, const std::string& resource, int token);

constexpr const char* kLife = "11111111111111111111111111111111";

const os::SystemClock& clock();

}  // namespace stint::test
