// Several verbs at once: planned one by one, committed together, answered one by one. What meets a
// conflict or an unknown outcome, and what is refused, goes the way of a single verb.
#include <algorithm>

#include "service/lease_service.h"
#include "service/lease_snapshot.h"

namespace stint::service {
namespace {

const ResourceName& resource_of(const api::Ask& ask) {
  if (const auto* bid = std::get_if<api::AcquireRequest>(&ask)) return bid->resource;
  if (const auto* renewal = std::get_if<api::Renewal>(&ask)) return renewal->grip.resource;
  return std::get<api::Ending>(ask).grip.resource;
}

const api::Grip* grip_of(const api::Ask& ask) {
  if (const auto* renewal = std::get_if<api::Renewal>(&ask)) return &renewal->grip;
  if (const auto* ending = std::get_if<api::Ending>(&ask)) return &ending->grip;
  return nullptr;
}

const api::Once* once_of(const api::Ask& ask) {
  if (const auto* bid = std::get_if<api::AcquireRequest>(&ask))
    return bid->once ? &*bid->once : nullptr;
  if (const auto* ending = std::get_if<api::Ending>(&ask)) {
    return ending->grip.once ? &*ending->grip.once : nullptr;
  }
  return nullptr;  // a renewal is never replayed
}

// What may have been done already stays unknown if the question that settles it fails, and if it
// shows another's grant: that may have come after ours was ended.
api::AskAnswer still_unknown(api::AskAnswer answer, const ResourceName& resource) {
  std::visit(
      [](auto& one) {
        if (!one) one.error().code = Code::UnknownOutcome;
      },
      answer);
  const auto* held = std::get_if<Result<api::HoldAnswer>>(&answer);
  if (held != nullptr && *held && std::holds_alternative<api::Lost>(**held)) {
    return Result<api::HoldAnswer>(lost_from_sight(resource));
  }
  return answer;
}

}  // namespace

Result<core::Verb> LeaseService::verb_of(const api::Ask& ask) const {
  if (const auto* bid = std::get_if<api::AcquireRequest>(&ask)) return verb_of(*bid);
  if (const auto* renewal = std::get_if<api::Renewal>(&ask)) {
    if (auto ok = check_ttl(renewal->ttl); !ok) return ok.error();
    return core::Verb(core::Renew{proof_of(renewal->grip), renewal->ttl});
  }
  return core::Verb(core::Release{proof_of(std::get<api::Ending>(ask).grip), false});
}

api::AskAnswer LeaseService::one_by_one(const api::Ask& ask) {
  if (const auto* bid = std::get_if<api::AcquireRequest>(&ask)) return acquire(*bid);
  if (const auto* renewal = std::get_if<api::Renewal>(&ask))
    return renew(renewal->grip, renewal->ttl);
  return release(std::get<api::Ending>(ask).grip, false);
}

api::AskAnswer LeaseService::told_of(const api::Ask& ask, Settled&& settled) {
  if (const auto* bid = std::get_if<api::AcquireRequest>(&ask)) {
    return answer_of(*bid, std::move(settled));
  }
  return answer_of(std::move(settled));
}

namespace {

// One of several, and where its records stand among those that are read for all.
struct Wanted {
  std::size_t ask = 0;
  std::size_t first = 0;
};

// The larger of both, which stands for both; nothing: they are of two generations.
std::optional<Anchor> joined(const Anchor& one, const Anchor& other) {
  if (!(one.generation == other.generation)) return std::nullopt;
  return Anchor{one.generation, std::max(one.revision, other.revision),
                std::max(one.highest, other.highest)};
}

}  // namespace

// What must be read is read at once: looking whether the store is in place, a lock and a
// transaction serve all of them. The plans are in the order of `some`.
std::vector<std::optional<LeaseService::Planned>> LeaseService::plan_many(
    const std::vector<api::Ask>& asks, const std::vector<std::size_t>& some) {
  std::vector<std::optional<Planned>> plans(some.size());
  std::vector<std::optional<core::Verb>> verbs(some.size());
  std::vector<std::string> keys;
  std::vector<Wanted> wanted;
  for (std::size_t i = 0; i < some.size(); ++i) {
    const api::Ask& ask = asks[some[i]];
    auto verb = verb_of(ask);
    if (!verb) continue;
    verbs[i] = std::move(*verb);
    const api::Once* const once = once_of(ask);
    const api::Grip* const grip = once == nullptr ? grip_of(ask) : nullptr;
    Planned& plan = plans[i].emplace();
    if (grip != nullptr && assume(*grip, plan.settled.after)) {
      const auto planned = decide_on(plan, *verbs[i], once);
      // Only what was read can say no.
      if (planned && !plan.steps.empty()) continue;
    }
    plans[i].reset();
    wanted.push_back({i, keys.size()});
    for (std::string& key : look_keys(resource_of(ask), further_of(*verbs[i]), once)) {
      keys.push_back(std::move(key));
    }
  }
  if (wanted.empty()) return plans;
  const auto reading = store_.read(keys);
  if (!reading) return plans;
  for (const auto& [i, first] : wanted) {
    const api::Ask& ask = asks[some[i]];
    const api::Once* const once = once_of(ask);
    Planned& plan = plans[i].emplace();
    const auto seen = take_snapshot(resource_of(ask), further_of(*verbs[i]), once, *reading, first,
                                    plan.settled.after);
    if (!seen || !decide_on(plan, *verbs[i], once)) plans[i].reset();
  }
  return plans;
}

// Releases need no sync anywhere: they do not wait for that of the grants, and the grants see what
// they have freed.
void LeaseService::many(const std::vector<api::Ask>& asks, const Tell& tell, const Pause& pause) {
  if (many_commits_ == nullptr) {
    for (std::size_t i = 0; i < asks.size(); ++i) tell(i, one_by_one(asks[i]));
    return;
  }
  const bool renews_at_once = store_.capabilities().relaxed_renewals;
  std::vector<std::size_t> at_once;
  std::vector<std::size_t> synced;
  for (std::size_t i = 0; i < asks.size(); ++i) {
    const bool quick = std::holds_alternative<api::Ending>(asks[i]) ||
                       (renews_at_once && std::holds_alternative<api::Renewal>(asks[i]));
    (quick ? at_once : synced).push_back(i);
  }
  if (!at_once.empty()) many_together(asks, at_once, tell, {.before = [] {}, .beside = pause});
  if (!synced.empty()) many_together(asks, synced, tell, {.before = pause, .beside = [] {}});
}

// Whoever asks for something that no timer holds back is not refused, and is not looked at any
// closer. The same goes for who holds what he says, as far as is known here.
std::vector<std::size_t> LeaseService::perhaps_refused(const std::vector<api::Ask>& asks,
                                                       std::size_t first) {
  std::vector<std::size_t> out;
  std::vector<std::size_t> bids;
  std::vector<std::string> keys;
  for (std::size_t i = first; i < asks.size(); ++i) {
    if (const auto* bid = std::get_if<api::AcquireRequest>(&asks[i])) {
      bids.push_back(i);
      for (auto* const key : {alive_key, rest_key, cool_key}) {
        keys.push_back(key(bid->resource.text()));
      }
    } else if (Snapshot known; !assume(*grip_of(asks[i]), known)) {
      out.push_back(i);
    }
  }
  if (bids.empty()) return out;
  const auto reading = store_.read(keys);
  if (!reading) return out;
  const std::size_t each = keys.size() / bids.size();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t bid = bids[i / each];
    if (reading->entries[i].timer.state != TimerState::Running) continue;
    if (out.empty() || out.back() != bid) out.push_back(bid);
  }
  return out;
}

void LeaseService::look(const std::vector<api::Ask>& asks, std::size_t first, const Tell& tell) {
  const std::vector<std::size_t> some = perhaps_refused(asks, first);
  auto plans = plan_many(asks, some);
  for (std::size_t i = 0; i < some.size(); ++i) {
    if (!plans[i] || !plans[i]->standing.empty() || !plans[i]->steps.empty()) continue;
    tell(some[i], told_of(asks[some[i]], std::move(plans[i]->settled)));
  }
}

void LeaseService::many_together(const std::vector<api::Ask>& asks,
                                 const std::vector<std::size_t>& some, const Tell& tell,
                                 const Pauses& pauses) {
  auto plans = plan_many(asks, some);
  std::vector<std::size_t> single;
  std::vector<std::size_t> proposed;
  std::vector<store::Proposal> proposals;
  proposals.reserve(some.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    if (!plans[i] || !plans[i]->standing.empty()) {
      single.push_back(some[i]);
    } else if (plans[i]->steps.empty()) {
      tell(some[i], told_of(asks[some[i]], std::move(plans[i]->settled)));
    } else {
      proposed.push_back(i);
      proposals.push_back({std::move(plans[i]->steps), sync_of(plans[i]->settled.decision.change)});
    }
  }
  pauses.before();
  std::vector<Result<store::CommitAnswer>> answers;
  if (!proposals.empty()) answers = many_commits_->commit_many(proposals, pauses.beside);
  remember_newest(plans, proposed, answers);
  for (std::size_t next = 0; next < proposed.size(); ++next) {
    Planned& plan = *plans[proposed[next]];
    const std::size_t i = some[proposed[next]];
    plan.steps = std::move(proposals[next].steps);
    const Result<store::CommitAnswer>& answer = answers[next];
    if (!answer && answer.error().code == Code::UnknownOutcome) {
      // Who renews counts from before it asked, and asks again by itself.
      tell(i, std::holds_alternative<api::Renewal>(asks[i])
                  ? api::AskAnswer(Result<api::HoldAnswer>(answer.error()))
                  : still_unknown(one_by_one(asks[i]), resource_of(asks[i])));
      continue;
    }
    const auto* done = answer ? std::get_if<store::Committed>(&*answer) : nullptr;
    if (done == nullptr) {
      single.push_back(i);
      continue;
    }
    committed(plan, *done);
    tell(i, told_of(asks[i], std::move(plan.settled)));
  }
  if (!single.empty()) pauses.beside();
  for (const std::size_t i : single) tell(i, one_by_one(asks[i]));
}

// One for all of them, before anybody is told: what stands for the newest stands for the others.
void LeaseService::remember_newest(const std::vector<std::optional<Planned>>& plans,
                                   const std::vector<std::size_t>& proposed,
                                   const std::vector<Result<store::CommitAnswer>>& answers) {
  std::optional<Anchor> newest;
  for (std::size_t next = 0; next < answers.size(); ++next) {
    const auto& answer = answers[next];
    const auto* done = answer ? std::get_if<store::Committed>(&*answer) : nullptr;
    const auto anchor =
        done != nullptr ? anchor_of(*plans[proposed[next]], *done) : std::optional<Anchor>();
    if (!anchor) continue;
    const auto both = newest ? joined(*newest, *anchor) : anchor;
    if (!both) anchors_->remember(*newest);
    newest = both ? both : anchor;
  }
  if (newest) anchors_->remember(*newest);
}

}  // namespace stint::service
