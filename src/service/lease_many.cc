// Several verbs at once: planned one by one, committed together, answered one by one. What meets a
// conflict or an unknown outcome, and what is refused, goes the way of a single verb.
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

api::AskAnswer LeaseService::done_of(const api::Ask& ask, Planned& planned,
                                     const store::Committed& done) {
  committed(planned, done);
  if (const auto* bid = std::get_if<api::AcquireRequest>(&ask)) {
    return answer_of(*bid, std::move(planned.settled));
  }
  return answer_of(std::move(planned.settled));
}

std::vector<api::AskAnswer> LeaseService::many(const std::vector<api::Ask>& asks) {
  std::vector<api::AskAnswer> out;
  out.reserve(asks.size());
  if (many_commits_ == nullptr) {
    for (const api::Ask& ask : asks) out.push_back(one_by_one(ask));
    return out;
  }
  std::vector<std::optional<Planned>> plans(asks.size());
  std::vector<store::Proposal> proposals;
  std::vector<std::size_t> proposed;  // which ask each of them is
  for (std::size_t i = 0; i < asks.size(); ++i) {
    auto verb = verb_of(asks[i]);
    if (!verb) continue;
    const api::Once* once = once_of(asks[i]);
    auto planned =
        plan(resource_of(asks[i]), *verb, once == nullptr ? grip_of(asks[i]) : nullptr, once);
    if (!planned || planned->steps.empty()) continue;
    const store::Sync sync = sync_of(planned->settled.decision.change);
    proposals.push_back({planned->steps, sync});
    proposed.push_back(i);
    plans[i] = std::move(*planned);
  }
  const auto answers = many_commits_->commit_many(proposals);
  std::size_t next = 0;
  for (std::size_t i = 0; i < asks.size(); ++i) {
    if (!plans[i]) {
      out.push_back(one_by_one(asks[i]));
      continue;
    }
    const Result<store::CommitAnswer>& answer = answers[next++];
    if (!answer && answer.error().code == Code::UnknownOutcome) {
      // Who renews counts from before it asked, and asks again by itself.
      out.push_back(std::holds_alternative<api::Renewal>(asks[i])
                        ? api::AskAnswer(Result<api::HoldAnswer>(answer.error()))
                        : still_unknown(one_by_one(asks[i]), resource_of(asks[i])));
      continue;
    }
    const auto* done = answer ? std::get_if<store::Committed>(&*answer) : nullptr;
    out.push_back(done != nullptr ? done_of(asks[i], *plans[i], *done) : one_by_one(asks[i]));
  }
  return out;
}

}  // namespace stint::service
