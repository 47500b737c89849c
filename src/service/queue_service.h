// api::Queue on a store: one look at the item's record, core/item.h's answer, and a commit that
// expects what was seen. A conflict means that somebody else got on: look and decide again. G8 G10
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>

#include "api/queue.h"
#include "base/mutex.h"
#include "base/random.h"
#include "service/ledger.h"
#include "service/queue_records.h"
#include "store/seam.h"

namespace stint::service {

// How much of a content stands in the item's own record: the rest of it must find room too.
constexpr std::size_t kPayloadRoom = 1000;
constexpr std::size_t kSmallRoom = 200;

class QueueService final : public api::Queue {
 public:
  // All must outlive the service. `declared`: queues that the configuration names; they are made
  // when something is first put there.
  QueueService(store::Store& store, Ledger& ledger, const Clock& clock, Random& random,
               std::vector<api::QueueConfig> declared = {});

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
  api::QueueTraffic traffic() const override;
  bool keeps_answers() const override { return true; }
  Result<api::Tended> tend(const core::QueueName& queue) override;
  Result<std::unique_ptr<Watch>> watch(const core::QueueName& queue) override;
  Result<std::unique_ptr<Watch>> watch_item(const core::ItemId& id) override;

 private:
  // An item at one reading.
  struct Seen {
    core::ItemId id;
    Shelf shelf = Shelf::Ready;
    store::Version version = 0;
    StoredItem stored;
    core::ItemTimers timers;
    std::optional<WallTime> store_wall = std::nullopt;
    std::optional<Nanos> store_time = std::nullopt;
    bool assumed = false;  // as this service wrote it; only the commit proves it
  };
  // What every commit that gives something out checks: the store's life goes on.
  struct Ground {
    Token floor;
    Status usable;
    std::vector<store::Step> checks;
  };
  // What a verb adds to the item's own change.
  struct Extra {
    std::vector<store::Step> steps;        // in the same commit
    std::vector<store::Step> before;       // what the commit names; written ahead of it
    std::vector<core::ItemId> follow_ups;  // put by `steps`
    std::optional<Content> checkpoint;
    std::optional<Content> result;
  };
  struct Settled {
    core::ItemDecision decision;
    Seen seen;  // as it is afterwards
    Millis granted_ttl{0};
    std::vector<core::ItemId> follow_ups = {};
    std::optional<api::ItemDone> kept = std::nullopt;  // what is told who asks again
    int unknowns = 0;                                  // commits before it that were not answered
  };
  struct Attempt {
    Settled settled;
    StoredItem after;
    std::vector<store::Step> checks;
    WallTime now{};
  };
  // Of contents that are written before what names them.
  static constexpr std::size_t kStepsAhead = 60;
  using MakeExtra = std::function<Result<Extra>(const Seen&)>;
  // What a verb asks for besides, and the idempotency key that it is asked for under.
  struct Asked {
    MakeExtra extra = nullptr;
    std::optional<api::Once> once = std::nullopt;
  };

  struct Candidates {
    std::deque<store::Entry> found;
    MonoTime fetched{};
    std::set<std::string> in_hand;  // keys that a thread of this service is claiming
    int contention = 0;
    std::optional<MonoTime> tended;
    std::optional<Millis> next_in;
    std::map<std::string, std::string> after;  // where the next look at a list goes on
  };

  WallTime wall_of(const Seen& seen) const { return seen.store_wall.value_or(clock_.wall()); }
  Result<Ground> ground();
  void forget_ground();
  Result<std::optional<Seen>> look(const core::ItemId& id);
  std::optional<Seen> assume(const core::ItemId& id);
  void keep_in_mind(const Seen& seen);
  void forget(const core::ItemId& id);
  Result<core::ItemLimits> limits_for(const api::PutRequest& request);

  // Look, decide, commit; again on a conflict, and a few times when the outcome is unknown.
  Result<std::optional<Settled>> settle(const core::ItemId& id, const core::ItemVerb& verb,
                                        const Asked& asked);
  Result<Attempt> judge(Seen seen, const core::ItemVerb& verb);
  // `unsure`: what was written ahead of commits before this one that were not answered.
  using Ahead = std::vector<store::Step>;
  Result<store::CommitAnswer> carry_out(Attempt& attempt, const core::ItemVerb& verb,
                                        const Asked& asked, Ahead& unsure);
  Result<Extra> make_extra(const Asked& asked, const Seen& seen);
  api::ItemDone done_of(const Settled& settled) const;
  Result<api::ItemAnswer> answer(const core::ItemId& id, const core::ItemVerb& verb,
                                 const Asked& asked);
  std::vector<store::Step> plan(const Seen& seen, const core::ItemVerb& verb,
                                const StoredItem& after, const core::ItemChange& change);
  std::vector<store::Step> plan_events(const Seen& seen, const core::ItemVerb& verb,
                                       const core::ItemChange& change, WallTime now) const;
  // What the item is after the change, the commit's versions and times apart.
  void apply(Settled& settled, StoredItem after, Millis granted_ttl) const;
  void remember(Settled& settled, const core::ItemVerb& verb, StoredItem after,
                const store::Committed& done);
  void note_stale(const core::ItemId& id, const core::ItemVerb& verb, core::ItemCause cause,
                  const core::Item* item);
  Status clean_up(const Seen& dropped);
  Status check_time(std::string_view what, Millis length) const;
  void discard(const std::vector<store::Step>& ahead);
  void discard_results(const core::ItemId& id, Token epoch, const Content& named);
  // The item's record is the first step.
  Result<std::vector<store::Step>> plan_put(const core::ItemId& id, const api::PutRequest& request,
                                            const core::ItemLimits& limits,
                                            StoredItem stored) const;
  Result<Extra> plan_follow_ups(const api::Completion& completion, const Seen& seen);

  // queue_claim.cc
  Result<std::optional<store::Entry>> candidate(const core::QueueName& queue, bool contested);
  void put_down(const core::QueueName& queue, const std::string& key, bool conflict);
  Result<std::optional<Settled>> try_claim(const Seen& seen, const core::ClaimItem& bid,
                                           const std::optional<api::Once>& once, bool& conflict);
  // The claim of an earlier time, by its idempotency key; empty: there was none.
  Result<std::optional<api::ClaimAnswer>> claimed_before(const api::ClaimRequest& request);
  Result<std::optional<Settled>> claim_reserved(const api::ClaimRequest& request,
                                                const core::ClaimItem& bid);
  bool due_for_tending(const core::QueueName& queue);
  Status tend_fired(const core::QueueName& queue, const std::vector<store::Entry>& entries,
                    api::Tended& tended);
  Result<std::vector<store::Entry>> next_page(const core::QueueName& queue,
                                              const std::string& prefix, std::size_t length);
  bool in_the_middle(const core::QueueName& queue);
  Status tend_pages(const core::QueueName& queue, api::Tended& tended);
  Status promote(const core::QueueName& queue, api::Tended& tended);
  Result<bool> promote_one(const Seen& seen);
  void count_moved(const Settled& settled, api::Tended& tended);
  Result<api::ClaimAnswer> claimed(const Settled& settled);
  api::PutAnswer put_done(const core::ItemId& id);
  Result<std::optional<core::ItemId>> who_has(const api::PutRequest& request);
  Result<bool> keep_existing(const api::PutRequest& request, const core::ItemId& other);
  Result<api::PutAnswer> put_until_known(const api::PutRequest& request,
                                         const core::ItemLimits& limits, int& unknowns);
  void note_put(const core::ItemId& id);
  // Says that somebody waits; wakes those who do.
  Status hang_bell(const core::QueueName& queue);
  void ring(const core::QueueName& queue);

  // queue_look.cc
  Result<Seen> seen_of(const core::ItemId& id, Shelf shelf, const store::Entry& entry) const;
  api::QueueItem view_of(const Seen& seen) const;
  Status load(api::QueueItem& view, const StoredItem& stored);
  Result<std::string> load(const core::ItemId& id, const Content& content);

  store::Store& store_;
  Ledger& ledger_;
  const Clock& clock_;
  Random& random_;
  const std::vector<api::QueueConfig> declared_;

  mutable Mutex mutex_;
  core::ItemIds ids_ GUARDED_BY(mutex_);
  std::optional<Ground> ground_ GUARDED_BY(mutex_);
  std::optional<Generation> generation_ GUARDED_BY(mutex_);
  std::map<core::QueueName, std::pair<core::ItemLimits, MonoTime>> configs_ GUARDED_BY(mutex_);
  std::map<core::QueueName, Candidates> candidates_ GUARDED_BY(mutex_);
  // The claimed items that this service gave out, as it wrote them.
  std::unordered_map<std::string, Seen> known_ GUARDED_BY(mutex_);

  std::atomic<std::uint64_t> puts_ = 0;
  std::atomic<std::uint64_t> claims_ = 0;
  std::atomic<std::uint64_t> completions_ = 0;
  std::atomic<std::uint64_t> stale_ = 0;
  std::atomic<std::uint64_t> parked_ = 0;
};

}  // namespace stint::service
