// Several independent commits as one plain statement: each is judged by itself and done or not, and
// all that are done share one transaction, one sync and one start and end of a statement, which is
// most of what a commit costs (ADR 0024).
//
// It waits for nobody's rows: a commit that meets a locked one, or whose expectations do not hold,
// is left undone, and is to go alone, where it learns why. Commits that have a record in common do
// not travel together.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/postgres/client.h"
#include "store/postgres/plain_commit.h"
#include "store/seam.h"

namespace stint::store::postgres {

// `judges_again`: what runs is judged once more after the last insertion.
std::string many_sql(bool relaxed, bool judges_again);

class ManyCommit {
 public:
  // REQUIRES: the mark is known, and the gate is open.
  explicit ManyCommit(const PlainSettings& settings) : settings_(settings) {}

  // False: it does not fit, and nothing was added. The steps must outlive this object.
  bool add(const std::vector<Step>& steps);
  std::size_t size() const { return commits_.size(); }

  // Something must run, and something is inserted, which may have to wait.
  bool judges_again() const { return runs_ && inserts_; }

  Params params() const;

  struct Done {
    std::vector<std::optional<Committed>> commits;  // in the order of add(); empty: to go alone
    std::vector<std::string> marked;                // keys that somebody waits for
    std::int64_t xid = 0;
  };
  // Nothing: the mark no longer holds, or what all check has changed; nothing was done.
  Result<std::optional<Done>> result(const Rows& rows) const;

 private:
  struct Row {
    PlainStep plain;
    std::size_t commit = 0;
  };
  bool gate_is(const std::vector<PlainStep>& steps) const;

  const PlainSettings settings_;
  std::vector<const std::vector<Step>*> commits_;
  std::vector<Row> rows_;
  std::vector<Row> appended_;
  std::vector<const Step*> gate_;
  std::set<std::string_view> keys_;
  bool runs_ = false;
  bool inserts_ = false;
};

}  // namespace stint::store::postgres
