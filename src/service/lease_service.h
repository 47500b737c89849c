// api::Leases on a store: reads the records, asks core/lease.h, commits what it says.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <unordered_map>

#include "api/batch.h"
#include "api/leases.h"
#include "base/mutex.h"
#include "base/random.h"
#include "service/lease_plan.h"
#include "service/ledger.h"
#include "service/records.h"
#include "service/store_life.h"
#include "store/many.h"

namespace stint::service {

class LeaseService final : public api::Leases, public api::BatchedLeases {
 public:
  // `anchors` may be null. All must outlive the service.
  LeaseService(store::Store& store, Ledger& ledger, const Life& life, const Clock& clock,
               Random& random, Anchors* anchors);

  Result<api::AcquireAnswer> acquire(const api::AcquireRequest& request) override;
  Result<api::HoldAnswer> renew(const api::Grip& grip, Millis ttl) override;
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
  Result<Token> forget(const ResourceName& resource) override { return forget(resource, {}); }
  // The same under an idempotency key.
  Result<Token> forget(const ResourceName& resource, const std::optional<api::Once>& once);
  Result<std::unique_ptr<Watch>> watch(const ResourceName& resource) override;
  // With one disk sync for all, where the store can (batches() says so).
  void many(const std::vector<api::Ask>& asks, const Tell& tell, const Pause& pause) override;
  void look(const std::vector<api::Ask>& asks, std::size_t first, const Tell& tell) override;
  bool batches() const { return many_commits_ != nullptr; }
  const Generation& generation() const override { return *generation_.load(); }
  Millis smallest_ttl() const override { return store_.capabilities().smallest_ttl; }

 private:
  struct Snapshot;
  struct Settled;
  struct Planned;
  enum class OnUnknown { Say, AskAgain };

  enum class Further { Nothing, Sealed };  // what is read besides, in the same reading
  static Further further_of(const core::Verb& verb);
  std::vector<std::string> look_keys(const ResourceName& resource, Further further,
                                     const api::Once* once) const;
  // Into where it is needed: a snapshot has so many texts that moving it is a twentieth of a verb.
  // `first`: where the records of look_keys() begin in the reading.
  Status take_snapshot(const ResourceName& resource, Further further, const api::Once* once,
                       const store::Reading& reading, std::size_t first, Snapshot& out);
  Result<Snapshot> look(const ResourceName& resource);
  Result<Meta> meta_of(const store::Entry& entry);
  Result<core::Ownership> own_of(const std::string& resource, const store::Entry& entry);
  void remember_written(const std::string& resource, const std::string& value,
                        const core::Ownership& own);
  // False: nothing is known of it; or by `now` it has run out, which a commit would find out, too,
  // but may have to wait for others to do so.
  bool assume(const api::Grip& grip, Snapshot& out, std::optional<MonoTime> now = std::nullopt);
  void keep_in_mind(const Settled& settled);
  void runs_on(const Settled& settled);
  Settled restored(const ResourceName& resource) const;
  Token remembered(const std::string& resource);
  // Read, decide, commit; again on a conflict.
  Result<Settled> settle(const ResourceName& resource, const core::Verb& verb,
                         const api::Grip* grip, OnUnknown on_unknown,
                         const api::Once* once = nullptr);
  // The answer as it will be if the commit is done, to be kept in the same commit.
  store::Step kept_answer(const api::Once& once, const Settled& settled, const core::Verb& verb,
                          WallTime now) const;
  // The same for what stands already and changes nothing: that it is still so, and the answer.
  // Empty: it is no such answer.
  std::vector<store::Step> kept_standing(const api::Once& once, const Settled& settled,
                                         const core::Verb& verb, WallTime now) const;
  api::Granted granted_of(const Settled& settled) const;
  api::Held held_of(const Settled& settled) const;
  Result<api::HoldAnswer> answer_of(Settled&& settled);
  Result<api::HoldAnswer> hold(const api::Grip& grip, const core::Verb& verb, OnUnknown on_unknown);
  Result<api::HoldAnswer> order(const api::OrderRequest& order, const core::Verb& verb);
  Status check_ttl(Millis ttl) const;
  void committed(Planned& planned, const store::Committed& done);
  Status plan(const ResourceName& resource, const core::Verb& verb, const api::Grip* grip,
              const api::Once* once, Planned& out);
  // REQUIRES: `settled.after` is what was read or assumed.
  Status decide_on(Planned& planned, const core::Verb& verb, const api::Once* once);
  using Some = std::vector<std::size_t>;  // of those that are asked for
  enum class Assume { Nothing, WhatIsKnown };
  // On one reading. What has no plan, and is not wrong, goes the way of a single verb.
  struct Plans {
    std::vector<std::optional<Planned>> of;  // in the order of `some`
    Some wrong;                              // refused as they are, whatever stands
  };
  Plans plan_many(const std::vector<api::Ask>& asks, const Some& some, Assume assuming);
  struct Range {
    std::size_t first;
    std::size_t end;
  };
  void many_together(const std::vector<api::Ask>& asks, const Range& range, const Tell& tell,
                     const Pause& pause);
  // What is to be committed, each with its plan; and what goes the way of a single verb.
  struct Ready {
    std::vector<std::pair<std::size_t, Planned*>> of = {};
    std::vector<store::Proposal> proposals = {};  // beside it
    Some single = {};
  };
  // Tells those who are refused, and those for whom nothing is to be written.
  void sort_out(const std::vector<api::Ask>& asks, const Some& some, Plans& plans, const Tell& tell,
                Ready& ready);
  // With one commit of the store.
  void carry_out(const std::vector<api::Ask>& asks, Ready& ready, const Tell& tell,
                 const Pause& pause);
  api::AskAnswer told_of(const api::Ask& ask, Settled&& settled);
  std::optional<Anchor> anchor_of(const Planned& planned, const store::Committed& done) const;
  Result<core::Verb> verb_of(const api::AcquireRequest& request) const;
  Result<core::Verb> verb_of(const api::Ask& ask) const;
  api::AskAnswer one_by_one(const api::Ask& ask);
  void remember_newest(const Ready& ready, const std::vector<Result<store::CommitAnswer>>& answers);
  Result<api::AcquireAnswer> answer_of(const api::AcquireRequest& request, Settled&& settled);
  api::AcquireAnswer refusal_of(const api::AcquireRequest& request, const Settled& settled);
  Status drop_history(const ResourceName& resource);
  store::Sync sync_of(const core::Change& change) const;
  api::Lease lease_of(const Snapshot& snapshot) const;
  WallTime wall_of(const Snapshot& snapshot) const;
  std::optional<Nanos> time_of(const Snapshot& snapshot) const;
  void note_refusal(const api::AcquireRequest& request, const api::Lease& lease);

  store::Store& store_;
  store::ManyCommits* const many_commits_;  // the same store, if it can
  Ledger& ledger_;
  const Clock& clock_;
  Random& random_;
  Anchors* anchors_;

  // The grants that this service gave, at the versions that it wrote: what a hint is checked
  // against.
  Mutex known_mutex_;
  struct Known {
    Seen seen;
    MonoTime until;  // its timer runs no longer, as far as this clock can tell
  };
  std::unordered_map<std::string, Known> known_ GUARDED_BY(known_mutex_);
  // The own records that this service wrote last, beside what they mean.
  struct Written {
    std::string value;
    core::Ownership own;
  };
  std::unordered_map<std::string, Written> written_ GUARDED_BY(known_mutex_);
  // The store's generation: an operator's `recovered` moves it on under those who have it open. The
  // ones before stay, for whoever still looks at one.   G12
  std::list<Generation> generations_ GUARDED_BY(known_mutex_);
  std::atomic<const Generation*> generation_;
  // The meta record as it was decoded last.
  std::string decoded_from_ GUARDED_BY(known_mutex_);
  Meta decoded_ GUARDED_BY(known_mutex_);
};

}  // namespace stint::service
