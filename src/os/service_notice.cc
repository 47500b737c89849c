#include "os/service_notice.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "os/fd.h"

namespace stint::os {

Status notify_manager(const std::string& socket, std::string_view state) {
  if (socket.empty()) return {};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path) return invalid("NOTIFY_SOCKET is too long");
  std::memcpy(address.sun_path, socket.data(), socket.size());
  // An abstract one begins with a zero byte, written as @.
  if (socket.front() == '@') address.sun_path[0] = 0;
  const Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return unavailable(errno_text("opening a socket to the service manager"));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
  const ssize_t sent = ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&address), length);
  if (sent < 0) return unavailable(errno_text("telling the service manager"));
  return {};
}

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  // Refused: what there was is what there is.
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<std::size_t>(limit.rlim_cur);
}

}  // namespace stint::os
