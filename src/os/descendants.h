// The processes below a process, and ending them.
//
// Complete for whoever is a subreaper: an orphan of its tree becomes its own child, whatever
// session or group it moved to.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace stint::os {

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = 0;  // as in /proc: 'Z' and 'X' are dead
  bool dead() const { return state == 'Z' || state == 'X'; }
};

// From /proc; dead ones (zombies) too.
std::vector<ProcessInfo> descendants_of(pid_t root);

// Sends the signal to every living descendant of `root` but `spared`. Returns how many living ones
// it saw.
std::size_t signal_descendants(pid_t root, pid_t spared, int signal);

std::size_t living_descendants(pid_t root, pid_t spared);

// "4711 (name, state D)" for messages.
std::string describe_living(pid_t root, pid_t spared);

}  // namespace stint::os
