// Which process made a thing: for things that do not survive a fork(), such as connections, locks
// and threads.
//
// Thread safety: any thread.
#pragma once

#include <sys/types.h>

namespace stint::os {

class Birthplace {
 public:
  Birthplace();
  // Not so in a child of fork(), nor in its children, whatever their numbers.
  bool here() const;
  pid_t process() const { return process_; }

 private:
  pid_t process_;
  unsigned forks_;
};

}  // namespace stint::os
