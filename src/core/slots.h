// The law of scheduled slots: which run, which are dropped, and how one that runs goes from step to
// step. Pure: no clock, no I/O; the caller commits what is decided here on the job's one record.
//
//   scheduled --decide--> due --claim--> claimed --start--> starting --> running --> ended
//       |                  ^  \             |                  |            |
//       +-> dropped        |   +-> skipped  +- lease gone      +- lease gone: nobody can know
//           (a range)      +----------------+                     -> lost; a further attempt only
//                                                                 if the job allows retries
//
// All that is open of a job (what is due, the one that is active, how far it has been decided)
// stands in ONE record, so that schedulers queue up behind each other at its version: the cap holds
// for all of them together, no slot is decided twice, none is left out.   G9
//
// Missed slots are found backwards from now, and those beyond the cap are counted by the calendar:
// an outage of a year, or a clock that says 1970 or ten years on, costs nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "base/time.h"
#include "core/cron.h"

namespace stint::core {

enum class SlotState {
  Due,       // decided to run; nobody has it yet
  Claimed,   // a lease was taken for it; nothing was started
  Starting,  // from here on it may have started
  Running,
  Ran,  // exit code 0
  Failed,
  SkippedOverlap,  // the job's own previous run was still going on
  SkippedHeld,     // another holds the resource
  SkippedStale,    // missed, and beyond max_backfill
  SkippedLate,     // beyond start_deadline
  SkippedPaused,
  SkippedLimit,  // held back by `concurrency` until a newer one came
  Quarantined,   // lost together with its scheduler twice
  Lost,          // may have run, or a part of it: nobody can know
};
std::string_view word(SlotState state);
std::optional<SlotState> parse_slot_state(std::string_view word);
bool has_ended(SlotState state);
bool is_skip(SlotState state);

// A job as its configuration has it.
struct JobRule {
  std::string name;
  std::string schedule;  // the text of the expression
  std::string tz;        // of the configuration; empty: UTC
  CronExpression expression;
  Zone zone;
  std::string digest;    // of schedule and tz
  WallTime loaded_at{};  // by the clock that says what is due
  std::size_t max_backfill = 1;
  bool newest_first = false;
  std::optional<Millis> start_deadline;
  bool waits = false;  // on_held: a slot waits for the one before instead of being skipped
  int retries = 0;
  Millis backoff{0};
};
constexpr std::size_t kMostBackfill = 24;
// One decision ends no more than this, so that it fits into one commit: all that may be missed, and
// the run that was active.
constexpr std::size_t kMostEnded = kMostBackfill + 1;

// What of a rule says how missed slots are treated; kept in the record for who has no configuration
// at hand: a page that explains an outage, and whoever finds that the run of a job of no file has
// run out. Nothing else is decided by it.
struct MissedPolicy {
  std::size_t max_backfill = 1;
  std::optional<Millis> start_deadline;
  bool waits = false;
  int retries = 0;
  Millis backoff{0};
  WallTime loaded_at{};  // of the configuration that it is from
};

struct Slot {
  WallTime at{};  // the instant at which it was due: its identity
  std::chrono::local_seconds nominal{};
  int attempt = 1;
  int crashes = 0;  // how often it was lost together with its scheduler
  bool backfill = false;
  bool manual = false;  // asked for by hand: no part of the schedule, no cap
  std::optional<WallTime> not_before = {};
};

struct ActiveSlot {
  Slot slot;
  SlotState state = SlotState::Claimed;
  Owner owner;
  std::string resource;
  Token token;
  std::optional<WallTime> started_at;
};

// Dropped slots: all of the schedule from `from` to `to`.
struct SlotRange {
  WallTime from{};
  WallTime to{};
  std::uint64_t count = 0;
  SlotState reason = SlotState::SkippedStale;
  std::string cause = {};
};

struct EndedSlot {
  Slot slot;
  SlotState state = SlotState::Ran;
  Owner owner;  // of the run; of an overlap or a held resource: who was in the way
  std::string resource;
  Token token;
  std::optional<WallTime> started_at = {};
  std::optional<WallTime> ended_at = {};
  std::optional<int> exit_code = {};
  std::string cause = {};
};

// The job's record.
struct Job {
  std::string schedule;
  std::string tz;
  std::string digest;
  WallTime loaded_at{};
  WallTime cursor{};      // every slot up to here is decided; never goes back
  WallTime decided_at{};  // by the decider's clock
  bool paused = false;
  std::vector<Slot> due;  // ascending
  std::string due_by;     // the scheduler that is to start them, as long as the record's timer runs
  std::optional<ActiveSlot> active;
  std::string last_resource;  // of the run that ended last
  Token last_token;
  std::optional<SlotRange> pause;        // the range that grows while it is paused
  std::optional<MissedPolicy> policy;    // empty: written by a version that did not keep it
  std::uint64_t rows = 0;                // slots that have a record of their own
  std::uint64_t ranges = 0;              // ranges of dropped ones that have one
  WallTime forgotten = WallTime::min();  // up to here such records may have been removed
};

// When a job is due.
struct Cadence {
  CronExpression expression;
  Zone zone;
};

// What a decider sees besides the record.
struct JobSight {
  WallTime now{};
  enum class Lease { None, Live, Gone };
  Lease active = Lease::None;  // of job.active: its lease is held with that token; or not any more
  bool assigned = false;       // the record's timer runs
  std::string scheduler = {};  // who asks
  bool held_back = false;      // it had no free place for what is due
  // Of the record, where the rule has another one. Empty: not known any more.
  std::optional<Cadence> before = {};
};

struct JobDecision {
  bool config_differs = false;  // a configuration that was loaded later counts: leave the job alone
  bool changed = false;         // `after` is to be committed
  bool assign = false;          // ... and the record's timer started anew
  bool mine = false;            // the due slots are the asker's to start
  bool schedule_changed = false;
  bool more = false;  // there was too much to end: decide again before anything else is done
  bool full = false;  // there is no room for another slot by hand
  Job after;
  std::vector<EndedSlot> ended;
  std::vector<EndedSlot> retried;  // attempts that were lost; the slot is due again
  std::vector<SlotRange> dropped;
  std::optional<SlotRange> outdated;  // dropped as well, of the schedule that the record had
};
JobDecision decide_job(const std::optional<Job>& before, const JobRule& rule,
                       const JobSight& sight);

// The slot to start next; empty: none is ready.
const Slot* next_due(const Job& job, bool newest_first, WallTime now);

// ---- steps of one slot, fenced by the token of the lease that was taken for it

struct SlotGrip {
  WallTime at{};
  int attempt = 1;
  std::string scheduler;
  Owner owner;
  std::string resource;
  Token token;
};
struct SlotEnd {
  SlotState state = SlotState::Ran;  // Ran, Failed or Lost
  std::optional<int> exit_code = {};
  std::string cause = {};
};

struct SlotStep {
  enum class What {
    Done,
    Before,  // this very step was made already
    Gone,    // the slot is another's, or has ended
  };
  What what = What::Gone;
  Job after;
  std::optional<EndedSlot> ended;  // the attempt's end
  bool again = false;              // ... and the slot is due again
};
SlotStep claim_slot(const Job& job, const SlotGrip& grip);
SlotStep start_slot(const Job& job, const SlotGrip& grip, WallTime now);
SlotStep run_slot(const Job& job, const SlotGrip& grip);
SlotStep end_slot(const Job& job, const SlotGrip& grip, const SlotEnd& end, const JobRule& rule,
                  WallTime now);
// A due slot that is not to run: whoever is in the way stands in the grip.
SlotStep skip_slot(const Job& job, const SlotGrip& grip, SlotState why, WallTime now);
// Claimed, but not to be started now: due again, for anybody. Also when it stands as starting: who
// shows the grip is the only one who could have started it, and says that it did not.   G9
SlotStep hand_back_slot(const Job& job, const SlotGrip& grip);

// Adds a slot by hand. One of the schedule's own moves the cursor, and what lies before it is
// dropped; any other instant leaves the schedule alone. Empty: it is open already. A rule with
// another schedule than the record's is refused: only schedulers change that.
std::optional<JobDecision> add_slot(const std::optional<Job>& before, const JobRule& rule,
                                    const JobSight& sight, Slot slot);

// ---- the schedule's slots

// How many times the expression fires in (after, until].
std::uint64_t count_times(const CronExpression& expression, const Zone& zone,
                          std::chrono::sys_seconds after, std::chrono::sys_seconds until);

inline WallTime wall_of(std::chrono::sys_seconds t) {
  return WallTime(std::chrono::duration_cast<Millis>(t.time_since_epoch()));
}
inline std::chrono::sys_seconds whole_seconds(WallTime t) {
  return std::chrono::sys_seconds(std::chrono::floor<std::chrono::seconds>(t.time_since_epoch()));
}

// "job@2026-11-15T06:45:00Z": stable over retries, machines and catch-up.
std::string slot_key(std::string_view job, WallTime at);

// The zone that a job goes by: the expression's own, else the configuration's, else UTC.
std::string zone_name(const CronExpression& expression, const std::string& tz);
// The digest of what decides when a job is due: the zone is the one that it goes by.
std::string schedule_digest(std::string_view schedule, std::string_view zone);

}  // namespace stint::core
