// Who holds a POSIX lock on a byte of a file, in words.
#pragma once

#include <string>

namespace stint::os {

// "process 4711 (stint run ...), which is stopped"; empty if nobody does or it cannot be told.
// The descriptor that it opens stays open until the process ends: closing any descriptor of a file
// drops all POSIX locks that this process has on it, SQLite's too.
std::string describe_lock_holder(const std::string& path, long byte);

// The same words, of a process that is known.
std::string describe_process(int pid);

// 'R', 'S', 'T' ... from /proc; 0 if there is no such process, or no /proc that shows ours.
char process_state(int pid);

// Whether it keeps any lock that shuts others out (SQLite's while it writes, flock's); false too if
// that cannot be told.
bool holds_write_lock(int pid);

}  // namespace stint::os
