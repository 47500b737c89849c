// `postgres://USER@HOST/DATABASE` - the store in a schema of a PostgreSQL database.
//
// A commit is one statement, and so one transaction and one round trip (schema_sql.cc). Time is the
// server's clock. A statement that was sent and not answered is unknown, and its connection is
// closed.  G4 G11
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "store/many.h"
#include "store/module.h"
#include "store/postgres/client.h"
#include "store/postgres/lanes.h"
#include "store/postgres/listener.h"
#include "store/postgres/plain_commit.h"
#include "store/postgres/pool.h"
#include "store/seam.h"

namespace stint::store {

class PostgresStore final : public Store {
 public:
  static Result<std::unique_ptr<Store>> open(const OpenRequest& request, const Clock& clock);
  ~PostgresStore() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  const Opening& opening() const override { return opening_; }
  Result<Reading> read(const std::vector<std::string>& keys) override;
  Result<Reading> scan(const ScanRange& range) override;
  Result<CommitAnswer> commit(const std::vector<Step>& steps, Sync sync) override;
  Result<std::unique_ptr<Watch>> watch(std::string_view key) override;
  Result<std::uint64_t> appended(const std::string& prefix) override;
  Result<std::uint64_t> revision() override;
  Result<std::vector<Finding>> examine() override;

  // What threads who come together do, for one caller. Not as store::ManyCommits: what does not fit
  // goes alone after the others, and a row that somebody holds would keep all callers of a server
  // waiting that batches for them.
  std::vector<Result<CommitAnswer>> commit_many(const std::vector<Proposal>& proposals);

 private:
  Result<Finding> examine_rights();
  PostgresStore(postgres::Settings settings, const Clock& clock);
  Status enter(bool may_create);
  Result<postgres::Pool::Loan> first_connection(MonoTime until);

  // A statement that may be asked again on another connection.
  Result<postgres::Rows> ask(const postgres::Statement& statement, const postgres::Params& params);
  Result<postgres::Rows> ask(const postgres::Statement& statement, const postgres::Params& params,
                             MonoTime until);
  Result<postgres::Rows> ask_for(const std::vector<std::string_view>& keys, MonoTime until);
  Result<CommitAnswer> check(const std::vector<Step>& steps);

  struct ReadTask {
    const std::vector<std::string>& keys;
    MonoTime until{};
    std::optional<Result<Reading>> answer = {};
  };
  struct CommitTask {
    const std::vector<Step>& steps;
    Sync sync = Sync::Durable;
    MonoTime until{};
    std::optional<Result<CommitAnswer>> answer = {};
  };
  Result<Reading> read_alone(const ReadTask& task);
  void read_together(const std::vector<ReadTask*>& tasks);
  Result<CommitAnswer> commit_alone(CommitTask& task);
  // Answers those that can be done in one statement, or are unknown with it.
  void commit_together(const std::vector<CommitTask*>& tasks);
  bool know_mark(postgres::Connection& conn, MonoTime until);
  // Nothing: it was certainly not done, and is worth another try, the general way.
  Result<std::optional<CommitAnswer>> commit_once(const std::vector<Step>& steps, Sync sync,
                                                  MonoTime until, bool plainly);
  // A commit on one connection, and the way that it went.
  enum class Way { General, Plain, Renewal };
  struct Went {
    postgres::Outcome<postgres::Rows> rows;
    Way way = Way::General;
  };
  Went send(postgres::Connection& conn, const std::vector<Step>& steps, Sync sync, MonoTime until,
            bool plainly);
  static Result<std::optional<postgres::CommitResult>> read_result(const postgres::Rows& rows,
                                                                   const std::vector<Step>& steps,
                                                                   Way way);
  CommitAnswer answered(postgres::Pool::Loan& loan, postgres::CommitResult result);
  void wake(postgres::Connection& conn, const std::vector<std::string>& keys, std::int64_t xid);
  void saw(std::uint64_t revision);
  MonoTime deadline() const { return clock_.mono() + settings_.timeout; }

  // Constant after opening.
  const postgres::Settings settings_;
  const Clock& clock_;
  const postgres::Statement read_;
  const postgres::Statement read_short_;
  const postgres::Statement scan_;
  const postgres::Statement scan_back_;
  const postgres::Statement commit_;
  const postgres::Statement renewal_;
  const postgres::Statement wake_;
  const postgres::Statement appended_;
  const postgres::Statement revision_;
  const std::array<postgres::Statement, 4> many_;  // + 1: relaxed, + 2: judged again
  const postgres::Statement mark_;
  Capabilities capabilities_;
  Opening opening_;
  bool gated_ = false;

  postgres::PlainStatements plain_;
  std::atomic<std::uint64_t> last_revision_ = 0;
  postgres::Pool pool_;
  std::unique_ptr<postgres::Listener> listener_;
  postgres::Lanes<ReadTask> reads_;
  postgres::Lanes<CommitTask> commits_;
};

}  // namespace stint::store
