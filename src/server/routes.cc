#include "server/routes.h"

#include <array>

#include "base/text.h"

namespace stint::server {
namespace {

using api::Right;
using api::rights;

constexpr api::Rights kHolder = rights(Right::Acquire);
constexpr api::Rights kReader = rights(Right::Read);
constexpr api::Rights kGuard = rights(Right::Admit);
constexpr api::Rights kOperator = rights(Right::Operate);
constexpr api::Rights kForgetter = static_cast<api::Rights>(Right::Acquire | Right::Operate);
constexpr api::Rights kAdmin = rights(Right::Admin);
constexpr api::Rights kLooker = static_cast<api::Rights>(Right::Read | Right::Acquire) |
                                rights(Right::Admit) | rights(Right::Operate);
constexpr api::Rights kAnybody = 0xff;
constexpr api::Rights kDoctor = static_cast<api::Rights>(Right::Operate | Right::Admin);
constexpr api::Rights kScheduler = rights(Right::Schedule);
constexpr api::Rights kJobKeeper = static_cast<api::Rights>(Right::Schedule | Right::Operate);
constexpr api::Rights kJobLooker =
    static_cast<api::Rights>(Right::Read | Right::Schedule) | rights(Right::Operate);
constexpr api::Rights kOnce = static_cast<api::Rights>(Right::Schedule | Right::Acquire);
constexpr api::Rights kOnceLooker = kOnce | rights(Right::Read);
constexpr api::Rights kWorker = rights(Right::Queue);
constexpr api::Rights kQueueKeeper = static_cast<api::Rights>(Right::Queue | Right::Operate);
constexpr api::Rights kQueueLooker =
    static_cast<api::Rights>(Right::Read | Right::Queue) | rights(Right::Operate);

constexpr std::array kRoutes = {
    Route{
        "POST", "/v1/acquire", kHolder, acquire,
        "Take a lease, or several at once (all or nothing). With wait_ms the request is held open "
        "until the lease is had.",
        "AcquireRequest", "Granted", "409 422 429"},
    Route{"POST", "/v1/renew", kHolder, renew,
          "Prolong a lease, or many. Never replayed. Of many, each has its own result.",
          "RenewRequest", "Held", "410"},
    Route{"POST", "/v1/release", kHolder, release, "End a lease. Again is done, too.",
          "HoldRequest", "Held", "410 422"},
    Route{"POST", "/v1/stall", kHolder, stall, "End a lease whose run shows no progress.",
          "HoldRequest", "Held", "410 422"},
    Route{"POST", "/v1/check", kHolder, check, "Whether the lease is still held. Never replayed.",
          "HoldRequest", "Held", "410"},
    Route{"POST", "/v1/progress", kHolder, progress, "Report how far the work is.", "HoldRequest",
          "Held", "410 422"},
    Route{"POST", "/v1/transfer", kOperator, transfer,
          "Reserve the lease for another owner; the token moves.", "TransferRequest", "Held",
          "410 422"},
    Route{"POST", "/v1/revoke", kOperator, revoke, "End the lease by order; the token moves.",
          "OrderRequest", "Held", "410 422"},
    Route{"POST", "/v1/forget", kOperator, forget, "Drop the record of a free resource.",
          "ForgetRequest", "Floor", "409 422", Keeps::Kept},
    Route{"GET", "/v1/lease", kLooker, get_lease, "One lease as it stands.", "resource!", "Lease",
          ""},
    Route{"GET", "/v1/leases", kReader, list_leases,
          "Leases in the order of their names, by pages.", "prefix after limit", "Leases", ""},
    Route{"GET", "/v1/history", kReader, history, "Who had it, newest first.", "resource! limit",
          "History", ""},
    Route{"GET", "/v1/tune", kReader, tune_resource,
          "How long its runs took, and which ttl would suit them.", "resource!", "Tune", ""},
    Route{"GET", "/v1/waiters", kReader, nullptr, "Who waits for a lease at this server.", "",
          "Waiters", ""},
    Route{"GET", "/v1/events", kReader, list_events,
          "The ledger. With 'Accept: text/event-stream' it goes on as Server-Sent Events; "
          "Last-Event-ID resumes.",
          "prefix after limit newest", "Events", ""},
    Route{"POST", "/v1/events", static_cast<api::Rights>(Right::Acquire | Right::Admit),
          record_event, "Write a line into the ledger: what a holder or a guard has to tell.",
          "EventRequest", "Recorded", "422", Keeps::Kept},
    Route{"GET", "/v1/watch", kLooker, nullptr,
          "Server-Sent Events: one 'changed' whenever the resource (without one: the ledger) may "
          "have "
          "changed.",
          "resource", "Stream", ""},
    Route{"GET", "/v1/store", kAnybody, store_facts, "What stands behind this server.", "", "Store",
          ""},
    Route{"GET", "/v1/doctor", kDoctor, get_doctor,
          "What 'stint doctor' found on this server's store: the last examination, or how far it "
          "has come; ask again while it is running. Begins none.",
          "", "Examined", ""},
    Route{"POST", "/v1/doctor", kDoctor, begin_doctor,
          "Begin an examination of this server's store, if none is under way or fresh. Never "
          "replayed.",
          "ExamineRequest", "Examined", ""},
    Route{"GET", "/v1/fences/word", kLooker, token_word,
          "The store's word on a resource's newest token.", "resource!", "TokenWord", ""},
    Route{"GET", "/v1/fences/sealed", kLooker, sealed_targets, "The targets sealed for a resource.",
          "resource!", "Targets", ""},
    Route{"POST", "/v1/fences/remember", static_cast<api::Rights>(Right::Acquire | Right::Admit),
          remember_targets, "Remember targets before they are sealed.", "RememberRequest",
          "FenceAnswer", "412 422 428", Keeps::Kept},
    Route{"POST", "/v1/fences/forget", kForgetter, forget_target,
          "A target is no longer sealed for the resource.", "ForgetTargetRequest", "Forgotten",
          "422", Keeps::Kept},
    Route{"POST", "/v1/fences/admit", kGuard, admit, "May a write with this token land?",
          "FenceRequest", "FenceAnswer", "409 412 422 428", Keeps::Kept},
    Route{"POST", "/v1/fences/seal", kGuard, seal, "Raise the fence without writing.",
          "FenceRequest", "FenceAnswer", "412 422 428", Keeps::Kept},
    Route{"GET", "/v1/fences", kLooker, get_fence, "The fence of a target.", "target!", "Fence",
          ""},
    Route{"POST", "/v1/fences/begin", kGuard, begin_act, "The intent of 'stint admit'.",
          "ActRequest", "FenceAnswer", "409 412 422 428", Keeps::Kept},
    Route{"POST", "/v1/fences/finish", kGuard, finish_act, "Its result.", "ActRequest",
          "FenceAnswer", "412 422 428", Keeps::Kept},
    Route{"GET", "/v1/fences/act", kLooker, get_act, "Intent and result of 'stint admit'.",
          "name! key!", "Act", ""},
    Route{"GET", "/v1/keys", kAdmin, list_keys, "The keys, without their secrets.", "", "Keys", ""},
    Route{"POST", "/v1/keys", kAdmin, create_key, "Make a key; its secret is told once.",
          "KeyRequest", "CreatedKey", "422", Keeps::Kept, with_secret},
    Route{"POST", "/v1/keys/revoke", kAdmin, revoke_key, "Revoke a key.", "RevokeKeyRequest", "Key",
          "422", Keeps::Kept},
    Route{"GET", "/v1/queues", kQueueLooker, list_queues, "The queues, and how much is in each.",
          "", "Queues", ""},
    Route{"GET", "/v1/queues/queue", kQueueLooker, get_queue, "One queue.", "queue!", "Queue", ""},
    Route{"GET", "/v1/queues/items", kQueueLooker, list_items,
          "Items of a queue without their contents, by pages: claimed ones first.",
          "queue! state after limit", "Items", ""},
    Route{"GET", "/v1/queues/item", kQueueLooker, get_item, "One item with its contents.", "id!",
          "Item", "410"},
    Route{"GET", "/v1/queues/watch", kQueueLooker, nullptr,
          "Server-Sent Events: one 'changed' whenever there may be something to claim in the "
          "queue, or an operator may have moved the item.",
          "queue id", "Stream", ""},
    Route{"POST", "/v1/queues/configure", kQueueKeeper, configure_queue,
          "Make a queue, or change its limits for later items.", "QueueRequest", "QueueLimits",
          "422", Keeps::KeptOrAgain},
    Route{"POST", "/v1/queues/put", kWorker, put_item, "Put an item.", "PutRequest", "PutAnswer",
          "422", Keeps::ItselfOrUnsure},
    Route{"POST", "/v1/queues/claim", kWorker, claim_item,
          "Claim the next item; 'item' is null when there is none. With wait_ms the request is "
          "held open until there is one. A replayed claim with granted_ttl_ms 0 is over.",
          "ClaimRequest", "ClaimAnswer", "422", Keeps::ItselfOrUnsure},
    Route{"POST", "/v1/queues/start", kWorker, start_item, "The work of this claim has begun.",
          "ItemRequest", "ItemDone", "410 422", Keeps::KeptOrBound},
    Route{"POST", "/v1/queues/renew", kWorker, renew_item, "Prolong a claim. Never replayed.",
          "ItemRequest", "ItemDone", "410"},
    Route{"POST", "/v1/queues/checkpoint", kWorker, checkpoint_item,
          "Progress, and what the next claimant receives.", "ItemRequest", "ItemDone", "410 422",
          Keeps::KeptOrBound},
    Route{"POST", "/v1/queues/complete", kWorker, complete_item,
          "Result, state and follow-ups in one step. Again is done, too.", "ItemRequest",
          "ItemDone", "410 422", Keeps::KeptOrBound, done_again},
    Route{"POST", "/v1/queues/fail", kWorker, fail_item,
          "It failed, or is to be tried later. Again is done, too.", "ItemRequest", "ItemDone",
          "410 422", Keeps::KeptOrAgain},
    Route{"POST", "/v1/queues/release", kWorker, release_item,
          "Give it back, with no attempt used up. Again is done, too.", "ItemRequest", "ItemDone",
          "410 422", Keeps::KeptOrAgain},
    Route{"POST", "/v1/queues/park", kOperator, park_item, "Nobody claims it until further word.",
          "ItemOrder", "ItemDone", "410 422", Keeps::KeptOrAgain},
    Route{"POST", "/v1/queues/requeue", kOperator, requeue_item, "It is to be claimed again.",
          "ItemOrder", "ItemDone", "410 422", Keeps::KeptOrAgain},
    Route{"POST", "/v1/queues/reassign", kOperator, reassign_item,
          "Only the named owner may claim it for a while.", "ItemOrder", "ItemDone", "410 422",
          Keeps::KeptOrAgain},
    Route{"POST", "/v1/queues/cancel", kOperator, cancel_item,
          "It is not to be done; a worker that is at it is stopped.", "ItemOrder", "ItemDone",
          "410 422", Keeps::KeptOrAgain},
    Route{"POST", "/v1/queues/replay", kOperator, replay_item, "A finished item, once more.",
          "ItemOrder", "ItemDone", "410 422", Keeps::KeptOrAgain},
    Route{"POST", "/v1/queues/drop", kOperator, drop_item, "Remove it with all its contents.",
          "ItemOrder", "ItemDone", "410 422", Keeps::KeptOrAgain},
    Route{"POST", "/v1/queues/tend", kQueueKeeper, tend_queue,
          "The janitor's step: settle claims that ran out or stalled.", "QueueName", "Tended",
          "422", Keeps::Again},
    Route{"GET", "/v1/jobs", kJobLooker, list_jobs, "The jobs that the store knows.", "", "Jobs",
          ""},
    Route{"GET", "/v1/jobs/open", kJobLooker, list_open_jobs, "Jobs that have something open.", "",
          "JobNames", ""},
    Route{"GET", "/v1/jobs/now", kJobLooker, job_clock, "The clock that says what is due.", "",
          "JobClock", ""},
    Route{"GET", "/v1/jobs/slots", kJobLooker, list_slots,
          "What became of a job's slots, oldest first.", "job! limit", "Slots", ""},
    Route{"GET", "/v1/jobs/history", kJobLooker, job_history,
          "The job's record, its ended slots, and the ranges that were dropped.", "job! limit",
          "JobHistory", ""},
    Route{"GET", "/v1/jobs/explain", kJobLooker, explain_job,
          "What would run and what would be skipped after an outage from from_ms to to_ms, by the "
          "rule that the store knows.",
          "job! from_ms! to_ms! limit", "Explained", ""},
    Route{"GET", "/v1/jobs/watch", kJobLooker, nullptr,
          "Server-Sent Events: one 'changed' whenever something was asked for by hand.", "",
          "Stream", ""},
    Route{"POST", "/v1/jobs/decide", kScheduler, decide_jobs,
          "What to run and what to drop: one commit a job, each with its own result.",
          "DecideRequest", "Decisions", "422", Keeps::Again},
    Route{"POST", "/v1/jobs/keep", kScheduler, keep_job, "The assignment of due slots goes on.",
          "JobName", "Done", "410 422", Keeps::Kept},
    Route{"POST", "/v1/jobs/claim", kScheduler, claim_slot, "A lease was taken for the slot.",
          "SlotRequest", "Done", "410 422", Keeps::Kept},
    Route{"POST", "/v1/jobs/start", kScheduler, start_slot, "From here on it may have started.",
          "SlotRequest", "Done", "410 422", Keeps::Kept},
    Route{"POST", "/v1/jobs/running", kScheduler, running_slot, "It has started.", "SlotRequest",
          "Done", "410 422", Keeps::Kept},
    Route{"POST", "/v1/jobs/hand_back", kScheduler, hand_back_slot,
          "Claimed, and not to be started now.", "SlotRequest", "Done", "410 422", Keeps::Kept},
    Route{"POST", "/v1/jobs/end", kScheduler, end_slot, "How it ended.", "SlotRequest", "SlotEnd",
          "410 422", Keeps::Kept},
    Route{"POST", "/v1/jobs/skip", kScheduler, skip_slot, "A due slot that is not to run.",
          "SkipRequest", "SlotEnd", "410 422", Keeps::Kept},
    Route{"POST", "/v1/jobs/add", kScheduler, add_slot, "A slot that is asked for.", "AddRequest",
          "SlotAdded", "422 500", Keeps::Kept},
    Route{"POST", "/v1/jobs/trigger", kJobKeeper, trigger_job,
          "Run it now, by whichever scheduler comes first.", "JobRequest", "SlotAdded", "422 500",
          Keeps::Kept},
    Route{"POST", "/v1/jobs/pause", kJobKeeper, pause_job,
          "Its slots are recorded as skipped_paused.", "JobRequest", "Paused", "422", Keeps::Kept},
    Route{"POST", "/v1/jobs/resume", kJobKeeper, resume_job,
          "It goes on; what came due meanwhile is not run.", "JobRequest", "Paused", "422",
          Keeps::Kept},
    Route{"GET", "/v1/once", kOnceLooker, get_once, "What is known of a key of 'stint once'.",
          "key!", "OnceRecord", ""},
    Route{"POST", "/v1/once/start", kOnce, start_once, "Recorded before the command is run.",
          "OnceRequest", "Done", "410 422", Keeps::Kept},
    Route{"POST", "/v1/once/end", kOnce, end_once, "Recorded after it.", "OnceRequest", "Done",
          "410 422", Keeps::Kept},
    Route{"GET", "/metrics", kReader, nullptr, "Prometheus text.", "", "Text", ""},
    Route{"GET", "/healthz", 0, nullptr, "Whether the process answers.", "", "Health", ""},
    Route{"GET", "/readyz", 0, nullptr, "Whether it takes requests and reaches its store.", "",
          "Health", ""},
    Route{"GET", "/v1/openapi.json", 0, nullptr, "This document.", "", "Document", ""},
};

}  // namespace

std::span<const Route> routes() { return kRoutes; }

namespace {

// {"a":1} becomes {"a":1,"replayed":true,"age_ms":5}.
Answer replayed_answer(const api::Bound& bound) {
  auto kept = JsonValue::parse(bound.body);
  const bool says = kept && JsonFields(*kept).find("replayed") != nullptr;
  std::string body = bound.body;
  // Where it says so itself, it said "no" when it was given first.
  constexpr std::string_view kFirst = "\"replayed\":false";
  const std::size_t first = says ? body.find(kFirst) : body.npos;
  if (first != body.npos) body.replace(first, kFirst.size(), "\"replayed\":true");
  if (body.ends_with('}')) {
    body.pop_back();
    body += cat(body.size() > 1 ? "," : "", says ? "" : "\"replayed\":true,",
                "\"age_ms\":", bound.age.count(), "}");
  }
  return ok(std::move(body));
}

Keeps keeps_here(const Route& route, const Request& request) {
  const bool can =
      request.serve.backend.queue != nullptr && request.serve.backend.queue->keeps_answers();
  switch (route.keeps) {
    case Keeps::KeptOrBound: return can ? Keeps::Kept : Keeps::Bound;
    case Keeps::KeptOrAgain: return can ? Keeps::Kept : Keeps::Again;
    case Keeps::ItselfOrUnsure: return can ? Keeps::Itself : Keeps::Unsure;
    case Keeps::Kept:
    case Keeps::Itself:
    case Keeps::Bound:
    case Keeps::Again:
    case Keeps::Unsure: break;
  }
  return route.keeps;
}

// The answer that is kept; empty: none is.
std::optional<Answer> kept_answer(const Route& route, const Request& request) {
  auto found = request.serve.backend.answers->find(*request.once);
  if (!found) return fault_answer(found.error());
  if (!found->before) return std::nullopt;
  if (found->body.empty()) {
    return fault_answer({Code::UnknownOutcome,
                         "this request was begun before, and how it ended was not kept: look "
                         "whether it was done"});
  }
  if (route.whole != nullptr) {
    auto whole = route.whole(request, std::move(found->body));
    if (!whole) return fault_answer(whole.error());
    found->body = std::move(*whole);
  }
  return replayed_answer(*found);
}

// Under its key it was done, or it was not: there is nothing in between.
Answer run_kept(const Route& route, Request& request) {
  if (auto before = kept_answer(route, request)) return std::move(*before);
  request.keeping = request.serve.backend.keeping(*request.once);
  Answer answer = route.run(request);
  if (answer.status == 200) return answer;
  // The same request may have been first, on another thread or server; or this one was done, and
  // the store's answer was lost. A look that shows nothing settles nothing.
  auto meanwhile = request.serve.backend.answers->find(*request.once);
  if (!meanwhile && api::is_once_mismatch(meanwhile.error())) {
    return fault_answer(meanwhile.error());
  }
  if (!meanwhile || meanwhile->body.empty()) return answer;
  return kept_answer(route, request).value_or(std::move(answer));
}

// What is not one commit.
Answer run_beside(const Route& route, Request& request, Keeps keeps) {
  api::KeptAnswers* answers = request.serve.backend.answers;
  auto bound = answers->bind(*request.once);
  if (!bound) return fault_answer(bound.error());
  if (bound->before && !bound->body.empty()) return replayed_answer(*bound);
  if (bound->before && (keeps == Keeps::Unsure || bound->done)) {
    return fault_answer({Code::UnknownOutcome,
                         "this request was begun before, and how it ended was not kept: look "
                         "whether it was done"});
  }
  const api::Once once = *request.once;
  Answer answer = route.run(request);
  const bool refused =
      answer.status == status_of(Code::Held) || answer.status == status_of(Code::Lost);
  if (keeps == Keeps::Again && bound->before && refused) {
    return fault_answer({Code::UnknownOutcome,
                         "this request was begun before, and how that ended was not kept; now it "
                         "is refused: look whether it was done"});
  }
  if (keeps == Keeps::Bound) {
    // A body that is wrong may be mended under the same key.
    if (answer.status == status_of(Code::Invalid) && !bound->before) (void)answers->forget(once);
    return answer;
  }
  // What was refused is decided anew. What cannot be forgotten now: the next time, the rule above
  // holds.
  if (answer.status == 200) {
    // Nobody is told what a repeat would not be told.
    auto kept = answers->keep(once, answer.body);
    if (kept && kept->before && !kept->body.empty()) return replayed_answer(*kept);
    if (!kept || kept->before) {
      return fault_answer({Code::UnknownOutcome,
                           "it was done, and its answer could not be kept for this idempotency "
                           "key: ask again with the same key"});
    }
  } else if (answer.status != status_of(Code::UnknownOutcome) && !bound->before) {
    // Not by a repeat: the first one may be keeping its answer in this moment.
    (void)answers->forget(once);
  }
  return answer;
}

}  // namespace

Answer run_route(const Route& route, Request& request) {
  const Keeps keeps = keeps_here(route, request);
  const bool nobody = !request.once || request.serve.backend.answers == nullptr;
  if (nobody || keeps == Keeps::Itself) return route.run(request);
  return keeps == Keeps::Kept ? run_kept(route, request) : run_beside(route, request, keeps);
}

Status check_query(const Route& route, const std::map<std::string, std::string>& query) {
  if (route.method != "GET") {
    if (query.empty()) return {};
    return invalid("this path takes a body and no query");
  }
  std::size_t known = 0;
  for (std::string_view name : split(route.takes, ' ')) {
    const bool must = name.ends_with('!');
    if (must) name.remove_suffix(1);
    const auto found = query.find(std::string(name));
    if (found != query.end()) ++known;
    if (must && (found == query.end() || found->second.empty())) {
      return invalid(cat(quoted(name), " is missing in the query"));
    }
  }
  if (known < query.size()) {
    return invalid(cat("the query may have: ", route.takes.empty() ? "nothing" : route.takes));
  }
  return {};
}

}  // namespace stint::server
