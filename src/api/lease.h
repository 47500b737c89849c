// A lease as the outside sees it, and the answers of the verbs on it.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/names.h"
#include "base/time.h"
#include "core/lease.h"

namespace stint::api {

struct Lease {
  std::string resource;
  core::State state = core::State::Free;
  bool held = false;
  Owner owner;
  Token token;
  Generation generation;
  core::Reason reason = core::Reason::First;
  std::string by;
  std::string why;
  Millis ttl{0};
  std::optional<Millis> remaining;  // empty: unknown, or nothing to run out
  std::optional<WallTime> acquired_at;
  std::optional<WallTime> renewed_at;
  std::string note;
  std::string progress;
  std::optional<WallTime> progress_at;
};

// Where the records of a grant stood: spares a later verb the read. Never a proof.
struct Hint {
  std::uint64_t own = 0;
  std::uint64_t alive = 0;
  bool plain = true;  // the grant has only the lease's own timer
};

struct Granted {
  Lease lease;
  Hint hint;
  Millis granted_ttl{0};          // how long the holder may trust it, from before it asked
  bool replayed = false;          // an earlier grant to the same claim
  std::string previous_progress;  // of the holder before
  // In every answer: the clock by which the store judges (of a wall clock: as it is set), whatever
  // it counts from; for comparing answers. Empty: the store has none that can be read.
  std::optional<Nanos> store_time;
  // The targets that holders of the resource have sealed (api/fences.h): to be sealed again before
  // anything is read from them.
  std::vector<std::string> sealed = {};
  std::vector<std::string> sealing = {};  // those of them that are only about to be sealed
  // Of an answer that is given again: how long ago it was given first (api/once.h).
  std::optional<Millis> age = std::nullopt;
  // It was waited for at a server: it stands for a few seconds only, until its first renewal.
  bool provisional = false;
};

// Of UTF-8, in one line.
constexpr std::size_t kMostNoteBytes = 1024;

// Who, since when, until when, and what they are doing.
struct Refused {
  Lease lease;
  std::optional<Millis> retry_in;  // when it may be free, as far as the store can tell
};

struct Lost {
  core::Cause cause = core::Cause::Expired;
  Lease lease;  // as it stands now
  std::optional<Nanos> store_time = std::nullopt;
};

using AcquireAnswer = std::variant<Granted, Refused>;

struct Held {
  Lease lease;
  Millis granted_ttl{0};
  std::optional<Nanos> store_time;
  // An earlier call had ended or moved it already: store_time is of the look, not of that.
  bool replayed = false;
  std::optional<Millis> age = std::nullopt;  // as in Granted
};
using HoldAnswer = std::variant<Held, Lost>;

struct PastGrant {
  Token token;
  Owner owner;
  core::Reason reason = core::Reason::First;
  std::string by;
  std::string why;
  std::optional<WallTime> acquired_at;
  std::optional<WallTime> ended_at;
  std::optional<core::Reason> ended;  // empty: it still stands
};

}  // namespace stint::api
