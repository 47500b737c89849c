#include "app/here.h"

#include "base/text.h"
#include "os/clock.h"
#include "os/files.h"
#include "os/filesystem.h"
#include "os/lock_look.h"
#include "os/sandbox.h"
#include "store/arrival.h"

namespace stint::app {
namespace {

using HereLevel = store::Finding::Level;

store::Finding proc_finding(const os::Sandbox& sandbox) {
  const bool ended = sandbox.cgroup || sandbox.subreaper;
  const HereLevel without = ended ? HereLevel::Warn : HereLevel::Fail;
  const char* rest = sandbox.cgroup ? "; the cgroup does instead"
                     : ended
                         ? "; a run asks the kernel for each of its children instead"
                         : ", and there is neither cgroup nor subreaper: no run is started here";
  switch (sandbox.proc) {
    case os::Proc::Ours:
      return {HereLevel::Ok, "proc", "/proc shows the processes of this sandbox"};
    case os::Proc::Foreign:
      return {without, "proc",
              cat("/proc shows the processes of another sandbox, and counts as missing", rest)};
    case os::Proc::Missing: break;
  }
  return {without, "proc", cat("/proc is missing or cannot be read", rest)};
}

store::Finding clock_finding() {
  const os::ClockName name = os::clock_name();
  if (name.boot_id.empty()) {
    return {HereLevel::Warn, "clock",
            "the boot has no name here: sqlite: and log: stores take the clock for the one that "
            "they know, and prolong nothing after a reboot"};
  }
  return {HereLevel::Ok, "clock",
          cat("boot-time clock of boot ", name.boot_id,
              name.time_namespace.empty() ? "; the time namespace cannot be seen"
                                          : cat(", ", name.time_namespace))};
}

// Of a folder that is not there: of the one in which it would be made.
std::string nearest(std::string folder) {
  while (!os::exists(folder) && folder != "/" && folder != ".") folder = os::parent_of(folder);
  return folder;
}

void tell_folder(std::string_view check, const std::string& wanted,
                 const std::function<void(const store::Finding&)>& tell) {
  const std::string folder = nearest(os::without_detours(os::absolute(wanted)));
  const auto kind = os::filesystem_of(folder);
  const Status suits = store::check_filesystem("sqlite", folder);
  const std::string where = cat(printable(folder), kind ? cat(" (", *kind, ")") : "");
  if (!suits) {
    tell({HereLevel::Warn, std::string(check), suits.error().message});
  } else if (const Status held = os::locks_hold_in(folder); !held) {
    tell({HereLevel::Warn, std::string(check), cat(where, ": ", held.error().message)});
  } else {
    tell({HereLevel::Ok, std::string(check),
          cat(where, ": locks hold; sqlite:, log: and dir: can be kept here")});
  }
}

}  // namespace

void examine_here(const std::string& state_directory,
                  const std::function<void(const store::Finding&)>& tell) {
  const os::Sandbox sandbox = os::look_at_sandbox();
  const auto told = [&](bool offered, const char* check, const char* with, const char* without) {
    tell({offered ? HereLevel::Ok : HereLevel::Warn, check, offered ? with : without});
  };
  tell(proc_finding(sandbox));
  told(sandbox.cgroup, "cgroup", "a run's tree gets a cgroup, and the kernel ends it in one step",
       "no cgroup of our own can be made: a run's tree is walked until nothing lives");
  told(sandbox.pidfd, "pidfd", "processes are named by descriptors",
       "pidfds are missing or forbidden: processes are known by their numbers and start times");
  told(sandbox.subreaper, "subreaper", "what leaves a run's tree comes back to it",
       "no subreaper: what leaves a run's tree is out of sight, unless a cgroup has it");
  tell(clock_finding());
  tell_folder("state", state_directory, tell);
  tell_folder("folder", ".", tell);
}

}  // namespace stint::app
