// The verbs on leases.
#include <algorithm>

#include "base/sha256.h"
#include "base/text.h"
#include "server/routes.h"

namespace stint::server {
namespace {

constexpr std::size_t kMostListed = 16;     // resources in one acquire
constexpr std::size_t kMostRenewed = 1000;  // leases in one renew

Result<api::Grip> read_grip(Request& request, JsonFields& in) {
  auto resource = read_resource(request, in);
  if (!resource) return resource.error();
  in.require("token");
  in.require("claim");
  const Token token = in.token("token");
  const std::string label = in.text("owner");
  const JsonValue* hint = in.find("hint");
  if (auto ok = in.done(); !ok) return ok.error();
  auto claim = Claim::parse(in.text("claim"));
  if (!claim) return std::move(claim.error()).during("reading 'claim'");
  api::Grip grip{*resource, token, *claim, std::nullopt, std::nullopt};
  if (!label.empty()) {
    auto owner = request.caller.owner(label);
    if (!owner) return owner.error();
    grip.owner = *owner;
  }
  if (hint != nullptr) {
    JsonFields inner(*hint);
    grip.hint = api::Hint{.own = static_cast<std::uint64_t>(inner.number("own")),
                          .alive = static_cast<std::uint64_t>(inner.number("alive")),
                          .plain = inner.flag("plain", true)};
    inner.refuse_others();
    if (auto ok = inner.done(); !ok) return std::move(ok.error()).during("reading 'hint'");
  }
  grip.once = request.once;
  return grip;
}

using HoldVerb = Result<api::HoldAnswer> (*)(api::Leases&, const api::Grip&, JsonFields&);

Answer hold(Request& request, std::span<const std::string_view> further, HoldVerb verb,
            void (Metrics::*counted)(const api::HoldAnswer&)) {
  JsonFields in(request.body);
  auto grip = read_grip(request, in);
  if (!grip) return fault_answer(grip.error());
  for (const std::string_view name : further) in.find(name);
  in.refuse_others();
  if (auto fine = in.done(); !fine) return fault_answer(fine.error());
  auto answer = verb(request.leases(), *grip, in);
  if (auto fine = in.done(); !fine) return fault_answer(fine.error());
  if (!answer) return fault_answer(answer.error());
  (request.metrics.*counted)(*answer);
  return hold_answer(*answer, grip->token);
}

Result<api::OrderRequest> read_order(Request& request, JsonFields& in) {
  auto resource = read_resource(request, in);
  if (!resource) return resource.error();
  for (const char* name : {"token", "why"}) in.require(name);
  api::OrderRequest order{.resource = *resource,
                          .expected = in.token("token"),
                          .why = in.text("why"),
                          .by = in.text("by"),
                          .once = request.once};
  // Who ordered it is who has the key; what they call themselves stands behind it.
  if (request.caller.key) {
    const std::string mine = request.caller.name();
    order.by = order.by.empty() || order.by == mine ? mine : cat(mine, "/", order.by);
  }
  if (order.by.empty()) in.fail("'by' is missing");
  if (auto ok = in.done(); !ok) return ok.error();
  return order;
}

Answer order_answer(Request& request, const Result<api::HoldAnswer>& answer, Token expected) {
  if (!answer) return fault_answer(answer.error());
  request.metrics.ordered(*answer);
  return hold_answer(*answer, expected);
}

// Of several renewals each has its own answer.
Answer renew_many(Request& request, const JsonValue::List& leases, Millis ttl) {
  if (leases.empty() || leases.size() > kMostRenewed) {
    return fault_answer(invalid(cat("'leases' has 1 to ", kMostRenewed, " entries")));
  }
  std::vector<api::Grip> grips;
  for (const JsonValue& one : leases) {
    JsonFields in(one);
    auto grip = read_grip(request, in);
    if (!grip) return fault_answer(grip.error());
    in.refuse_others();
    if (auto fine = in.done(); !fine) return fault_answer(fine.error());
    grip->once.reset();
    grips.push_back(std::move(*grip));
  }
  std::string out = "{\"results\":[";
  const auto answers = request.leases().renew_many(grips, ttl);
  for (std::size_t i = 0; i < grips.size(); ++i) {
    if (answers[i]) request.metrics.renewed(*answers[i]);
    const Answer answer =
        answers[i] ? hold_answer(*answers[i], grips[i].token) : fault_answer(answers[i].error());
    out += cat(i == 0 ? "" : ",", answer.body);
  }
  return ok(out + "]}");
}

}  // namespace

Claim make_claim(const Request& request) {
  if (request.once_key.empty()) return Claim::make(*request.serve.random);
  const std::string made =
      to_hex(sha256(cat("claim\n", request.caller.bearer, "\n", request.once_key)));
  return *Claim::parse(std::string_view(made).substr(0, 32));
}

namespace {

// Sorted: whoever takes several takes them in the same order.
Result<std::vector<ResourceName>> reachable(const Request& request,
                                            const std::vector<std::string>& names) {
  std::vector<ResourceName> resources;
  for (const std::string& name : names) {
    auto resource = ResourceName::parse(name);
    if (!resource) return resource.error();
    if (!request.caller.reaches(name)) return out_of_reach(request.caller, name);
    resources.push_back(std::move(*resource));
  }
  std::sort(resources.begin(), resources.end());
  if (std::adjacent_find(resources.begin(), resources.end()) != resources.end()) {
    return invalid("'resources' names one twice");
  }
  return resources;
}

}  // namespace

Result<Bid> read_bid(Request& request) {
  JsonFields in(request.body);
  std::vector<std::string> names = in.texts("resources");
  const bool listed = in.find("resources") != nullptr;
  if (listed == (in.find("resource") != nullptr)) {
    in.fail("'resource' or 'resources': exactly one of them");
  }
  if (!listed) names = {in.text("resource")};
  if (names.empty() || names.size() > kMostListed) {
    in.fail(cat("'resources' has 1 to ", kMostListed, " entries"));
  }
  in.require("ttl_ms");
  const core::Terms terms{.ttl = in.millis("ttl_ms"),
                          .max_hold = in.millis("max_hold_ms"),
                          .at_least = in.millis("at_least_ms"),
                          .cooldown = in.millis("cooldown_ms")};
  const std::string label = in.text("owner");
  const std::string claim_text = in.text("claim");
  const std::string retake_text = in.text("retake");
  const std::string note = in.text("note");
  const bool counts = in.flag("count_refusal", true);
  const Millis wait = in.millis("wait_ms");
  in.refuse_others();
  if (label.empty() && !request.caller.key) in.fail("'owner' is missing");
  if (auto ok = in.done(); !ok) return ok.error();
  if (wait > request.serve.limits.longest_wait) {
    return invalid(cat("'wait_ms' is at most ", request.serve.limits.longest_wait.count()));
  }
  auto resources = reachable(request, names);
  if (!resources) return resources.error();
  auto owner = request.caller.owner(label.empty() ? "run" : label);
  if (!owner) return owner.error();
  auto claim = claim_text.empty() ? Result<Claim>(make_claim(request)) : Claim::parse(claim_text);
  if (!claim) return std::move(claim.error()).during("reading 'claim'");
  std::optional<Claim> retake;
  if (!retake_text.empty()) {
    auto present = Claim::parse(retake_text);
    if (!present) return std::move(present.error()).during("reading 'retake'");
    retake = *present;
  }
  api::AcquireRequest first{.resource = resources->front(),
                            .owner = *owner,
                            .claim = *claim,
                            .terms = terms,
                            .note = note,
                            .retake = retake,
                            .count_refusal = counts,
                            .once = request.once};
  return Bid{.resources = std::move(*resources),
             .listed = listed,
             .first = std::move(first),
             .made = claim_text.empty() ? std::optional(*claim) : std::nullopt,
             .wait = wait};
}

namespace {

// Several resources, all or nothing. Under an idempotency key each grant's answer is kept by
// itself: what a try that did not get all of them has kept is forgotten again. The key itself is
// bound to the request once all are had: under it no other list is taken.
class ListTaking {
 public:
  ListTaking(Request& request, const Bid& bid) : request_(request), bid_(bid) {}

  Result<std::vector<api::AcquireAnswer>> take() {
    constexpr int kMostTries = 4;
    if (auto used = bound(&api::KeptAnswers::find); !used) return used.error();
    for (int tries = 0; tries < kMostTries; ++tries) {
      auto answers = once_through();
      if (!answers || std::holds_alternative<api::Refused>(answers->front())) {
        give_back();
        return answers;
      }
      auto stands = replayed_ones_stand();
      if (stands && *stands) {
        auto mine = bound(&api::KeptAnswers::bind);
        if (mine) return answers;
        // What was told before stays kept.
        if (!all_replayed()) give_back();
        return mine.error();
      }
      give_back();
      if (!stands) return stands.error();
    }
    return unavailable("others ask with the same idempotency key: ask again");
  }

 private:
  struct Taken {
    api::Grip grip;
    std::optional<api::Once> once;
    bool replayed = false;
    api::AcquireAnswer answer;
  };

  // Errors: the key is another request's.
  Status bound(Result<api::Bound> (api::KeptAnswers::*how)(const api::Once&)) {
    api::KeptAnswers* answers = request_.serve.backend.answers;
    if (!request_.once || answers == nullptr) return {};
    auto known = (answers->*how)(*request_.once);
    if (!known) return known.error();
    return {};
  }

  Result<std::vector<api::AcquireAnswer>> once_through() {
    std::vector<api::AcquireAnswer> answers;
    for (const ResourceName& resource : bid_.resources) {
      api::AcquireRequest one = bid_.first;
      one.resource = resource;
      if (one.once) one.once->key = to_hex(sha256(cat(one.once->key, "\n", resource.text())));
      auto answer = request_.leases().acquire(one);
      if (!answer) return answer.error();
      if (std::holds_alternative<api::Refused>(*answer)) {
        return std::vector<api::AcquireAnswer>{std::move(*answer)};
      }
      const auto& granted = std::get<api::Granted>(*answer);
      taken_.push_back({{resource, granted.lease.token, one.claim, one.owner, granted.hint},
                        one.once,
                        granted.replayed,
                        *answer});
      answers.push_back(std::move(*answer));
    }
    return answers;
  }

  bool all_replayed() const {
    return std::ranges::all_of(taken_, [](const Taken& one) { return one.replayed; });
  }

  // All of them replayed: the answer of the first time. Some: of a try that did not get all of
  // them, and may have ended since.
  Result<bool> replayed_ones_stand() {
    if (all_replayed()) return true;
    for (const Taken& one : taken_) {
      if (!one.replayed) continue;
      auto answer = request_.leases().check(one.grip);
      if (!answer) return answer.error();
      if (!std::holds_alternative<api::Held>(*answer)) return false;
    }
    return true;
  }

  void give_back() {
    for (const Taken& one : taken_) {
      // First: a kept answer must not outlive what it tells of.
      const bool kept = one.once && request_.serve.backend.answers != nullptr &&
                        !request_.serve.backend.answers->forget(*one.once);
      if (one.replayed) continue;  // not this try's own: somebody may work under it
      // It was granted, though nobody was told: it is counted as the ledger has it.
      request_.metrics.acquired(one.answer);
      // What cannot be released runs out by itself.
      const auto done = kept ? Result<api::HoldAnswer>(unavailable("its answer is still kept"))
                             : request_.leases().release(one.grip, false);
      if (done) request_.metrics.released(*done);
    }
    taken_.clear();
  }

  Request& request_;
  const Bid& bid_;
  std::vector<Taken> taken_;
};

}  // namespace

Result<std::vector<api::AcquireAnswer>> take_bid(Request& request, const Bid& bid) {
  if (bid.listed) {
    const auto alone = request.lists.enter(bid.first.claim);
    if (!alone) {
      // One of them may be who asks now: what becomes of that is not known here.
      return Error{Code::UnknownOutcome,
                   "this list is being taken under the same claim, and how that ends is not known "
                   "yet: ask again with the same claim"};
    }
    return ListTaking(request, bid).take();
  }
  auto answer = request.leases().acquire(bid.first);
  if (!answer) return answer.error();
  return std::vector<api::AcquireAnswer>{std::move(*answer)};
}

Answer bid_answer(Request& request, const Bid& bid,
                  const Result<std::vector<api::AcquireAnswer>>& answers) {
  if (!answers) return fault_answer(answers.error());
  for (const auto& one : *answers) request.metrics.acquired(one);
  if (!bid.listed || std::holds_alternative<api::Refused>(answers->front())) {
    return acquire_answer(answers->front(), bid.made, request.clock.wall());
  }
  std::string out = "{\"leases\":[";
  for (const auto& one : *answers) {
    out += cat(&one == answers->data() ? "" : ",",
               api::to_json(std::get<api::Granted>(one), bid.made));
  }
  return ok(out + "]}");
}

namespace {

Result<std::optional<api::Ask>> read_held_ask(Request& request, bool renewal) {
  JsonFields in(request.body);
  if (in.find("leases") != nullptr || in.flag("fence")) return std::optional<api::Ask>();
  auto grip = read_grip(request, in);
  if (!grip) return grip.error();
  if (renewal) in.require("ttl_ms");
  const Millis ttl = renewal ? in.millis("ttl_ms") : Millis(0);
  if (!renewal) in.find("fence");
  in.refuse_others();
  if (auto fine = in.done(); !fine) return fine.error();
  if (!renewal) return std::optional<api::Ask>(api::Ending{std::move(*grip)});
  grip->once.reset();
  return std::optional<api::Ask>(api::Renewal{std::move(*grip), ttl});
}

}  // namespace

Result<std::optional<api::Ask>> read_ask(Request& request, std::string_view path) {
  if (path == "/v1/renew" || path == "/v1/release") {
    return read_held_ask(request, path == "/v1/renew");
  }
  return std::optional<api::Ask>();
}

Answer ask_answer(Request& request, const api::Ask& ask, const api::AskAnswer& answer) {
  if (const auto* bid = std::get_if<Result<api::AcquireAnswer>>(&answer)) {
    if (!*bid) return fault_answer(bid->error());
    request.metrics.acquired(**bid);
    return acquire_answer(**bid, request.made, request.clock.wall());
  }
  const auto& held = std::get<Result<api::HoldAnswer>>(answer);
  if (!held) return fault_answer(held.error());
  if (const auto* renewal = std::get_if<api::Renewal>(&ask)) {
    request.metrics.renewed(*held);
    return hold_answer(*held, renewal->grip.token);
  }
  request.metrics.released(*held);
  return hold_answer(*held, std::get<api::Ending>(ask).grip.token);
}

Answer acquire(Request& request) {
  auto bid = read_bid(request);
  if (!bid) return fault_answer(bid.error());
  return bid_answer(request, *bid, take_bid(request, *bid));
}

Answer renew(Request& request) {
  // Never replayed: an old answer would prolong nothing.
  request.once.reset();
  JsonFields outer(request.body);
  if (const JsonValue* many = outer.find("leases")) {
    outer.require("ttl_ms");
    const Millis ttl = outer.millis("ttl_ms");
    outer.refuse_others();
    if (many->if_list() == nullptr) outer.fail("'leases' is not a list");
    if (auto fine = outer.done(); !fine) return fault_answer(fine.error());
    return renew_many(request, *many->if_list(), ttl);
  }
  outer.require("ttl_ms");
  if (auto fine = outer.done(); !fine) return fault_answer(fine.error());
  constexpr std::array<std::string_view, 1> kFurther = {"ttl_ms"};
  return hold(
      request, kFurther,
      [](api::Leases& leases, const api::Grip& grip, JsonFields& in) {
        return leases.renew(grip, in.millis("ttl_ms"));
      },
      &Metrics::renewed);
}

Answer release(Request& request) {
  constexpr std::array<std::string_view, 1> kFurther = {"fence"};
  return hold(
      request, kFurther,
      [](api::Leases& leases, const api::Grip& grip, JsonFields& in) -> Result<api::HoldAnswer> {
        const bool fence = in.flag("fence");
        if (auto fine = in.done(); !fine) return fine.error();
        return leases.release(grip, fence);
      },
      &Metrics::released);
}

Answer stall(Request& request) {
  return hold(
      request, {},
      [](api::Leases& leases, const api::Grip& grip, JsonFields&) { return leases.stall(grip); },
      &Metrics::released);
}

Answer check(Request& request) {
  request.once.reset();
  return hold(
      request, {},
      [](api::Leases& leases, const api::Grip& grip, JsonFields&) { return leases.check(grip); },
      &Metrics::other_hold);
}

Answer progress(Request& request) {
  constexpr std::array<std::string_view, 1> kFurther = {"marker"};
  return hold(
      request, kFurther,
      [](api::Leases& leases, const api::Grip& grip, JsonFields& in) -> Result<api::HoldAnswer> {
        const std::string marker = in.text("marker");
        if (auto fine = in.done(); !fine) return fine.error();
        return leases.progress(grip, marker);
      },
      &Metrics::other_hold);
}

Answer transfer(Request& request) {
  JsonFields in(request.body);
  auto order = read_order(request, in);
  if (!order) return fault_answer(order.error());
  in.require("to");
  const Owner to = in.owner("to");
  const Millis ttl = in.millis("ttl_ms");
  in.refuse_others();
  if (auto fine = in.done(); !fine) return fault_answer(fine.error());
  return order_answer(request, request.leases().transfer(*order, to, ttl), order->expected);
}

Answer revoke(Request& request) {
  JsonFields in(request.body);
  auto order = read_order(request, in);
  if (!order) return fault_answer(order.error());
  const std::string word = in.text("reason");
  const auto reason =
      word.empty() ? std::optional(core::Reason::Revoked) : core::parse_reason(word);
  const bool known = reason == core::Reason::Revoked || reason == core::Reason::Cancelled ||
                     reason == core::Reason::Stalled;
  if (!known) in.fail("'reason' is revoked, cancelled or stalled");
  in.refuse_others();
  if (auto fine = in.done(); !fine) return fault_answer(fine.error());
  return order_answer(request, request.leases().revoke(*order, *reason), order->expected);
}

Answer forget(Request& request) {
  JsonFields in(request.body);
  auto resource = read_resource(request, in);
  if (!resource) return fault_answer(resource.error());
  in.refuse_others();
  if (auto fine = in.done(); !fine) return fault_answer(fine.error());
  auto floor =
      request.keeping ? request.keeping->forget(*resource) : request.leases().forget(*resource);
  if (!floor) return fault_answer(floor.error());
  return ok(cat("{\"floor\":", floor->number(), "}"));
}

}  // namespace stint::server
