#include "probe/recorded_queue.h"

namespace stint::probe {

HistoryEvent Recorder::invoke(std::string_view verb, const std::string& resource,
                              const std::string& key, std::uint64_t version) {
  HistoryEvent event;
  event.op = history_.next_op(client_);
  event.client = client_;
  event.verb = verb;
  event.resource = resource;
  event.key = key;
  event.version = version;
  event.local = clock_.mono().time_since_epoch();
  history_.write(event);
  return event;
}

void Recorder::answered(HistoryEvent event, Phase phase, std::string cause) {
  event.phase = phase;
  event.cause = std::move(cause);
  event.local = clock_.mono().time_since_epoch();
  history_.write(event);
}

void Recorder::failed(HistoryEvent event, const Error& error) {
  const bool definite = error.code == Code::Invalid || error.code == Code::Denied;
  answered(std::move(event), definite ? Phase::Fail : Phase::Info, std::string(word(error.code)));
}

Result<api::ClaimAnswer> RecordedQueue::claim(const api::ClaimRequest& request) {
  HistoryEvent event = invoke(verbs::kClaim, request.queue.text(), "", 0);
  auto answer = queue_.claim(request);
  if (!answer) {
    failed(std::move(event), answer.error());
  } else if (const auto* claimed = std::get_if<api::ClaimedItem>(&*answer)) {
    event.key = claimed->item.id.text();
    event.version = claimed->item.item.epoch.number();
    event.replayed = claimed->replayed;
    answered(std::move(event), Phase::Ok, "");
  } else {
    answered(std::move(event), Phase::Fail, "empty");
  }
  return answer;
}

Result<api::ItemAnswer> RecordedQueue::complete(const api::Completion& completion) {
  const api::ItemRef& ref = completion.ref;
  HistoryEvent event =
      invoke(verbs::kComplete, ref.id.queue().text(), ref.id.text(), ref.epoch.number());
  auto answer = queue_.complete(completion);
  if (!answer) {
    failed(std::move(event), answer.error());
  } else if (const auto* done = std::get_if<api::ItemDone>(&*answer)) {
    event.replayed = done->repeated;
    answered(std::move(event), Phase::Ok, "");
  } else {
    answered(std::move(event), Phase::Fail,
             std::string(core::word(std::get<api::ItemLost>(*answer).cause)));
  }
  return answer;
}

namespace {

// One of the three ways in which a slot ends.
std::string end_of(core::SlotState state) {
  const std::string_view told = core::word(state);
  if (state == core::SlotState::Ran) return "completed";
  return told.starts_with("skipped") ? "skipped" : "failed";
}

}  // namespace

Result<api::Decided> RecordedSlots::decide(const core::JobRule& rule,
                                           const std::string& scheduler) {
  auto answers = slots_.decide({{.rule = &rule, .held_back = false}}, scheduler);
  auto& answer = answers.front();
  if (!answer) return std::move(answer);
  for (const core::EndedSlot& ended : answer->ended) {
    const std::string slot = core::slot_key(rule.name, ended.slot.at);
    answered(invoke(verbs::kDue, rule.name, slot, 0), Phase::Ok, "");
    answered(invoke(verbs::kSlot, rule.name, slot, static_cast<std::uint64_t>(ended.slot.attempt)),
             Phase::Ok, end_of(ended.state));
  }
  for (const core::Slot& slot : answer->job.due) {
    answered(invoke(verbs::kDue, rule.name, core::slot_key(rule.name, slot.at), 0), Phase::Ok, "");
  }
  return std::move(answer);
}

Result<api::StepAnswer> RecordedSlots::start(const api::SlotProof& proof) {
  HistoryEvent event = invoke(verbs::kSlot, proof.job, core::slot_key(proof.job, proof.at),
                              static_cast<std::uint64_t>(proof.attempt));
  auto answer = slots_.start(proof);
  if (!answer) {
    failed(std::move(event), answer.error());
  } else if (*answer == api::StepAnswer::Done) {
    answered(std::move(event), Phase::Ok, "started");
  } else {
    answered(std::move(event), Phase::Fail, "gone");
  }
  return answer;
}

Result<api::EndAnswer> RecordedSlots::end(const api::SlotProof& proof, const core::SlotEnd& end,
                                          const core::JobRule& rule) {
  HistoryEvent event = invoke(verbs::kSlot, proof.job, core::slot_key(proof.job, proof.at),
                              static_cast<std::uint64_t>(proof.attempt));
  auto answer = slots_.end(proof, end, rule);
  if (!answer) {
    failed(std::move(event), answer.error());
  } else if (answer->step == api::StepAnswer::Done && !answer->again) {
    answered(std::move(event), Phase::Ok, end_of(answer->state));
  } else {
    answered(std::move(event), Phase::Fail, answer->again ? "again" : "gone");
  }
  return answer;
}

}  // namespace stint::probe
