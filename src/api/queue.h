// The verbs on queues and their items. Implemented by service/ on a store, by queue/ on a plain
// directory, and by client/ over HTTP.
//
// Answers are values; faults are Errors; Code::UnknownOutcome: sent, no answer. Wrong input, an
// unknown queue included: Code::Invalid, nothing was changed. Thread safety: any thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/once.h"
#include "base/names.h"
#include "base/result.h"
#include "base/time.h"
#include "base/watch.h"
#include "core/item.h"
#include "core/item_id.h"

namespace stint::api {

constexpr std::size_t kMostContentBytes = 65'536;  // of a payload, a checkpoint, a result
constexpr std::size_t kMostFollowUps = 50;
constexpr std::size_t kMostLabels = 16;
constexpr std::size_t kMostLabelBytes = 512;  // all together
constexpr std::size_t kMostUniqueBytes = 256;
constexpr std::size_t kMostMarkerBytes = 400;
constexpr std::size_t kMostWhyBytes = 400;

struct QueueConfig {
  core::QueueName name;
  core::ItemLimits limits;
};

struct PutRequest {
  core::QueueName queue;
  std::string payload;
  int priority = 0;
  Millis delay{0};     // not before this has passed
  std::string unique;  // empty: none. A key that is taken is answered with the item that has it
  std::vector<std::string> labels;
  std::string by;                          // who puts it
  std::optional<core::ItemLimits> limits;  // instead of the queue's
  bool create = false;                     // the queue, if it is not there, with these limits
  std::optional<Once> once = std::nullopt;
};

struct PutAnswer {
  core::ItemId id;
  bool existed = false;   // the unique key was taken by it
  bool replayed = false;  // the answer of an earlier time, to the same idempotency key
  std::optional<Millis> age = std::nullopt;  // of such a one: how long ago it was given first
};

// An item as the outside sees it.
struct QueueItem {
  core::ItemId id;
  core::Item item;
  std::vector<std::string> labels;
  std::string unique;
  std::string put_by;
  WallTime put_at{};
  std::string parent;  // whose completion put it
  std::optional<WallTime> not_before;
  std::optional<Millis> remaining;  // of a live claim, or until it may be claimed
  Millis ttl{0};                    // of the claim
  bool live = false;
  // Contents; in listings only their sizes.
  std::optional<std::string> payload;
  std::optional<std::string> checkpoint;
  std::optional<std::string> result;
  std::size_t payload_bytes = 0;
};

struct ClaimRequest {
  core::QueueName queue;
  Owner owner;
  Claim claim;
  Millis ttl{0};  // zero: the item's own
  bool start = false;
  bool reports = false;
  bool starts_later = false;  // start() will say when the work begins: no progress is due before
  bool will_wait = false;  // if there is nothing, on watch(): whoever puts something then wakes it
  std::optional<Once> once = std::nullopt;
};

struct ClaimedItem {
  QueueItem item;
  Millis granted_ttl{0};  // how long the claimant may trust it, from before it asked
  std::optional<Nanos> store_time = std::nullopt;
  bool replayed = false;  // claimed earlier, by the same idempotency key; zero ttl: it is over
  std::optional<Millis> age = std::nullopt;  // as in PutAnswer
};
struct EmptyQueue {
  std::optional<Millis> next_in;  // when something may be there, as far as the store can tell
};
using ClaimAnswer = std::variant<ClaimedItem, EmptyQueue>;

struct ItemRef {
  core::ItemId id;
  Token epoch;
  std::optional<Once> once = std::nullopt;
};

struct FollowUp {
  core::QueueName queue;
  std::string payload;
};
struct Completion {
  ItemRef ref;
  std::optional<std::string> result;
  std::vector<FollowUp> then;
};
// What tells one completion from another.
std::string digest_of(const Completion& completion);

struct ItemDone {
  QueueItem item;
  bool repeated = false;
  Millis granted_ttl{0};
  std::vector<core::ItemId> follow_ups = {};
  std::optional<Nanos> store_time = std::nullopt;
};
struct ItemLost {
  core::ItemCause cause = core::ItemCause::Expired;
  std::optional<QueueItem> item;  // as it stands now; empty: there is none
};
using ItemAnswer = std::variant<ItemDone, ItemLost>;

struct ItemPage {
  core::QueueName queue;
  std::optional<core::ItemState> state;
  std::size_t limit = 1000;
  std::string after = {};  // cursor_of() the last one seen; empty: from the first
};
// Items are listed in these groups, and by their ids within each.
enum class ItemGroup { Claimed, Ready, Later, Parked, Ended };
struct ItemCursor {
  ItemGroup group = ItemGroup::Claimed;
  std::string suffix;  // of the id; empty: before all of the group
};
std::string cursor_of(const QueueItem& item);
// Errors: Invalid.
Result<ItemCursor> parse_cursor(const ItemPage& page);

// What the janitor did.
struct Tended {
  std::size_t requeued = 0;
  std::size_t parked = 0;
  std::optional<Millis> next_in;  // when there may be something to do again
};

struct QueueCounts {
  std::size_t waiting = 0;  // each up to kMostCounted
  std::size_t ready = 0;    // of the waiting ones: may be claimed now
  std::size_t claimed = 0;
  std::size_t parked = 0;
  std::size_t finished = 0;
  std::size_t failed = 0;  // of the finished ones
  std::size_t done = 0;
  std::optional<WallTime> oldest;  // put, and still waiting
};
constexpr std::size_t kMostCounted = 10'000;

// Of this process since its start.
struct QueueTraffic {
  std::uint64_t puts = 0;
  std::uint64_t claims = 0;
  std::uint64_t completions = 0;
  std::uint64_t stale = 0;
  std::uint64_t parked = 0;
};

class Queue {
 public:
  virtual ~Queue() = default;

  // Makes the queue, or changes its limits; items that are there keep theirs.
  virtual Status configure(const QueueConfig& config, const std::optional<Once>& once) = 0;
  Status configure(const QueueConfig& config) { return configure(config, std::nullopt); }
  virtual Result<QueueConfig> config(const core::QueueName& queue) = 0;
  virtual Result<std::vector<QueueConfig>> queues() = 0;

  virtual Result<PutAnswer> put(const PutRequest& request) = 0;

  // Settles expired claims of the queue first; never re-takes a live one, whoever asks.
  virtual Result<ClaimAnswer> claim(const ClaimRequest& request) = 0;

  virtual Result<ItemAnswer> start(const ItemRef& ref, bool reports) = 0;
  virtual Result<ItemAnswer> renew(const ItemRef& ref, Millis ttl) = 0;  // zero: as long as before
  virtual Result<ItemAnswer> checkpoint(const ItemRef& ref, const std::string& marker,
                                        const std::optional<std::string>& data) = 0;
  virtual Result<ItemAnswer> complete(const Completion& completion) = 0;
  virtual Result<ItemAnswer> fail(const ItemRef& ref, const std::string& why,
                                  std::optional<Millis> later) = 0;
  virtual Result<ItemAnswer> release(const ItemRef& ref) = 0;
  // REQUIRES: a why.
  virtual Result<ItemAnswer> order(const core::ItemId& id, const core::ItemOrder& order,
                                   const std::optional<Once>& once) = 0;
  Result<ItemAnswer> order(const core::ItemId& id, const core::ItemOrder& what) {
    return order(id, what, std::nullopt);
  }

  // Empty: there is none.
  virtual Result<std::optional<QueueItem>> show(const core::ItemId& id) = 0;
  virtual Result<std::vector<QueueItem>> list(const ItemPage& page) = 0;
  virtual Result<QueueCounts> count(const core::QueueName& queue) = 0;
  virtual QueueTraffic traffic() const = 0;
  // Whether idempotency keys are kept in the commit that does the work.
  virtual bool keeps_answers() const { return false; }

  // The janitor: settles claims that ran out or stalled, by one fenced step each.   G8
  virtual Result<Tended> tend(const core::QueueName& queue) = 0;

  // Wakes when there may be something to claim, after a claim that said that it would wait.
  virtual Result<std::unique_ptr<Watch>> watch(const core::QueueName& queue) = 0;
  // Wakes when an operator has moved the claimed item.
  virtual Result<std::unique_ptr<Watch>> watch_item(const core::ItemId& id) = 0;
};

// The janitor's step on every queue of the store. How long until there may be something to do
// again: at most `longest`, and not so soon that it would be a load.
Millis tend_all(Queue& queue, Millis longest);

// Bad input is told before anything is asked of a store; shared by every implementation.
Status check_put(const PutRequest& request);
Status check_claim(const ClaimRequest& request);
Status check_ref(const ItemRef& ref);
Status check_marker(const std::string& marker);
Status check_data(std::string_view what, const std::string& data);
Status check_completion(const Completion& completion);
Status check_why(const std::string& why, bool required);
Status check_order(const core::ItemOrder& order);
// A time that a verb comes with; zero: none. At most a year, as the times of a queue.
Status check_length(std::string_view what, Millis length);
Error unknown_queue(const core::QueueName& queue);

// One line of a queue's table in a configuration file, [queue.NAME]: its key, and its value as
// text. Errors: Invalid, with the known keys or with what is wrong.
Status declare_limit(core::ItemLimits& limits, std::string_view key, const std::string& value);
// Makes the queues that are not there, and changes the limits of those that differ.
Status declare_queues(Queue& queue, const std::vector<QueueConfig>& declared);

}  // namespace stint::api
