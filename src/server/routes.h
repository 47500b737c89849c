// What the server can be asked: one line a route. The rules are behind `api`; here requests are
// read, rights are looked at, and answers are written.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json_value.h"
#include "server/answers.h"
#include "server/caller.h"
#include "server/claim_book.h"
#include "server/in_hand.h"
#include "server/metrics.h"
#include "server/query.h"
#include "server/server.h"

namespace stint::server {

// One request, on a thread that may wait for the store.
struct Request {
  const ServeRequest& serve;
  const Clock& clock;
  Metrics& metrics;
  ClaimBook& claims;
  InHand& lists;  // that are being taken
  const Caller& caller;
  std::map<std::string, std::string> query;
  JsonValue body;
  std::optional<api::Once> once;
  std::string once_key;                      // as the caller named it; empty: none
  std::optional<Claim> made = std::nullopt;  // by the server, since the caller gave none
  // Of a request whose answer is kept in the commit that does what it tells of.
  std::optional<api::Keeping> keeping = std::nullopt;

  api::Leases& leases() const { return *serve.backend.leases; }
  api::Queue& queue() const { return *serve.backend.queue; }
  api::Fences& fences() const { return keeping ? *keeping->fences : *serve.backend.fences; }
  api::Events& events() const { return keeping ? *keeping->events : *serve.backend.events; }
  api::Keys& keys() const { return keeping ? *keeping->keys : *serve.backend.keys; }
  api::Slots& slots() const { return keeping ? *keeping->slots : *serve.backend.slots; }
};

// Who keeps the answer for an idempotency key.
enum class Keeps {
  Kept,    // the verb, in the commit that does what it tells of
  Itself,  // the same, and the verb finds it by itself; or nobody: a look, what is never replayed
  // ---- what is not one commit: beside it (api::KeptAnswers)
  Bound,   // nobody: the same request again is decided anew, and is the same by nature. The key is
           // bound to its request all the same
  Again,   // after it; without an answer it is asked again
  Unsure,  // after it; without an answer its outcome is unknown
  // ---- the queue in its commit, if it can; plain files cannot
  KeptOrBound,
  KeptOrAgain,
  ItselfOrUnsure,
};

struct Route {
  std::string_view method;
  std::string_view path;
  api::Rights rights;  // any of them; 0: everybody
  Answer (*run)(Request& request);
  // For the document at /v1/openapi.json.
  std::string_view summary;
  std::string_view takes;    // the schema of the body, or the names of the query
  std::string_view gives;    // the schema of the answer
  std::string_view refuses;  // "409 410": what else it may answer, besides what every route may
  Keeps keeps = Keeps::Itself;
  // What of a kept answer only this caller can know. Errors: the answer.
  Result<std::string> (*whole)(const Request& request, std::string kept) = nullptr;
};
// The route, with its idempotency key bound and its answer kept.
Answer run_route(const Route& route, Request& request);

std::span<const Route> routes();
// Only what the route knows ("a b!": both may, b must be there). Errors: Invalid.
Status check_query(const Route& route, const std::map<std::string, std::string>& query);

// ---- lease_routes.cc
Answer acquire(Request& request);
Answer renew(Request& request);
Answer release(Request& request);
Answer stall(Request& request);
Answer check(Request& request);
Answer progress(Request& request);
Answer transfer(Request& request);
Answer revoke(Request& request);
Answer forget(Request& request);
// ---- look_routes.cc
Answer get_lease(Request& request);
Answer list_leases(Request& request);
Answer history(Request& request);
Answer list_events(Request& request);
Answer record_event(Request& request);
Answer store_facts(Request& request);
Answer tune_resource(Request& request);
// ---- key_routes.cc
Answer list_keys(Request& request);
Answer create_key(Request& request);
Answer revoke_key(Request& request);
Result<std::string> with_secret(const Request& request, std::string kept);
// ---- fence_routes.cc
Answer token_word(Request& request);
Answer sealed_targets(Request& request);
Answer remember_targets(Request& request);
Answer forget_target(Request& request);
Answer admit(Request& request);
Answer seal(Request& request);
Answer get_fence(Request& request);
Answer begin_act(Request& request);
Answer finish_act(Request& request);
Answer get_act(Request& request);

// ---- queue_routes.cc
Answer list_queues(Request& request);
Answer get_queue(Request& request);
Answer configure_queue(Request& request);
Answer list_items(Request& request);
Answer get_item(Request& request);
Answer put_item(Request& request);
Answer claim_item(Request& request);
Answer start_item(Request& request);
Answer renew_item(Request& request);
Answer checkpoint_item(Request& request);
Answer complete_item(Request& request);
Result<std::string> done_again(const Request& request, std::string kept);
Answer fail_item(Request& request);
Answer release_item(Request& request);
Answer park_item(Request& request);
Answer requeue_item(Request& request);
Answer reassign_item(Request& request);
Answer cancel_item(Request& request);
Answer replay_item(Request& request);
Answer drop_item(Request& request);
Answer tend_queue(Request& request);

// ---- slot_routes.cc
Answer list_jobs(Request& request);
Answer list_open_jobs(Request& request);
Answer job_clock(Request& request);
Answer list_slots(Request& request);
Answer job_history(Request& request);
Answer decide_jobs(Request& request);
Answer keep_job(Request& request);
Answer claim_slot(Request& request);
Answer start_slot(Request& request);
Answer running_slot(Request& request);
Answer hand_back_slot(Request& request);
Answer end_slot(Request& request);
Answer skip_slot(Request& request);
Answer add_slot(Request& request);
Answer trigger_job(Request& request);
Answer pause_job(Request& request);
Answer resume_job(Request& request);
Answer get_once(Request& request);
Answer start_once(Request& request);
Answer end_once(Request& request);

// ---- study_routes.cc
Answer explain_job(Request& request);
Answer get_doctor(Request& request);
Answer begin_doctor(Request& request);

// A claim as it came, for who waits (queue_line.h) and who does not.
struct ItemBid {
  api::ClaimRequest claim;
  Millis wait{0};
};
Result<ItemBid> read_item_bid(Request& request);
Answer item_bid_answer(Request& request, const Result<api::ClaimAnswer>& answer);
// The queue or the item of a query, within the caller's reach. Errors: Invalid, Denied.
Result<std::string> watched_queue(const Caller& caller,
                                  const std::map<std::string, std::string>& query);

// A bid as it came, for who waits (waiters.h) and who does not.
struct Bid {
  std::vector<ResourceName> resources;  // sorted
  bool listed = false;                  // asked for as a list: answered as one
  api::AcquireRequest first;            // of resources[0]; the others differ in the name alone
  std::optional<Claim> made;            // by the server, since the caller gave none
  Millis wait{0};
};
Result<Bid> read_bid(Request& request);
// All or nothing, in sorted order. `refused`: the first in the way.
Result<std::vector<api::AcquireAnswer>> take_bid(Request& request, const Bid& bid);
Answer bid_answer(Request& request, const Bid& bid,
                  const Result<std::vector<api::AcquireAnswer>>& answers);

// A renewal or a release that can be done together with others' verbs; empty: not this request.
// Errors: the answer.
Result<std::optional<api::Ask>> read_ask(Request& request, std::string_view path);
Answer ask_answer(Request& request, const api::Ask& ask, const api::AskAnswer& answer);

// ---- shared by the route files
// A claim that the caller can have again by asking again with the same idempotency key, and that
// nobody can have who does not know the caller's API key.
Claim make_claim(const Request& request);
// The error of a resource outside of the caller's prefixes.
Error out_of_reach(const Caller& caller, std::string_view resource);
Result<ResourceName> read_resource(Request& request, JsonFields& fields);
Result<ResourceName> query_resource(Request& request);
// Of the event to go on from; empty: none was given. Errors: Invalid.
Status check_event_number(std::string_view text);
Result<bool> is_newest(std::string_view text);
std::string query_text(const Request& request, const std::string& name);
Result<std::size_t> query_limit(const Request& request, std::size_t otherwise, std::size_t most);

}  // namespace stint::server
