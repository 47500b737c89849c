// A command under leases, as every command that runs one does it: environment, seals, words, exit
// code.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/run_seals.h"
#include "cli/session.h"
#include "holder/run.h"

namespace stint::cli {

struct Work {
  holder::RunRequest request;
  SealPlan seals;
  bool tell_store = true;
  std::vector<std::pair<std::string, std::string>> env = {};  // for the command, besides
  std::vector<std::string> hidden = {};  // variables that the command is not to see
  // Before and after the seals, and around the command; each may be empty. An error of the first
  // two ends the run before anything was started.
  std::function<Status(const holder::Taken&)> first = {};
  std::function<Status(const holder::Taken&)> last = {};
  std::function<void()> started = {};
  std::function<void(const holder::Taken&, const holder::RunEnd&)> ended = {};
};

Result<holder::RunAnswer> do_work(Session& session, os::Signals& signals, app::Opened& opened,
                                  const Work& work);

// Of a lease that was lost: says so. 75.
int report_loss(Session& session, const holder::RunEnd& end);
// Says what went wrong, if anything did.
int exit_of(Session& session, const holder::RunRequest& request, const holder::RunEnd& end);

}  // namespace stint::cli
