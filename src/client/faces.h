// The interfaces of `api`, each over the link. Only for the .cc files of this folder.
#pragma once

#include <atomic>

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
  Status forget(const ResourceName& resource, const std::string& target,
                const api::ForgetWord& word) override;
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

class HttpQueue final : public api::Queue {
 public:
  explicit HttpQueue(Link& link) : link_(link) {}
  using api::Queue::configure;
  Status configure(const api::QueueConfig& config, const std::optional<api::Once>& once) override;
  Result<api::QueueConfig> config(const core::QueueName& queue) override;
  Result<std::vector<api::QueueConfig>> queues() override;
  Result<api::PutAnswer> put(const api::PutRequest& request) override;
  Result<api::ClaimAnswer> claim(const api::ClaimRequest& request) override;
  Result<api::ItemAnswer> start(const api::ItemRef& ref, bool reports) override;
  Result<api::ItemAnswer> renew(const api::ItemRef& ref, Millis ttl) override;
  Result<api::ItemAnswer> checkpoint(const api::ItemRef& ref, const std::string& marker,
                                     const std::optional<std::string>& data) override;
  Result<api::ItemAnswer> complete(const api::Completion& completion) override;
  Result<api::ItemAnswer> fail(const api::ItemRef& ref, const std::string& why,
                               std::optional<Millis> later) override;
  Result<api::ItemAnswer> release(const api::ItemRef& ref) override;
  using api::Queue::order;
  Result<api::ItemAnswer> order(const core::ItemId& id, const core::ItemOrder& order,
                                const std::optional<api::Once>& once) override;
  Result<std::optional<api::QueueItem>> show(const core::ItemId& id) override;
  Result<std::vector<api::QueueItem>> list(const api::ItemPage& page) override;
  Result<api::QueueCounts> count(const core::QueueName& queue) override;
  // The server counts what goes through it; here nothing is.
  api::QueueTraffic traffic() const override { return {}; }
  Result<api::Tended> tend(const core::QueueName& queue) override;
  Result<std::unique_ptr<Watch>> watch(const core::QueueName& queue) override {
    return link_.watch_at("/v1/queues/watch", {{"queue", queue.text()}});
  }
  Result<std::unique_ptr<Watch>> watch_item(const core::ItemId& id) override {
    return link_.watch_at("/v1/queues/watch", {{"id", id.text()}});
  }

 private:
  Result<std::pair<api::QueueConfig, api::QueueCounts>> one(const core::QueueName& queue);
  Result<api::ItemAnswer> work(const std::string& path, const api::ItemRef& ref,
                               const std::string& body, Link::Again again);
  Link& link_;
};

class HttpSlots final : public api::Slots {
 public:
  explicit HttpSlots(Link& link) : link_(link) {}
  Result<WallTime> now() override;
  // As the server said when it was asked for the time.
  bool own_clock() const override { return own_clock_; }
  std::vector<Result<api::Decided>> decide(const std::vector<api::DecideAsk>& asks,
                                           const std::string& scheduler) override;
  Status keep(const std::string& job) override;
  Result<std::vector<std::string>> open_jobs() override;
  Result<std::vector<api::NamedJob>> jobs() override;
  Result<api::StepAnswer> claim(const api::SlotProof& proof) override;
  Result<api::StepAnswer> start(const api::SlotProof& proof) override;
  Result<api::StepAnswer> running(const api::SlotProof& proof) override;
  Result<api::StepAnswer> hand_back(const api::SlotProof& proof) override;
  Result<api::EndAnswer> end(const api::SlotProof& proof, const core::SlotEnd& end,
                             const core::JobRule& rule) override;
  Result<api::EndAnswer> skip(const api::SlotSkip& skip) override;
  Result<api::SlotAdded> add(const core::JobRule& rule, std::optional<core::Slot> slot,
                             const std::string& scheduler) override;
  Status pause(const core::JobRule& rule, const std::string& by) override;
  Status resume(const core::JobRule& rule, const std::string& by) override;
  Result<api::JobHistory> history(const std::string& job, std::size_t limit) override;
  Result<std::unique_ptr<Watch>> watch() override { return link_.watch_at("/v1/jobs/watch", {}); }
  Result<api::OnceRecord> once(const std::string& key) override;
  Result<api::StepAnswer> once_start(const std::string& key, const api::Grip& grip,
                                     const Owner& owner) override;
  Result<api::StepAnswer> once_end(const std::string& key, const api::Grip& grip,
                                   int exit_code) override;

 private:
  Result<api::StepAnswer> step(const std::string& path, const std::string& body);
  Status change(const std::string& path, const core::JobRule& rule, const std::string& by);

  Link& link_;
  std::atomic<bool> own_clock_ = false;
};

}  // namespace stint::client
