#include "os/host.h"

#include <pwd.h>
#include <unistd.h>

#include <array>

#include "base/text.h"

namespace stint::os {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name.front() == '\0') return "host";
  return printable(name.data());
}

std::string user_name() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr ? printable(entry->pw_name) : cat("uid-", ::getuid());
}

}  // namespace stint::os
