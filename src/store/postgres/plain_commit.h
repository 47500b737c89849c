// Commits of the common shapes, each as one plain statement: a third to a half of the processor
// time of the schema's function commit(), and the same meaning.
//
// A shape is what a commit's steps have in common with the next one like it: kinds, expectations,
// demands, what becomes of the timers, the order of the keys. The statement is made from it and
// prepared by each connection. Whatever has no shape goes the general way.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "store/postgres/client.h"
#include "store/postgres/commit_call.h"
#include "store/seam.h"

namespace stint::store::postgres {

struct PlainSettings {
  bool relaxed = false;  // need not be synced
  bool gated = false;    // every writer of what is hardly written takes the gate (schema_sql.cc)
  std::optional<std::int64_t> mark;  // of the epoch, as commit() told
};

// A step, at its place in the order of the keys.
struct PlainStep {
  const Step* step = nullptr;
  std::size_t place = 0;
  enum class Way {
    Locked,  // its row is locked and judged
    Gated,   // compared in the statement's snapshot: who would change it waits at the gate
    Made,    // it must be absent: the insertion finds out
    Added,   // appended
  };
  Way way = Way::Locked;
};

// Empty: it has no shape.
std::optional<std::vector<PlainStep>> plain_steps(const std::vector<Step>& steps,
                                                  const PlainSettings& settings);

// The statements that were made so far. Thread-safe.
class PlainStatements {
 public:
  explicit PlainStatements(const Settings& settings) : settings_(settings) {}

  // Null: there are too many already. Valid as long as this object.
  const Statement* of(const std::vector<PlainStep>& steps, const PlainSettings& settings);

 private:
  const Settings& settings_;
  Mutex mutex_;
  std::map<std::string, std::unique_ptr<Statement>, std::less<>> made_ GUARDED_BY(mutex_);
};

Params plain_params(const std::vector<PlainStep>& steps, const PlainSettings& settings);

// The key of an appended record is its prefix and epoch, the transaction's number, and its place.
std::string append_head(std::string_view prefix, std::int32_t epoch);
std::string append_tail(std::size_t place);  // REQUIRES: below 100

// What the server gave to a commit that was done.
struct PlainNumbers {
  std::int64_t given = 0;  // the version
  std::int64_t revision = 0;
};
// `now` in microseconds since 1970. REQUIRES: the steps have a plain way.
Committed plain_committed(const std::vector<Step>& steps, std::int64_t now,
                          const PlainNumbers& numbers);

// Nothing: the mark no longer holds, and nothing was done.
Result<std::optional<CommitResult>> plain_result(const Rows& rows, const std::vector<Step>& steps);

}  // namespace stint::store::postgres
