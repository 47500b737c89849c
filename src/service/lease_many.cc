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

api::AskAnswer LeaseService::told_of(const api::Ask& ask, Settled settled) {
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
// transaction serve all of them.
std::vector<std::optional<LeaseService::Planned>> LeaseService::plan_many(
    const std::vector<api::Ask>& asks) {
  std::vector<std::optional<Planned>> plans(asks.size());
  std::vector<std::optional<core::Verb>> verbs(asks.size());
  std::vector<std::string> keys;
  std::vector<Wanted> wanted;
  for (std::size_t i = 0; i < asks.size(); ++i) {
    auto verb = verb_of(asks[i]);
    if (!verb) continue;
    verbs[i] = std::move(*verb);
    const api::Once* const once = once_of(asks[i]);
    const api::Grip* const grip = once == nullptr ? grip_of(asks[i]) : nullptr;
    if (auto assumed = grip != nullptr ? assume(*grip) : std::nullopt) {
      auto planned = plan_on(std::move(*assumed), *verbs[i], once);
      // Only what was read can say no.
      if (planned && !planned->steps.empty()) {
        plans[i] = std::move(*planned);
        continue;
      }
    }
    wanted.push_back({i, keys.size()});
    for (std::string& key : look_keys(resource_of(asks[i]), further_of(*verbs[i]), once)) {
      keys.push_back(std::move(key));
    }
  }
  if (wanted.empty()) return plans;
  const auto reading = store_.read(keys);
  if (!reading) return plans;
  for (const auto& [i, first] : wanted) {
    const api::Once* const once = once_of(asks[i]);
    auto snapshot = snapshot_of(resource_of(asks[i]), further_of(*verbs[i]), once, *reading, first);
    if (!snapshot) continue;
    auto planned = plan_on(std::move(*snapshot), *verbs[i], once);
    if (planned) plans[i] = std::move(*planned);
  }
  return plans;
}

void LeaseService::many(const std::vector<api::Ask>& asks, const Tell& tell) {
  if (many_commits_ == nullptr) {
    for (std::size_t i = 0; i < asks.size(); ++i) tell(i, one_by_one(asks[i]));
    return;
  }
  auto plans = plan_many(asks);
  std::vector<std::size_t> single;
  std::vector<std::size_t> proposed;
  std::vector<store::Proposal> proposals;
  for (std::size_t i = 0; i < asks.size(); ++i) {
    if (!plans[i]) {
      single.push_back(i);
    } else if (plans[i]->steps.empty()) {
      tell(i, told_of(asks[i], std::move(plans[i]->settled)));
    } else {
      proposed.push_back(i);
      proposals.push_back({std::move(plans[i]->steps), sync_of(plans[i]->settled.decision.change)});
    }
  }
  std::vector<Result<store::CommitAnswer>> answers;
  if (!proposals.empty()) answers = many_commits_->commit_many(proposals);
  remember_newest(plans, proposed, answers);
  for (std::size_t next = 0; next < proposed.size(); ++next) {
    const std::size_t i = proposed[next];
    plans[i]->steps = std::move(proposals[next].steps);
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
    committed(*plans[i], *done);
    tell(i, told_of(asks[i], std::move(plans[i]->settled)));
  }
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
