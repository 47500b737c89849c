// `run`: take the leases, do the work under them, give them back. The whole of it, without a word
// on where the leases live or how it is told to people.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/events.h"
#include "api/leases.h"
#include "holder/sealing.h"
#include "holder/supervisor.h"
#include "holder/taking.h"

namespace stint::holder {

// A lease that an ancestor of this process holds (STINT_HELD).
struct Ancestral {
  ResourceName resource;
  Generation generation;
  Token token;
  Claim claim;
};

struct RunRequest {
  std::vector<ResourceName> resources;
  std::vector<ResourceName> others;  // --or: instead of `resources`, the first that is free
  Owner owner;
  core::Terms terms;
  core::HoldSettings settings;
  HeldPolicy held;
  std::string note;
  std::vector<std::string> command;
  std::optional<Millis> progress_timeout;
  bool progress_on_output = false;
  bool restart = false;
  std::string on_lost;  // a shell command, told what happened by its environment
  std::vector<Ancestral> ancestral;
  // Another store was named than the one that the ancestors' environment names: what they hold in
  // theirs is not what this run asks for.
  bool elsewhere = false;
  bool unsafe_tree = false;  // goes on also where the tree cannot be ended for certain
  bool record_skip = true;   // false: the caller records that it was waved off
  // Signals that are not for the work, once it runs; before that they end the run. May be empty.
  std::function<bool(int)> keeps_signal = {};
};

// What the caller provides.
struct RunHooks {
  // What is to be done before the work starts, in this order; may be none. The steps may take long:
  // the leases are renewed meanwhile.
  std::function<Result<std::vector<SealStep>>(const Taken&)> seals;
  // The child's whole environment; called for each start.
  std::function<Result<std::vector<std::string>>(const Taken&, MonoTime deadline)> environment;
  // The child is being started. May be empty.
  std::function<void()> started = {};
  // The work has ended, or was lost; the leases are not given back yet. May be empty.
  std::function<void(const Taken&, const RunEnd&)> ended = {};
  // The lease was lost, and is acquired anew. May be empty.
  std::function<void(const RunEnd&)> restarting = {};
  std::function<void(MonoTime deadline)> deadline_moved;
  std::function<void(const std::string&)> say;
  std::function<void(const api::Refused&)> waiting;
  std::vector<std::string> temporary = {};  // files that go with the work, also if we are killed
};

struct RunAnswer {
  std::optional<WavedOff> waved_off;
  std::optional<int> interrupted;  // by this signal, before anything was started
  RunEnd end;
  bool released = false;
};

// Errors: Code::Lost if an ancestor's lease that it would re-use is gone; Code::Failed, with no
// lease taken, where the work could not be ended for certain.   G7
Result<RunAnswer> run(api::Leases& leases, api::Events& events, const Clock& clock, Random& random,
                      os::Signals& signals, const RunRequest& request, const RunHooks& hooks);

}  // namespace stint::holder
