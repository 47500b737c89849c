// One connection to the server: every wait has an end, and every fault says whether what was asked
// may have happened.
//
// Not thread-safe: a connection belongs to whoever borrowed it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/postgres/settings.h"
#include "net/postgres/wire.h"

struct pg_conn;

namespace stint::net::postgres {

// Why a statement has no answer.
struct Fault {
  Error error;
  std::string state;        // SQLSTATE; empty where the server said none
  bool certain = false;     // it was not carried out, for sure
  std::string detail = {};  // what a function of the database added to its message
};

template <class T>
using Outcome = tl::expected<T, Fault>;

struct Statement {
  std::string name;  // of the prepared one
  std::string sql;
};

struct Notification {
  std::string payload;
};

class Connection {
 public:
  struct Plan {
    std::vector<Host> hosts;
    bool pooled = false;   // nothing that must outlive a transaction
    bool relaxed = false;  // nothing on it needs a sync
    // Every name of a table is whole; functions and types are the server's own.
    bool catalogue_only = false;
  };

  // Tries the hosts in turn, within the time that there is.
  static Result<std::unique_ptr<Connection>> open(const Settings& settings, const Plan& plan,
                                                  const Clock& clock, MonoTime until);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // One statement, one transaction, one round trip (the second use of a statement prepares it
  // first). After a fault that is not certain the connection is broken.
  Outcome<Rows> run(const Statement& statement, const Params& params, MonoTime until);
  // Several statements in one transaction; no rows.
  Outcome<std::monostate> run_script(const std::string& sql, MonoTime until);

  // Nothing was heard that should not have been, and the other end is there.
  bool healthy();
  bool broken() const;
  int server_version() const;
  // The process that libpq was told of: another than the one that answers, through a pooler.
  int told_pid() const;
  int fd() const;
  bool pooled() const { return pooled_; }

  // What has arrived, without waiting. Breaks the connection if it has ended.
  std::vector<Notification> notifications();

  // Of the epoch, learned from commits; the server sees when it no longer holds.
  std::optional<std::int64_t> mark;

 private:
  Connection(pg_conn* conn, const Settings& settings, const Clock& clock, bool pooled);
  static Result<std::unique_ptr<Connection>> open_one(const Settings& settings, const Plan& plan,
                                                      const Host& host, const Clock& clock,
                                                      MonoTime until);
  Status finish_connecting(MonoTime until);
  Outcome<Rows> finish(MonoTime until);
  Outcome<std::monostate> flush(MonoTime until);
  Fault lost(std::string_view what);
  Fault refused(const pg_result* result);
  Error connect_error(std::string_view message) const;

  struct Close {
    void operator()(pg_conn* conn) const;
  };
  std::unique_ptr<pg_conn, Close> conn_;
  const Settings& settings_;
  const Clock& clock_;
  const bool pooled_;
  bool dropped_ = false;  // an answer was given up: nothing on it can be told apart any more
  std::set<std::string> used_;
  std::set<std::string> prepared_;
};

}  // namespace stint::net::postgres
