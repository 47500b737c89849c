// The guardian: a small process between the supervisor and the child. See tree.h.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace stint::os {

class Cgroup;
struct TreeOptions;

// Shared by supervisor and guardian; plain words, so that moving the deadline is no system call.
struct GuardianPage {
  std::atomic<std::int64_t> kill_at_ns = 0;  // written by the supervisor
  std::atomic<int> finished = 0;             // written by the supervisor: a normal end
  // Signals that the supervisor wants the work to get, a bit each. It then sends SIGCHLD.
  std::atomic<std::uint64_t> asked = 0;
  std::atomic<pid_t> child = 0;  // the rest: written by the guardian
  std::atomic<int> exec_error = 0;
  std::atomic<int> stopped = 0;
  std::atomic<int> wait_status = 0;
  std::atomic<int> exited = 0;
  std::atomic<int> empty = 0;
  std::atomic<int> overdue = 0;  // it ended the tree because the time was up
  std::atomic<int> apart = 0;    // it is in another pid namespace: its numbers are not our numbers
};

struct GuardianDuty {
  GuardianPage* page = nullptr;
  const TreeOptions* options = nullptr;
  pid_t supervisor = 0;
  int alive_fd = -1;  // closes when the supervisor dies
  int event_fd = -1;  // wakes the supervisor
  const Cgroup* group = nullptr;
  bool foreground = false;  // the child gets the terminal
};

[[noreturn]] void guardian_main(const GuardianDuty& duty);

}  // namespace stint::os
