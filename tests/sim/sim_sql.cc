#include "tests/sim/sim_sql.h"

#include "base/check.h"
#include "base/text.h"

namespace stint::test {

SimSql::Connection::Connection() {
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI;
  const int code = sqlite3_open_v2("file:/sim?vfs=memdb", &db_, flags, nullptr);
  CHECK(code == SQLITE_OK, "a database in memory opens");
}
SimSql::Connection::~Connection() { sqlite3_close(db_); }

int SimSql::Connection::run(const std::string& sql, const std::string& first,
                            const std::string& second) {
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr);
  if (code == SQLITE_OK && sqlite3_bind_parameter_count(statement) == 2) {
    sqlite3_bind_text(statement, 1, first.c_str(), -1, nullptr);
    sqlite3_bind_text(statement, 2, second.c_str(), -1, nullptr);
  }
  if (code == SQLITE_OK) code = sqlite3_step(statement);
  sqlite3_finalize(statement);
  return code == SQLITE_ROW ? SQLITE_DONE : code;
}

int SimSql::Connection::ask(const std::string& sql, const std::string& first, std::string& answer) {
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr);
  if (code == SQLITE_OK) sqlite3_bind_text(statement, 1, first.c_str(), -1, nullptr);
  if (code == SQLITE_OK) code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    answer = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
  }
  sqlite3_finalize(statement);
  return code;
}

guard::SqliteCalls SimSql::calls() {
  return {.prepare = &sqlite3_prepare_v2,
          .bind_text = &sqlite3_bind_text,
          .bind_int64 = &sqlite3_bind_int64,
          .step = &sqlite3_step,
          .finalize = &sqlite3_finalize,
          .column_type = &sqlite3_column_type,
          .column_text = &sqlite3_column_text,
          .column_bytes = &sqlite3_column_bytes,
          .column_int64 = &sqlite3_column_int64,
          .get_autocommit = &sqlite3_get_autocommit,
          .errmsg = &sqlite3_errmsg};
}

SimSql::SimSql() {
  CHECK(keeps_.run("CREATE TABLE texts (name TEXT PRIMARY KEY, body TEXT)") == SQLITE_DONE,
        "a new database");
}

Token SimSql::fence(const std::string& resource) {
  std::string number;
  keeps_.ask("SELECT token FROM stint_fences WHERE resource = ?1", resource, number);
  return Token(parse_digits(number).value_or(0));
}

void SimSql::forget_fences() { keeps_.run("DELETE FROM stint_fences"); }

}  // namespace stint::test
