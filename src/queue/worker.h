// `work`: claim an item, mark it started, run the command under the claim, say what became of it;
// again until told to stop. The janitor runs inside: every claim settles first what has run out.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/leases.h"
#include "api/queue.h"
#include "base/random.h"
#include "core/holder_policy.h"
#include "holder/sealing.h"
#include "holder/supervisor.h"
#include "holder/taking.h"
#include "os/signals.h"

namespace stint::queue {

struct WorkRequest {
  core::QueueName queue;
  Owner owner;
  Millis ttl{0};  // of a claim; zero: the item's own
  bool reports = false;
  std::optional<ResourceName> with;  // a lease to be held for each item
  core::Terms terms;                 // of that
  std::optional<Millis> grace;       // between SIGTERM and SIGKILL
  std::vector<std::string> command;
  bool until_empty = false;       // stop when there is nothing to claim
  std::optional<Millis> give_up;  // stop when there was nothing for this long
  std::size_t most = 0;           // stop after so many items; zero: none
};

struct WorkHooks {
  // The payload in a file that the child can read; empty payloads too.
  std::function<Result<std::string>(const api::ClaimedItem&)> payload_file;
  std::function<Result<std::vector<std::string>>(const api::ClaimedItem&, const holder::Taken& with,
                                                 const std::string& payload_file,
                                                 MonoTime deadline)>
      environment;
  // What is to be done at the targets of `with` before the item is started; may be none.
  std::function<Result<std::vector<holder::SealStep>>(const holder::Taken& with)> seals = {};
  std::function<void(MonoTime deadline)> deadline_moved;
  std::function<void(const std::string&)> say;
  // After each item: what was counted on the way is written down.
  std::function<void()> item_over = {};
  std::vector<std::string> temporary = {};  // files that go with the work, also if we are killed
};

struct WorkEnd {
  std::size_t completed = 0;
  std::size_t failed = 0;  // and put off
  std::size_t lost = 0;
  int exec_error = 0;  // the command cannot be executed: the item was given back
  std::optional<int> interrupted;
};

// Errors: the queue is unknown, the store cannot be reached when the first item is asked for, or a
// target of `with` could not be sealed: that item was given back, and none was started under it.
Result<WorkEnd> work(api::Queue& queue, api::Leases& leases, const Clock& clock, Random& random,
                     os::Signals& signals, const WorkRequest& request, const WorkHooks& hooks);

}  // namespace stint::queue
