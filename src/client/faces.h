// The interfaces of `api`, each over the link. Only for the .cc files of this folder.
#pragma once

#include "client/link.h"

namespace stint::client {

struct Facts {
  Generation generation;
  Millis smallest_ttl{0};
};

class HttpLeases final : public api::Leases {
 public:
  HttpLeases(Link& link, Facts facts) : link_(link), facts_(std::move(facts)) {}
  Result<api::AcquireAnswer> acquire(const api::AcquireRequest& request) override;
  Result<api::HoldAnswer> renew(const api::Grip& grip, Millis ttl) override;
  std::vector<Result<api::HoldAnswer>> renew_many(const std::vector<api::Grip>& grips,
                                                  Millis ttl) override;
  Result<api::HoldAnswer> release(const api::Grip& grip, bool fence) override;
  Result<api::HoldAnswer> stall(const api::Grip& grip) override;
  Result<api::HoldAnswer> check(const api::Grip& grip) override;
  Result<api::HoldAnswer> progress(const api::Grip& grip, const std::string& marker) override;
  Result<api::HoldAnswer> transfer(const api::OrderRequest& order, const Owner& to,
                                   Millis ttl) override;
  Result<api::HoldAnswer> revoke(const api::OrderRequest& order, core::Reason reason) override;
  Result<api::Lease> get(const ResourceName& resource) override;
  Result<std::vector<api::Lease>> list(const api::Page& page) override;
  Result<std::vector<api::PastGrant>> history(const ResourceName& resource,
                                              std::size_t limit) override;
  Result<Token> forget(const ResourceName& resource) override;
  Result<std::unique_ptr<Watch>> watch(const ResourceName& resource) override;
  const Generation& generation() const override { return facts_.generation; }
  Millis smallest_ttl() const override { return facts_.smallest_ttl; }

 private:
  Result<api::HoldAnswer> hold(const std::string& path, const api::Grip& grip,
                               std::string_view further, Link::Again again);

  Link& link_;
  const Facts facts_;
};

class HttpFences final : public api::Fences {
 public:
  explicit HttpFences(Link& link) : link_(link) {}
  Result<api::TokenWord> word(const ResourceName& resource) override;
  Result<std::vector<std::string>> sealed(const ResourceName& resource) override;
  Result<core::Verdict> remember(const core::Offer& offer,
                                 const std::vector<std::string>& targets) override;
  Status forget(const ResourceName& resource, const std::string& target) override;
  Result<api::FenceAnswer> admit(const std::string& target, const core::Offer& offer) override;
  Result<api::FenceAnswer> seal(const std::string& target, const core::Offer& offer) override;
  Result<std::optional<core::Fence>> fence(const std::string& target) override;
  Result<api::FenceAnswer> begin(const api::Act& act, const core::Offer& offer) override;
  Result<api::FenceAnswer> finish(const api::Act& act, const core::Offer& offer) override;
  Result<std::optional<api::Act>> act(const std::string& name, const std::string& key) override;

 private:
  Result<api::FenceAnswer> ask(const std::string& path, const std::string& body);
  Link& link_;
};

class HttpEvents final : public api::Events {
 public:
  explicit HttpEvents(Link& link) : link_(link) {}
  Result<std::vector<api::Event>> list(const api::EventQuery& query) override;
  Status record(const api::Event& event) override;
  Status record_refusal(const api::Event& event, const std::string& target) override;
  Result<std::unique_ptr<Watch>> watch() override { return link_.watch(""); }

 private:
  Link& link_;
};

class HttpKeys final : public api::Keys {
 public:
  explicit HttpKeys(Link& link) : link_(link) {}
  Result<api::CreatedKey> create(const api::NewKey& wanted, const std::string& by) override;
  Result<std::vector<api::Key>> list() override;
  Result<api::Key> revoke(const std::string& id_or_name, const std::string& by) override;
  Status used(const api::Key& /*key*/) override { return {}; }
  Result<std::unique_ptr<Watch>> watch() override { return link_.watch(""); }

 private:
  Link& link_;
};

}  // namespace stint::client
