// One commit of the seam as one etcd transaction.
//
// Each expectation and each demand is one compare (LAW: judged by the store at the commit):
//
//   Absent, Seen      of the record: create_revision is 0, mod_revision is the version
//   None              neither key of the timer
//   Running           the timer's end is there
//   Fired             of the timer's keys only the mark: all values in their range are below "e"
//   Extend            the timer's end is there and its length at most the new one: value below
//
// If one does not hold, the other branch reads what was compared, and the first step that fails is
// found here. What remains then is no conflict: a bucket of the append log that was closed, or a
// timer that is longer than what it is to be extended by. Both are tried again.
//
// A member whose database is full when it applies a transaction carries it out and says "space
// exceeded" all the same (etcd's quotaApplierV3): then the records tell, or it is unknown.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/etcd/append_log.h"
#include "store/etcd/gateway.h"
#include "store/etcd/keys.h"
#include "store/etcd/leases.h"
#include "store/seam.h"

namespace stint::store::etcd {

struct CommitParts {
  const Keys& keys;
  Gateway& gateway;
  AppendLog& log;
  Leases& leases;
};

class Commit {
 public:
  Commit(const CommitParts& parts, const std::vector<Step>& steps, const Deadline& deadline)
      : parts_(parts), steps_(steps), deadline_(deadline), timers_(steps.size()) {}

  Result<CommitAnswer> run();

 private:
  enum class Next { Done, Again };
  // What becomes of a step's timer.
  struct TimerWork {
    Granted lease;          // for Start and Extend
    bool attached = false;  // by a transaction that was carried out
    LeaseId longer = 0;     // Extend: the timer in place is longer and is on this lease
    bool keep = false;      // Extend: and ends later
  };
  // Where a step's answers are.
  struct Places {
    std::optional<std::size_t> record;       // then: its version
    std::optional<std::size_t> old_lease;    // then: what hung on a lease before
    std::optional<std::size_t> seen_record;  // otherwise
    std::optional<std::size_t> seen_timer;   // otherwise
  };

  Result<CommitAnswer> try_until_settled();
  Status prepare();
  Status grant_leases();
  void build();
  void build_conditions(std::size_t i, bool appended);
  void build_changes(std::size_t i, const std::string& record, bool appended);
  void build_timer(std::size_t i);
  Committed committed(const TxnAnswer& answer);
  Result<Next> refused(const TxnAnswer& answer);
  bool surely_not_done() const;
  Status look_at_longer(std::size_t i, const KeyValue& end);
  bool holds(const Step& step, const OpAnswer* record, const OpAnswer* timer) const;
  std::string stored_name(const Step& step) const;
  void give_back();

  const CommitParts& parts_;
  const std::vector<Step>& steps_;
  const Deadline& deadline_;
  std::vector<TimerWork> timers_;
  std::shared_ptr<const LogState> log_;  // shared: as the log had it when this was built
  bool needs_log_ = false;
  bool appends_ = false;
  bool unknown_ = false;
  std::map<std::string, std::string> appended_;  // key -> where it is stored

  Txn txn_;
  std::vector<Places> places_;
  std::optional<std::size_t> log_place_;
  std::optional<Conflict> conflict_;
};

}  // namespace stint::store::etcd
