// Answers that are kept for who asks again with the same idempotency key (api/once.h): one record
// `answer/K`, written in the same commit as what was done, with a timer; sweep_once() removes those
// whose timer has fired. A lease's verbs keep their answer in a short form of their own; every
// other verb keeps its answer's JSON, by a Keeper. What is too long for a record is written ahead,
// in parts that nobody knows of until that commit names them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/lease.h"
#include "api/once.h"
#include "core/item_id.h"
#include "store/seam.h"

namespace stint::service {

constexpr std::string_view kAnswerPrefix = "answer/";
std::string once_key(const api::Once& once);

struct KeptAnswer {
  std::string digest;
  WallTime at{};
  std::optional<api::Granted> granted;  // one of the two
  std::optional<api::Held> held;
};

// Expects that nobody has used the key.
store::Step keep_answer(const api::Once& once, const KeptAnswer& answer);
Result<KeptAnswer> decode_kept(const api::Once& once, std::string_view value);

// What was done to an item of a queue.
struct KeptItem {
  std::string digest;
  WallTime at{};
  core::ItemId id;
  Token epoch;           // of a claim
  bool existed = false;  // of a put: another item has its unique key
};
// Since it was done; never below zero.
Millis age_of(const KeptItem& kept, WallTime now);
store::Step keep_item(const api::Once& once, const KeptItem& kept);
// Empty: nobody has used the key. Errors: once_mismatch(), UnknownOutcome.
Result<std::optional<KeptItem>> find_kept_item(store::Store& store, const api::Once& once);

// Takes the answer of one request into the commit that does what it tells of. Without an
// idempotency key it is nothing but the store's commit. All must outlive it.
class Keeper {
 public:
  Keeper(store::Store& store, const Clock& clock, const std::optional<api::Once>& once)
      : store_(store), clock_(clock), once_(once) {}
  // `write`: the body of the answer, as the server gives it. No steps: what was asked for stands
  // already, and that is kept. Errors: Unavailable, if another request under the same key was
  // first: its answer is this one's.
  using Write = std::function<std::string()>;
  Result<store::CommitAnswer> commit(std::vector<store::Step> steps, store::Sync sync,
                                     const Write& write) const;
  // Of what stands already.
  Status keep(const Write& write) const;

 private:
  store::Store& store_;
  const Clock& clock_;
  const std::optional<api::Once>& once_;
};

// api::KeptAnswers on a store.
class OnceService final : public api::KeptAnswers {
 public:
  OnceService(store::Store& store, const Clock& clock) : store_(store), clock_(clock) {}
  Result<api::Bound> find(const api::Once& once) override;
  Result<api::Bound> bind(const api::Once& once) override;
  Result<api::Bound> keep(const api::Once& once, const std::string& body) override;
  Status forget(const api::Once& once) override;

 private:
  store::Store& store_;
  const Clock& clock_;
};

// One page of them, in one commit, from `after` on. The answer: where to go on; empty: at the end.
Result<std::string> sweep_once(store::Store& store, const std::string& after);

}  // namespace stint::service
