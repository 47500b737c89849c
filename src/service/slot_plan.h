// From a decision of core/slots.h to the steps of one commit, and the ledger's lines that go with
// it. Shared by slot_service.cc, slot_steps.cc and slot_books.cc only.
#pragma once

#include <vector>

#include "base/text.h"
#include "service/once_records.h"
#include "service/records.h"
#include "service/slot_records.h"
#include "service/slot_service.h"

namespace stint::service {

// How long others leave what is due to the scheduler that decided it.
constexpr Millis kAssignment{10'000};
// So many ended slots of a job have a record; older ones go a few at a time.
constexpr std::uint64_t kKeptSlots = 10'000;
constexpr std::uint64_t kKeptRanges = 1000;
constexpr std::uint64_t kForgottenAtOnce = 40;
// Each conflict means that somebody else got on; this many in a row means that something is wrong.
constexpr int kMostSlotTries = 1000;
constexpr int kMostSlotUnknowns = 3;

// The lease behind a slot, at one reading.
struct SlotService::LeaseLook {
  core::Record record;
  std::string resource;
  store::Version own = 0;
  store::Version alive = 0;
  store::Version cap = 0;
  bool held_with(Token token) const {
    return record.own && record.own->token == token && core::state_of(record) == core::State::Held;
  }
  // That it is still as it was seen, judged by the store inside the commit.
  void expect(std::vector<store::Step>& steps) const;
};

struct SlotService::JobLook {
  std::string name;
  std::optional<core::Job> job;
  store::Version version = 0;
  bool assigned = false;  // the record's timer runs
  WallTime now{};
  std::optional<LeaseLook> lease;  // of the active slot
};

struct SlotService::Plan {
  std::vector<store::Step> steps;
  bool more = false;  // core::JobDecision::more
};

store::Step set_record(std::string key, std::string value, store::Version seen);
void add_ended(std::vector<store::Step>& steps, const std::string& job,
               const core::EndedSlot& ended, WallTime now, bool again);
void add_range(std::vector<store::Step>& steps, const std::string& job, const api::RangeRow& row,
               WallTime now);
api::Event slot_event(std::string_view kind, const std::string& job, WallTime now);

// The body of a step's answer.
inline std::string step_done() { return R"({"done":true})"; }

inline Error job_too_busy(const std::string& job) {
  return unavailable(
      cat("the record of job ", quoted(job), " changes too fast to be committed to"));
}

}  // namespace stint::service
