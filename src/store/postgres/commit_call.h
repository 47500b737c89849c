// A commit as one call of the schema's function commit(): what goes in, what comes out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/postgres/client.h"
#include "store/seam.h"

namespace stint::store::postgres {

struct CommitSettings {
  std::optional<std::int32_t> wait_ms;  // through a pooler: how long to wait for a row
  std::optional<std::string> sync;      // synchronous_commit; empty: as it is
  std::optional<std::int64_t> mark;     // of the epoch; empty: to be found out
};

// The steps in key order, so that rows are locked in that order whoever commits.
Params commit_params(const std::vector<Step>& steps, const CommitSettings& settings);

constexpr const char* kCommitSql =
    "SELECT conflict, had, judged_at, given, revision, mark, marked, own_xid FROM"
    " $S.commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

// The mark alone, as commit() tells it; begins an epoch if there is none.
constexpr const char* kMarkSql =
    "SELECT pg_relation_filenode('$S.record'::regclass)::bigint << 32 | $S.current_epoch()";

struct CommitResult {
  CommitAnswer answer;
  std::optional<std::int64_t> mark;
  std::vector<std::string> marked;  // keys that somebody waits for
  std::int64_t xid = 0;
};

// What both ways of a commit have in common: the numbers of the SQL text, and the order.
std::int16_t number_of(Step::Kind kind);
std::int16_t number_of(Step::TimerOp op);
std::int16_t number_of(const std::optional<TimerState>& demand);  // -1: none
bool changes(const Step& step);                                   // more than a timer
// By key; of one key the step that writes first, so that its row is locked for that at once.
std::vector<std::size_t> in_key_order(const std::vector<Step>& steps);

// The server may have done it.
Error sent_unanswered(const Error& error);

Result<CommitResult> commit_result(const Rows& rows, const std::vector<Step>& steps);

}  // namespace stint::store::postgres
