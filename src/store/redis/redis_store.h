// `redis:` - a store in a Redis server: one script that compares and commits, judged by the
// server's own clock.
//
// Commits and reads of all threads share one connection (pipeline.h); watches have another (hub.h).
// What the server may lose is told by capabilities(); after a restart that may have lost something
// the record Capabilities::tail_record says so (docs/adr/0012).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "store/module.h"
#include "store/redis/facts.h"
#include "store/redis/options.h"
#include "store/redis/rows.h"
#include "store/seam.h"

namespace stint::store {

namespace redis {
class Hub;
class Link;
class Pipeline;
struct Answer;
struct Question;
struct Script;
}  // namespace redis

class RedisStore final : public Store {
 public:
  static Result<std::unique_ptr<RedisStore>> open(const OpenRequest& request);
  ~RedisStore() override;
  RedisStore(const RedisStore&) = delete;
  RedisStore& operator=(const RedisStore&) = delete;

  const Capabilities& capabilities() const override { return capabilities_; }
  const Opening& opening() const override { return opening_; }
  Result<Reading> read(const std::vector<std::string>& keys) override;
  Result<Reading> scan(const ScanRange& range) override;
  Result<CommitAnswer> commit(const std::vector<Step>& steps, Sync sync) override;
  Result<std::unique_ptr<Watch>> watch(std::string_view key) override;
  Result<std::uint64_t> appended(const std::string& prefix) override;
  Result<std::uint64_t> revision() override;
  Result<std::vector<Finding>> examine() override;

  // As the server was when the store was opened.
  const RedisFacts& facts() const { return facts_; }

 private:
  explicit RedisStore(redis::Options options);
  Status begin();
  Result<std::unique_ptr<redis::Link>> connect(MonoTime until);
  Status enter(redis::Link& link, const RedisFacts& facts, MonoTime until);
  Result<redis::Answer> ask_again(const redis::Question& question);
  struct Ran {
    redis::Reply reply;
    std::optional<std::int64_t> replicas;
  };
  Result<Ran> run_commit(const std::vector<std::string_view>& words, bool durable, MonoTime until);
  // Nothing: this server follows another one now, which somebody has entered.
  Result<std::optional<Reading>> read_here(const std::vector<std::string>& keys);
  Result<std::optional<Reading>> scan_here(const ScanRange& range);
  // Then it is looked at once more, over a new connection.
  using LookHere = std::function<Result<std::optional<Reading>>()>;
  Result<Reading> where_the_name_leads(const LookHere& look);
  Result<Reading> scan_page(const ScanRange& range);
  Result<CommitAnswer> answered(const std::vector<Step>& steps, const redis::Reply& reply) const;
  Status check_id(const redis::Reply& id) const;
  std::string run_id() const;

  const redis::Options options_;
  const std::string records_;
  const std::string index_;
  const std::string channels_;
  // Written by begin(), constant from then on.
  std::string id_;
  RedisFacts facts_;
  Capabilities capabilities_;
  Opening opening_;

  mutable Mutex mutex_;
  std::string run_id_ GUARDED_BY(mutex_);  // of the server, at the last connection

  std::unique_ptr<redis::Pipeline> pipeline_;
  std::unique_ptr<redis::Hub> hub_;
};

}  // namespace stint::store
