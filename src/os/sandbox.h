// The sandbox that we run in: what it offers to whoever has to see processes and to end them.
//
// Nothing is kept: after a fork it may be another pid namespace. Each fact is asked for where it is
// needed, and costs what stands beside it.
#pragma once

namespace stint::os {

enum class Proc {
  Ours,     // it shows the pid namespace that we are in
  Foreign,  // it shows another: its numbers name processes that are not what they seem
  Missing,  // nothing is mounted there, or it cannot be read
};

// A single readlink. A foreign /proc that gives us the number that we have here too is taken for
// ours: enough for words, not for signals.
Proc proc_at_a_glance();
// The truth: only numbers from a /proc that is `Ours` may be told to the kernel.
Proc look_at_proc();

// pidfd_open() and pidfd_send_signal(), neither missing (ENOSYS) nor forbidden (EPERM). Three
// calls.
bool pidfd_usable();

// Makes this process a subreaper: orphans below it become its children. A single call. It can be
// had since Linux 3.4, unless somebody forbids it.
bool become_subreaper();

// Makes a cgroup (v2) of our own, and removes it: milliseconds.
bool cgroup_usable();

// How much of a tree of processes can be seen, to end it. Where /proc is ours: one readlink.
enum class Sight {
  Whole,
  Top,   // our own children alone, as often as we look; orphans become such (or are in a cgroup)
  None,  // who detaches itself is lost
};
Sight sight_of_trees();

struct Sandbox {
  Proc proc = Proc::Missing;
  bool pidfd = false;
  bool subreaper = false;
  bool cgroup = false;
};
// All of it: for doctor.
Sandbox look_at_sandbox();

}  // namespace stint::os
