#include "os/lock_look.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.h"
#include "os/directory.h"
#include "os/fd.h"

namespace stint::os {

Status locks_hold_in(const std::string& folder) {
  std::string name = cat(folder, "/.stint-locks-XXXXXX");
  const Fd first(::mkostemp(name.data(), O_CLOEXEC));
  if (!first) return not_done("making a file in", folder);
  const Fd second(::open(name.c_str(), O_RDWR | O_CLOEXEC));
  ::unlink(name.c_str());
  if (!second) return not_done("opening a file in", folder);
  if (try_lock(first.get()) != 0) return unavailable("flock() is not to be had");
  if (try_lock(second.get()) != EWOULDBLOCK) return unavailable("flock() locks nobody out");
  struct flock all {};
  all.l_type = F_WRLCK;
  if (::fcntl(first.get(), F_SETLK, &all) != 0)
    return unavailable("fcntl() locks are not to be had");
  struct flock own = all;
  if (::fcntl(first.get(), F_OFD_SETLK, &own) == 0) return unavailable("fcntl() locks nobody out");
  return {};
}

}  // namespace stint::os
