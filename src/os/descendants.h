// The processes below a process, and ending them.
//
// Complete for whoever is a subreaper: an orphan of its tree becomes its own child, whatever
// session or group it moved to. Two ways:
//  - where /proc is ours and pidfds can be had, all of them are walked over (can_walk());
//  - elsewhere only our own children are signalled: who dies leaves us its own, so that a tree ends
//    from its top down. Their numbers stay theirs until we reap them, and nobody else can.   G7
//
// A process is dead when it is gone, or a zombie without any other thread: the first thread may end
// before the others.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace stint::os {

bool can_walk();

// Sends the signal to every living descendant of `root`. Returns how many living ones it saw. Only
// where can_walk().
std::size_t signal_descendants(pid_t root, int signal);
// "4711 (name, state D)" for messages. Only where /proc is ours.
std::string describe_living(pid_t root);

// Our own children, alive or not. All, where /proc is ours; elsewhere at least one, if there are
// any: whoever ends those and asks again misses none.
std::vector<pid_t> own_children();
// Sends the signal to those of them that live, but to none of `spared`. Returns how many it saw.
std::size_t signal_own_children(int signal, const std::vector<pid_t>& spared);

// Whether it is a child of ours and lives. The kernel says so, not /proc.
bool lives(pid_t child);
// Whether it is a child of ours that was stopped by a signal, and still is.
bool stands_still(pid_t child);
// Whether there is any child, alive or not.
bool has_children();

}  // namespace stint::os
