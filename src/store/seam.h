// The store seam: an ordered map of small records with compare-and-commit and timers.
//
// Everything that two runs share goes through this. All law lives above it: a store knows nothing
// of leases. A store is done when it passes tests/conformance.
//
// Keys are UTF-8 without NUL bytes. Thread safety: every method may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "base/timer.h"
#include "base/watch.h"

namespace stint::store {

// Changes with every change of a record's value; within one generation never used twice for one
// key, also after a removal (a restored store may repeat one). Zero: the record is absent. A touch
// does not change it.
using Version = std::uint64_t;

struct Entry {
  std::string key;
  std::string value;
  Version version = 0;
  Timer timer;
  bool present() const { return version != 0; }
};

struct Reading {
  std::vector<Entry> entries;          // in the order asked; absent ones with version 0
  std::optional<WallTime> store_wall;  // where the store has a wall clock
  std::optional<Nanos> store_time;  // its own clock, whatever it counts from; for comparing answers
};

enum class Expect { Any, Absent, Seen };  // Seen: `version`

struct Step {
  enum class Kind {
    Check,   // changes nothing
    Set,     // writes value and timer
    Touch,   // changes only the timer of a record that must be there
    Remove,  // removing an absent record is done, unless the expectation says otherwise
    Append,  // `key` is a prefix under which nothing else is written; the store gives the rest of
             // the key, opaque, sorting in commit order as readers see it
  };
  // Start: fires in ttl, counted from no earlier than the call of commit(). Extend: fires in ttl or
  // when it would have, whichever is later; REQUIRES demand Running (it would revive a fired
  // timer). Keep on an absent record, and Remove: no timer.
  enum class TimerOp { Keep, Stop, Start, Extend };

  Kind kind = Kind::Check;
  std::string key;
  Expect expect = Expect::Any;
  Version version = 0;
  // Judged by the store inside the commit, not by the reader.
  std::optional<TimerState> demand;
  std::string value;
  TimerOp timer = TimerOp::Keep;  // Set, Touch
  Millis ttl{0};                  // Start, Extend
};

enum class Sync {
  Durable,  // survives a power cut once acknowledged, where the store claims it
  Relaxed,  // may be lost with the machine, never reordered before an earlier commit
};

struct Committed {
  std::vector<Version> versions;  // one a step: what the record has now (0: absent, or appended)
  // Of the store; grows with every commit that set, appended or removed a record, or by itself.
  std::uint64_t revision = 0;
  std::optional<WallTime> store_wall;
  std::optional<Nanos> store_time;
  // What a Start or Extend really got, a step each, where that may differ from what was asked.
  std::vector<Millis> granted_ttl;
};

// Nothing was written. `step` is the first one whose expectation or demand did not hold.
struct Conflict {
  std::size_t step = 0;
};

using CommitAnswer = std::variant<Committed, Conflict>;

struct Capabilities {
  enum class ClockKind { Monotonic, Wall, TimersOnly };
  std::string name;
  ClockKind clock = ClockKind::Monotonic;
  Millis smallest_ttl{100};
  Millis ttl_grain{1};  // ttls are rounded up to a multiple of this
  Millis step{1};       // a timer fires at the latest this late, while the store is well
  bool failover_restarts_timers = false;
  bool durable = true;            // an acknowledged Durable commit survives kill -9 and a power cut
  bool failover_loses = false;    // a fail-over may lose one all the same
  bool relaxed_renewals = false;  // a renewal may go unsynced (only where a reboot is noticed)
  bool may_be_left = false;       // who ends may leave it to the kernel to close it
  std::string may_lose;           // in words, what a crash, a power cut or a fail-over can lose
  // The key of a record that the store itself sets, in one step with its coming back, whenever it
  // may have lost the end of what it had acknowledged; empty: it never does. Its value is the time
  // then, in milliseconds since 1970, in decimal digits. Who counts something that must not repeat
  // reads it with the count, checks its version in the commit, and goes on beyond.   G1
  std::string tail_record = {};
};

// Said once at opening, so that the service can record it.
struct Opening {
  bool created = false;
  // Set when running timers were carried over an unclean start with their full ttl: a name for this
  // event, unique in the store.
  std::optional<std::string> prolonged;
  // Opened on an operator's word although it is a copy of another store; refused to everybody else
  // until accept().
  bool copied = false;
};

// What a store says about its own settings and surroundings, for `stint doctor`.
struct Finding {
  enum class Level { Ok, Warn, Fail };
  Level level = Level::Ok;
  std::string check;  // "version", "durability" ...: one word
  std::string text;   // a sentence: what was found, and what to do about it
};

// What is under this prefix is checked by nearly every commit and written hardly ever. A store may
// let the writers wait for all who check, and so spare those a lock each.
constexpr std::string_view kHardlyWritten = "meta/";
inline bool hardly_written(std::string_view key) { return key.starts_with(kHardlyWritten); }

class Store {
 public:
  static constexpr std::size_t kMaxKeyBytes = 1024;
  static constexpr std::size_t kMaxValueBytes = 4096;
  static constexpr std::size_t kMaxSteps = 64;
  // An expectation other than Any counts one, a demand counts one.
  static constexpr std::size_t kMaxConditions = 120;

  virtual ~Store() = default;

  virtual const Capabilities& capabilities() const = 0;
  virtual const Opening& opening() const = 0;

  virtual Result<Reading> read(const std::vector<std::string>& keys) = 0;

  // Up to `limit` records whose key begins with `prefix` and is greater than `after` (empty: from
  // the start), in key order; backwards, those less than `after` (empty: from the end), last first.
  // `after` need not exist, nor begin with the prefix.
  struct ScanRange {
    std::string prefix;
    std::string after;
    std::size_t limit = 100;
    bool backwards = false;
  };
  virtual Result<Reading> scan(const ScanRange& range) = 0;

  // All or nothing. Code::UnknownOutcome: sent, no answer; Code::Invalid: a key or value is too
  // large. REQUIRES: at most kMaxSteps steps; a key at most once among the writing steps.
  virtual Result<CommitAnswer> commit(const std::vector<Step>& steps, Sync sync) = 0;

  // Wakes after a commit that set, removed or appended there; a touch is no change. `key` is a
  // record's, or the prefix of appended ones. Registered when it returns: register, then read, then
  // sleep.
  virtual Result<std::unique_ptr<Watch>> watch(std::string_view key) = 0;

  // Asks the store about itself; nothing by default.
  virtual Result<std::vector<Finding>> examine() { return std::vector<Finding>(); }

  // Ends the state that Opening::copied tells of. Nothing to do for most stores.
  virtual Status accept() { return {}; }

  // About how many appended records stand under the prefix: a store may count the numbers that it
  // gave instead of the records.
  virtual Result<std::uint64_t> appended(const std::string& prefix) = 0;

  // The present revision, to be compared with one that was seen before.
  virtual Result<std::uint64_t> revision() = 0;
};

}  // namespace stint::store
