// The user's SQLite database in the simulation: a real one, in memory, with a connection of its own
// for each process. SQLite itself says who has to wait; whoever dies is rolled back when its
// connection closes.
#pragma once

#include <sqlite3.h>

#include <functional>
#include <optional>
#include <string>

#include "base/names.h"
#include "base/result.h"
#include "guard/sqlite_guard.h"

namespace stint::test {

class SimSql {
 public:
  SimSql();
  SimSql(const SimSql&) = delete;
  SimSql& operator=(const SimSql&) = delete;

  class Connection {
   public:
    Connection();
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    sqlite3* get() const { return db_; }
    // One statement without an answer: SQLite's code.
    int run(const std::string& sql, const std::string& first = {}, const std::string& second = {});
    // SQLITE_DONE: there is no row.
    int ask(const std::string& sql, const std::string& first, std::string& answer);

   private:
    sqlite3* db_ = nullptr;
  };
  static guard::SqliteCalls calls();

  // What stands there: without waiting, between two steps.
  Token fence(const std::string& resource);
  void forget_fences();
  // Called right after a commit: the name of what was written; empty: a seal.
  void on_commit(std::function<void(const std::string& name, const std::string& body)> look) {
    look_ = std::move(look);
  }
  void committed(const std::string& name, const std::string& body) { look_(name, body); }

 private:
  Connection keeps_;  // a database in memory lives as long as somebody has it open
  std::function<void(const std::string&, const std::string&)> look_;
};

}  // namespace stint::test
