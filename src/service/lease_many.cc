// Several verbs at once: planned one by one, committed together, answered one by one. What meets a
// conflict or an unknown outcome, and what is refused, goes the way of a single verb.
#include <algorithm>
#include <unordered_set>

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
api::AskAnswer still_unknown(api::AskAnswer answer, const ResourceName& resource,
                             const std::optional<core::Ownership>& tried) {
  std::visit(
      [](auto& one) {
        if (!one) one.error().code = Code::UnknownOutcome;
      },
      answer);
  const auto* held = std::get_if<Result<api::HoldAnswer>>(&answer);
  if (held != nullptr && *held && std::holds_alternative<api::Lost>(**held)) {
    return Result<api::HoldAnswer>(lost_from_sight(resource));
  }
  const auto* got = std::get_if<Result<api::AcquireAnswer>>(&answer);
  const auto* refused = got != nullptr && *got ? std::get_if<api::Refused>(&**got) : nullptr;
  if (refused != nullptr && tried && went_elsewhere(tried->token, refused->lease.token)) {
    return Result<api::AcquireAnswer>(lost_from_sight(resource));
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

}  // namespace

// What must be read is read at once: looking whether the store is in place, a lock and a
// transaction serve all of them.
LeaseService::Plans LeaseService::plan_many(const std::vector<api::Ask>& asks, const Some& some,
                                            Assume assuming) {
  Plans plans{.of = std::vector<std::optional<Planned>>(some.size()), .wrong = {}};
  std::vector<std::optional<core::Verb>> verbs(some.size());
  std::vector<std::string> keys;
  std::vector<Wanted> wanted;
  const MonoTime now = clock_.mono();
  for (std::size_t i = 0; i < some.size(); ++i) {
    const api::Ask& ask = asks[some[i]];
    auto verb = verb_of(ask);
    if (!verb) {
      plans.wrong.push_back(some[i]);
      continue;
    }
    verbs[i] = std::move(*verb);
    const api::Once* const once = once_of(ask);
    const api::Grip* const grip = once == nullptr ? grip_of(ask) : nullptr;
    Planned& plan = plans.of[i].emplace();
    if (assuming == Assume::WhatIsKnown && grip != nullptr &&
        assume(*grip, plan.settled.after, now)) {
      const auto planned = decide_on(plan, *verbs[i], once);
      // Only what was read can say no.
      if (planned && !plan.steps.empty()) continue;
    }
    plans.of[i].reset();
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
    Planned& plan = plans.of[i].emplace();
    const auto seen = take_snapshot(resource_of(ask), further_of(*verbs[i]), once, *reading, first,
                                    plan.settled.after);
    if (seen && decide_on(plan, *verbs[i], once)) continue;
    plans.of[i].reset();
    if (!seen && seen.error().code == Code::Invalid) plans.wrong.push_back(some[i]);
  }
  return plans;
}

void LeaseService::many(const std::vector<api::Ask>& asks, const Tell& tell, const Pause& pause) {
  if (many_commits_ == nullptr) {
    for (std::size_t i = 0; i < asks.size(); ++i) tell(i, one_by_one(asks[i]));
    return;
  }
  for (std::size_t first = 0; first < asks.size(); first += kMostTogether) {
    many_together(asks, {first, std::min(asks.size(), first + kMostTogether)}, tell, pause);
  }
}

// Who is refused is told before anything is committed. Releases need no sync anywhere: they do not
// wait for that of the grants, and the grants see what they have freed.
void LeaseService::many_together(const std::vector<api::Ask>& asks, const Range& range,
                                 const Tell& tell, const Pause& pause) {
  const bool renews_at_once = store_.capabilities().relaxed_renewals;
  Some at_once;
  Some synced;
  std::unordered_set<std::string_view> freed;
  for (std::size_t i = range.first; i < range.end; ++i) {
    const bool ends = std::holds_alternative<api::Ending>(asks[i]);
    if (ends) freed.insert(resource_of(asks[i]).text());
    const bool quick = ends || (renews_at_once && std::holds_alternative<api::Renewal>(asks[i]));
    (quick ? at_once : synced).push_back(i);
  }
  const auto after_that = std::stable_partition(synced.begin(), synced.end(), [&](std::size_t i) {
    return !freed.contains(resource_of(asks[i]).text());
  });
  const Some last(after_that, synced.end());
  synced.erase(after_that, synced.end());

  Ready quick;
  Plans quick_plans = plan_many(asks, at_once, Assume::WhatIsKnown);
  sort_out(asks, at_once, quick_plans, tell, quick);
  Ready rest;
  Plans plans = plan_many(asks, synced, Assume::WhatIsKnown);
  sort_out(asks, synced, plans, tell, rest);
  carry_out(asks, quick, tell, pause);
  Plans last_plans = plan_many(asks, last, Assume::WhatIsKnown);
  sort_out(asks, last, last_plans, tell, rest);
  carry_out(asks, rest, tell, pause);
}

void LeaseService::look(const std::vector<api::Ask>& asks, std::size_t first, const Tell& tell) {
  Some all;
  for (std::size_t i = first; i < asks.size(); ++i) all.push_back(i);
  Plans plans = plan_many(asks, all, Assume::Nothing);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!plans.of[i] || !plans.of[i]->standing.empty() || !plans.of[i]->steps.empty()) continue;
    tell(all[i], told_of(asks[all[i]], std::move(plans.of[i]->settled)));
  }
  for (const std::size_t i : plans.wrong) tell(i, one_by_one(asks[i]));
}

void LeaseService::sort_out(const std::vector<api::Ask>& asks, const Some& some, Plans& plans,
                            const Tell& tell, Ready& ready) {
  for (const std::size_t i : plans.wrong) tell(i, one_by_one(asks[i]));
  for (std::size_t at = 0; at < some.size(); ++at) {
    const std::size_t i = some[at];
    std::optional<Planned>& plan = plans.of[at];
    if (!plan && std::ranges::find(plans.wrong, i) != plans.wrong.end()) continue;
    if (!plan || !plan->standing.empty()) {
      ready.single.push_back(i);
    } else if (plan->steps.empty()) {
      tell(i, told_of(asks[i], std::move(plan->settled)));
    } else {
      ready.proposals.push_back({std::move(plan->steps), sync_of(plan->settled.decision.change)});
      ready.of.emplace_back(i, &*plan);
    }
  }
}

void LeaseService::carry_out(const std::vector<api::Ask>& asks, Ready& ready, const Tell& tell,
                             const Pause& pause) {
  std::vector<Result<store::CommitAnswer>> answers;
  if (!ready.of.empty()) {
    pause();
    answers = many_commits_->commit_many(ready.proposals);
    remember_newest(ready, answers);
  }
  for (std::size_t at = 0; at < ready.of.size(); ++at) {
    const auto& [i, plan] = ready.of[at];
    plan->steps = std::move(ready.proposals[at].steps);
    const Result<store::CommitAnswer>& answer = answers[at];
    if (!answer && answer.error().code == Code::UnknownOutcome) {
      // Who renews counts from before it asked, and asks again by itself.
      if (std::holds_alternative<api::Renewal>(asks[i])) {
        tell(i, Result<api::HoldAnswer>(answer.error()));
      } else {
        pause();
        tell(i, still_unknown(one_by_one(asks[i]), resource_of(asks[i]),
                              plan->settled.decision.change.own));
      }
      continue;
    }
    const auto* done = answer ? std::get_if<store::Committed>(&*answer) : nullptr;
    if (done == nullptr) {
      ready.single.push_back(i);
      continue;
    }
    committed(*plan, *done);
    tell(i, told_of(asks[i], std::move(plan->settled)));
  }
  for (const std::size_t i : ready.single) {
    pause();
    tell(i, one_by_one(asks[i]));
  }
}

// One for all of them, before anybody is told: what stands for the newest stands for the others.
void LeaseService::remember_newest(const Ready& ready,
                                   const std::vector<Result<store::CommitAnswer>>& answers) {
  std::optional<Anchor> newest;
  for (std::size_t at = 0; at < answers.size(); ++at) {
    const auto& answer = answers[at];
    const auto* done = answer ? std::get_if<store::Committed>(&*answer) : nullptr;
    const auto anchor =
        done != nullptr ? anchor_of(*ready.of[at].second, *done) : std::optional<Anchor>();
    if (!anchor) continue;
    const bool same = newest && newest->generation == anchor->generation;
    if (newest && !same) anchors_->remember(*newest);
    newest = same ? joined(*newest, *anchor) : *anchor;
  }
  if (newest) anchors_->remember(*newest);
}

}  // namespace stint::service
