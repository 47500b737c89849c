// Scheduled slots: what schedulers, runners and people ask of the store about jobs. Implemented by
// service/ on a store, and by client/ over HTTP.
//
// Answers are values; faults are Errors; Code::UnknownOutcome: sent, no answer. Thread safety: any
// thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/leases.h"
#include "base/watch.h"
#include "core/slots.h"

namespace stint::api {

struct DecideAsk {
  const core::JobRule* rule = nullptr;
  bool held_back = false;  // the asker had no free place for what is due
};

struct Decided {
  bool config_differs = false;
  bool mine = false;  // the due slots are the asker's to start
  bool schedule_changed = false;
  WallTime now{};  // by which it was decided
  core::Job job;   // as it stands after
  std::vector<core::EndedSlot> ended;
  std::vector<core::EndedSlot> retried;
  std::vector<core::SlotRange> dropped;
};

// What a runner shows at each step: the slot, and the lease that was taken for it.   G8
struct SlotProof {
  std::string job;
  WallTime at{};
  int attempt = 1;
  std::string scheduler;
  Owner owner;
  Grip grip;
};

enum class StepAnswer {
  Done,
  Gone,  // the slot is another's or has ended, or the lease is lost: nothing was changed
};

struct EndAnswer {
  StepAnswer step = StepAnswer::Gone;
  core::SlotState state = core::SlotState::Lost;  // as recorded
  bool again = false;                             // it is due again, as a further attempt
};

// A due slot that is not to run, and who is in the way.
struct SlotSkip {
  std::string job;
  WallTime at{};
  int attempt = 1;
  std::string scheduler;
  core::SlotState why = core::SlotState::SkippedHeld;
  std::optional<Lease> by;  // SkippedHeld becomes SkippedOverlap if that is the job's own last run
};

struct SlotAdded {
  enum class What { Added, Open, Ended, ConfigDiffers };
  What what = What::Added;
  WallTime at{};
  core::Job job;
  std::optional<core::EndedSlot> ended;  // Ended
};

// Dropped slots, with the schedule that they were of.
struct RangeRow {
  core::SlotRange range;
  std::string schedule;
  std::string tz;
};

struct JobHistory {
  std::optional<core::Job> job;        // empty: the store does not know it
  std::vector<core::EndedSlot> ended;  // newest first
  std::vector<RangeRow> ranges;        // newest first
};

struct NamedJob {
  std::string name;
  core::Job job;
};

// One line of `stint slots`.
struct SlotView {
  std::string job;
  core::Slot slot;
  core::SlotState state = core::SlotState::Due;
  std::string owner;
  std::string resource;
  Token token;
  std::optional<WallTime> started_at;
  std::optional<WallTime> ended_at;
  std::optional<int> exit_code;
  std::string cause;
};

// What would become of a job's slots after an outage.
struct Outage {
  WallTime from{};
  WallTime to{};
};
struct Foretold {
  std::vector<SlotView> slots;  // oldest first; those that would run are Due
  std::uint64_t would_run = 0;
  std::uint64_t left_out = 0;  // beyond the limit, the oldest
};

// `stint once KEY`.
struct OnceRecord {
  enum class State { None, Started, Done, Failed };
  State state = State::None;
  Owner owner;
  Token token;
  std::optional<WallTime> started_at;
  std::optional<WallTime> ended_at;
  std::optional<int> exit_code;
};

class Slots {
 public:
  virtual ~Slots() = default;

  // By the clock that says what is due.
  virtual Result<WallTime> now() = 0;
  // Whether that is the machine's own clock, which others may not share.
  virtual bool own_clock() const = 0;

  // One answer an ask. Each job's decision is one commit on its record.
  virtual std::vector<Result<Decided>> decide(const std::vector<DecideAsk>& asks,
                                              const std::string& scheduler) = 0;
  // The assignment goes on. NOT an error: it has run out, or there is none.
  virtual Status keep(const std::string& job) = 0;
  // The names of jobs that have something open.
  virtual Result<std::vector<std::string>> open_jobs() = 0;
  // Every job that the store knows, in the order of their names.
  virtual Result<std::vector<NamedJob>> jobs() = 0;

  // Each is one commit, fenced by the lease's token; done again, it is Done.
  virtual Result<StepAnswer> claim(const SlotProof& proof) = 0;
  virtual Result<StepAnswer> start(const SlotProof& proof) = 0;  // durable
  virtual Result<StepAnswer> running(const SlotProof& proof) = 0;
  virtual Result<StepAnswer> hand_back(const SlotProof& proof) = 0;
  // A lease that was superseded makes it Lost, whatever it says.
  virtual Result<EndAnswer> end(const SlotProof& proof, const core::SlotEnd& end,
                                const core::JobRule& rule) = 0;
  virtual Result<EndAnswer> skip(const SlotSkip& skip) = 0;

  // `at` empty: now, by hand, for whichever scheduler comes first (with `scheduler` empty).
  virtual Result<SlotAdded> add(const core::JobRule& rule, std::optional<core::Slot> slot,
                                const std::string& scheduler) = 0;
  // `by`: who says so. Again is no change.
  virtual Status pause(const core::JobRule& rule, const std::string& by) = 0;
  virtual Status resume(const core::JobRule& rule, const std::string& by) = 0;
  virtual Result<JobHistory> history(const std::string& job, std::size_t limit) = 0;
  // Wakes when something was asked for by hand.
  virtual Result<std::unique_ptr<Watch>> watch() = 0;

  virtual Result<OnceRecord> once(const std::string& key) = 0;
  // Fenced by the lease on the key. Gone: the lease is lost, or it stands as done.
  virtual Result<StepAnswer> once_start(const std::string& key, const Grip& grip,
                                        const Owner& owner) = 0;
  virtual Result<StepAnswer> once_end(const std::string& key, const Grip& grip, int exit_code) = 0;
};

// The lease that `stint once KEY` takes.
inline std::string once_resource(const std::string& key) { return "once/" + key; }

}  // namespace stint::api
