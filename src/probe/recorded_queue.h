// A worker of api::Queue, and a runner of api::Slots, that write down what they were told: the
// bridge from items and slots to the history (rules 11 and 16 of history_checker.h).
//
//   RecordedQueue worker(service, history, "w1", clock);
//   auto answer = worker.claim(request);
//
// In the history a queue or a job is the resource, an item or a slot the key. Thread safety: as
// what is below; one name for each thread.
#pragma once

#include <string>

#include "api/queue.h"
#include "api/slots.h"
#include "probe/history.h"

namespace stint::probe {

// What both share: the two lines of an operation.
class Recorder {
 public:
  Recorder(History& history, std::string client, const Clock& clock)
      : history_(history), client_(std::move(client)), clock_(clock) {}

 protected:
  HistoryEvent invoke(std::string_view verb, const std::string& resource, const std::string& key,
                      std::uint64_t version);
  void answered(HistoryEvent event, Phase phase, std::string cause);
  // A fault that is known to have come before the sending is a failure; every other is unknown.
  void failed(HistoryEvent event, const Error& error);

 private:
  History& history_;
  const std::string client_;
  const Clock& clock_;
};

class RecordedQueue : private Recorder {
 public:
  // All must outlive this.
  RecordedQueue(api::Queue& queue, History& history, std::string client, const Clock& clock)
      : Recorder(history, std::move(client), clock), queue_(queue) {}

  Result<api::ClaimAnswer> claim(const api::ClaimRequest& request);
  Result<api::ItemAnswer> complete(const api::Completion& completion);

 private:
  api::Queue& queue_;
};

class RecordedSlots : private Recorder {
 public:
  RecordedSlots(api::Slots& slots, History& history, std::string client, const Clock& clock)
      : Recorder(history, std::move(client), clock), slots_(slots) {}

  // What it decides that a slot has come to is an end of it; what it leaves open is due.
  Result<api::Decided> decide(const core::JobRule& rule, const std::string& scheduler);
  Result<api::StepAnswer> start(const api::SlotProof& proof);
  Result<api::EndAnswer> end(const api::SlotProof& proof, const core::SlotEnd& end,
                             const core::JobRule& rule);

 private:
  api::Slots& slots_;
};

}  // namespace stint::probe
