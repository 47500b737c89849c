// An item's claim as a lease, for the holder: it is kept, watched and lost like any other. The
// resource is the item's id, the token its epoch.
//
// Everything else goes to the leases of the store: `stint work --with RESOURCE` holds both.
// Thread safety: any thread.
#pragma once

#include <atomic>

#include "api/leases.h"
#include "api/queue.h"

namespace stint::queue {

class ItemLeases final : public api::Leases {
 public:
  // Both must outlive it. `ttl`: of the claim, zero: the item's own.
  ItemLeases(api::Queue& queue, api::Leases& others, api::ItemRef ref, Millis ttl);

  Result<api::HoldAnswer> renew(const api::Grip& grip, Millis ttl) override;
  Result<api::HoldAnswer> check(const api::Grip& grip) override;
  Result<std::unique_ptr<Watch>> watch(const ResourceName& resource) override;

  Result<api::AcquireAnswer> acquire(const api::AcquireRequest& request) override;
  Result<api::HoldAnswer> release(const api::Grip& grip, bool fence) override;
  Result<api::HoldAnswer> stall(const api::Grip& grip) override;
  Result<api::HoldAnswer> progress(const api::Grip& grip, const std::string& marker) override;
  Result<api::HoldAnswer> transfer(const api::OrderRequest& order, const Owner& to,
                                   Millis ttl) override;
  Result<api::HoldAnswer> revoke(const api::OrderRequest& order, core::Reason reason) override;
  Result<api::Lease> get(const ResourceName& resource) override;
  Result<std::vector<api::Lease>> list(const api::Page& page) override;
  Result<std::vector<api::PastGrant>> history(const ResourceName& resource,
                                              std::size_t limit) override;
  Result<Token> forget(const ResourceName& resource) override;
  const Generation& generation() const override { return others_.generation(); }
  Millis smallest_ttl() const override { return others_.smallest_ttl(); }

 private:
  bool mine(const ResourceName& resource) const { return resource.text() == name_; }
  bool completed(const api::QueueItem& item) const;
  api::HoldAnswer held(const api::QueueItem& item) const;

  api::Queue& queue_;
  api::Leases& others_;
  const api::ItemRef ref_;
  const std::string name_;
  const Millis ttl_;
  std::atomic<bool> completed_ = false;  // by the work itself
};

}  // namespace stint::queue
