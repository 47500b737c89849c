// `etcd://` - a cluster of etcd servers, through their JSON gateway. See docs/adr/0013.
#pragma once

#include <memory>

#include "store/etcd/append_log.h"
#include "store/etcd/commit.h"
#include "store/etcd/gateway.h"
#include "store/etcd/keys.h"
#include "store/etcd/leases.h"
#include "store/etcd/opening.h"
#include "store/etcd/rights.h"
#include "store/etcd/watches.h"
#include "store/module.h"

namespace stint::store::etcd {

class EtcdStore final : public Store {
 public:
  static Result<std::unique_ptr<EtcdStore>> open(const OpenRequest& request, const Clock& clock);

  const Capabilities& capabilities() const override { return capabilities_; }
  const Opening& opening() const override { return opening_; }
  const ServerFacts& facts() const { return facts_; }
  Result<Reading> read(const std::vector<std::string>& keys) override;
  Result<Reading> scan(const ScanRange& range) override;
  Result<CommitAnswer> commit(const std::vector<Step>& steps, Sync sync) override;
  Result<std::unique_ptr<Watch>> watch(std::string_view key) override;
  Result<std::uint64_t> appended(const std::string& prefix) override;
  Result<std::uint64_t> revision() override;
  Result<std::vector<Finding>> examine() override;

 private:
  EtcdStore(const Settings& settings, const Clock& clock, Millis timeout);
  Result<TxnAnswer> ask(const Txn& txn, const Deadline& deadline);
  Status fill_remaining(std::vector<Entry>& entries, const std::vector<LeaseId>& leases,
                        const Deadline& deadline);
  Result<std::vector<Entry>> scan_records(const ScanRange& range, const Deadline& deadline);
  void saw(std::uint64_t revision);

  const Clock& clock_;
  const Millis timeout_;
  const Keys keys_;
  const std::unique_ptr<net::HttpClient> http_;
  const Caller caller_;
  Gateway gateway_;
  AppendLog log_;
  Leases leases_;
  Watches watches_;
  Capabilities capabilities_;
  Opening opening_;
  ServerFacts facts_;
  std::atomic<std::uint64_t> seen_revision_ = 0;
};

}  // namespace stint::store::etcd
