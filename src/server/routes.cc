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
constexpr api::Rights kAdmin = rights(Right::Admin);
constexpr api::Rights kLooker = static_cast<api::Rights>(Right::Read | Right::Acquire) |
                                rights(Right::Admit) | rights(Right::Operate);
constexpr api::Rights kAnybody = 0xff;

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
          "Reserve the lease for another owner; the token moves.", "OrderRequest", "Held",
          "410 422"},
    Route{"POST", "/v1/revoke", kOperator, revoke, "End the lease by order; the token moves.",
          "OrderRequest", "Held", "410 422"},
    Route{"POST", "/v1/forget", kOperator, forget, "Drop the record of a free resource.",
          "ForgetRequest", "Floor", "409"},
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
          "EventRequest", "Recorded", ""},
    Route{"GET", "/v1/watch", kLooker, nullptr,
          "Server-Sent Events: one 'changed' whenever the resource (without one: the ledger) may "
          "have "
          "changed.",
          "resource", "Stream", ""},
    Route{"GET", "/v1/store", kAnybody, store_facts, "What stands behind this server.", "", "Store",
          ""},
    Route{"GET", "/v1/fences/word", kLooker, token_word,
          "The store's word on a resource's newest token.", "resource!", "TokenWord", ""},
    Route{"GET", "/v1/fences/sealed", kLooker, sealed_targets, "The targets sealed for a resource.",
          "resource!", "Targets", ""},
    Route{"POST", "/v1/fences/remember", static_cast<api::Rights>(Right::Acquire | Right::Admit),
          remember_targets, "Remember targets before they are sealed.", "RememberRequest",
          "FenceAnswer", "412 428"},
    Route{"POST", "/v1/fences/forget", kOperator, forget_target,
          "A target is no longer sealed for the resource.", "ForgetTargetRequest", "Forgotten", ""},
    Route{"POST", "/v1/fences/admit", kGuard, admit, "May a write with this token land?",
          "FenceRequest", "FenceAnswer", "409 412 428"},
    Route{"POST", "/v1/fences/seal", kGuard, seal, "Raise the fence without writing.",
          "FenceRequest", "FenceAnswer", "412 428"},
    Route{"GET", "/v1/fences", kLooker, get_fence, "The fence of a target.", "target!", "Fence",
          ""},
    Route{"POST", "/v1/fences/begin", kGuard, begin_act, "The intent of 'stint admit'.",
          "ActRequest", "FenceAnswer", "409 412 428"},
    Route{"POST", "/v1/fences/finish", kGuard, finish_act, "Its result.", "ActRequest",
          "FenceAnswer", "412 428"},
    Route{"GET", "/v1/fences/act", kLooker, get_act, "Intent and result of 'stint admit'.",
          "name! key!", "Act", ""},
    Route{"GET", "/v1/keys", kAdmin, list_keys, "The keys, without their secrets.", "", "Keys", ""},
    Route{"POST", "/v1/keys", kAdmin, create_key, "Make a key; its secret is told once.",
          "KeyRequest", "CreatedKey", ""},
    Route{"POST", "/v1/keys/revoke", kAdmin, revoke_key, "Revoke a key.", "RevokeKeyRequest", "Key",
          ""},
    Route{"GET", "/metrics", kReader, nullptr, "Prometheus text.", "", "Text", ""},
    Route{"GET", "/healthz", 0, nullptr, "Whether the process answers.", "", "Health", ""},
    Route{"GET", "/readyz", 0, nullptr, "Whether it takes requests and reaches its store.", "",
          "Health", ""},
    Route{"GET", "/v1/openapi.json", 0, nullptr, "This document.", "", "Document", ""},
};

}  // namespace

std::span<const Route> routes() { return kRoutes; }

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
