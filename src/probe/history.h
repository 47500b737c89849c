// What clients saw, line by line: the raw material of the history checker.
//
// A file of JSON lines. Each operation writes an `invoke` line before it is sent and an `ok`,
// `fail` or `info` line after its answer; a line is one appending write, so that threads and
// processes share a file. Hence the rule that the checker rests on: if A's last line stands before
// B's invoke line, then A really ended before B began, whatever any clock says.
//
//   ok    it happened          fail  it did not, for the given cause
//   info  unknown: it may have happened, may not, or may happen later; so is an operation without
//         a second line (its client was killed)
//
// Thread safety: History is safe from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "base/time.h"

namespace stint::probe {

// Verbs are words, not an enum: a guard or a scheduler adds its own without touching this file.
namespace verbs {
constexpr std::string_view kAcquire = "acquire";
constexpr std::string_view kRenew = "renew";
constexpr std::string_view kRelease = "release";
constexpr std::string_view kTransfer = "transfer";
constexpr std::string_view kRevoke = "revoke";
constexpr std::string_view kCheck = "check";
constexpr std::string_view kExpired = "expired";  // seen at store_time: it had run out by itself
constexpr std::string_view kCrash = "crash";      // of the store, by the test; no resource
// At a target: `target` names it, `token` is the one shown.
constexpr std::string_view kSeal = "seal";
constexpr std::string_view kRead = "read";    // version, key: of the write that it shows
constexpr std::string_view kWrite = "write";  // key: its own; version: the one after it
// What the target itself shows at the end, one line for each write that stands in it.
constexpr std::string_view kLanded = "landed";
constexpr std::string_view kFence = "fence";  // the token of the fence, as seen
// Of a queue: key is the item, version its epoch.
constexpr std::string_view kClaim = "claim";
constexpr std::string_view kComplete = "complete";
// Of a schedule: key is the slot, version the attempt, cause one of started, completed, skipped,
// failed; `due`: it must have an end by now.
constexpr std::string_view kSlot = "slot";
constexpr std::string_view kDue = "due";
}  // namespace verbs

enum class Phase { Invoke, Ok, Fail, Info };

struct HistoryEvent {
  std::string op;  // the same on both lines of an operation
  Phase phase = Phase::Invoke;
  std::string client;
  std::string verb;
  std::string resource;
  // acquire ok: the token granted. Other verbs of a holder: the token shown. transfer, revoke: the
  // one that they moved to (ok).
  Token token;
  Token ends;         // the token whose grant this ends if it happens: transfer, revoke, re-take
  Token holder;       // acquire fail: who has it
  std::string cause;  // fail: of core::Cause, or "held", "resting"; acquire ok: the reason
  bool replayed = false;            // ok: an earlier call with the same claim or order had done it
  std::optional<Millis> ttl;        // ok: as granted
  std::optional<Millis> remaining;  // renew ok: what is left, as reported
  std::optional<Nanos> local;       // the client's monotonic clock
  std::optional<Nanos> store_time;  // the store's clock, in its answer
  std::string target;               // of a guard
  std::string key;                  // the idempotency key; item; slot
  std::uint64_t version = 0;        // the version after it; epoch; attempt
};

std::string to_line(const HistoryEvent& event);
Result<HistoryEvent> parse_line(std::string_view line);

class History {
 public:
  // `append` puts the line at the end of the file with one write; several processes may. `process`
  // is one that no other of them has.
  History(std::string process, std::function<void(const std::string& line)> append)
      : process_(std::move(process)), append_(std::move(append)) {}

  void write(const HistoryEvent& event);
  // An id that no other operation in the file has.
  std::string next_op(std::string_view client);

 private:
  const std::string process_;
  const std::function<void(const std::string&)> append_;
  std::atomic<std::uint64_t> last_op_{0};
};

// A last line that is cut off (its writer was killed in the middle) is left out.
Result<std::vector<HistoryEvent>> parse_history(std::string_view text);

}  // namespace stint::probe
