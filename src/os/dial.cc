#include "os/dial.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/text.h"
#include "os/clock.h"

namespace stint::os {
namespace {

Nanos left(MonoTime until) { return until - SystemClock().mono(); }

// What the resolver works on. It may go on after the deadline, and writes here when it ends.
struct Lookup {
  std::string host;
  std::string service;
  addrinfo hints{};
  gaicb request{};
};

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Error cannot_find(const std::string& host, int code) {
  return unavailable(cat("cannot find the host ", quoted(host), ": ", ::gai_strerror(code)));
}

// getaddrinfo() knows no deadline: a name server that is silent holds it for half a minute.
Result<Addresses> resolve(const std::string& host, std::uint16_t port, MonoTime until) {
  auto lookup = std::make_unique<Lookup>();
  lookup->host = host;
  lookup->service = std::to_string(port);
  lookup->hints.ai_socktype = SOCK_STREAM;
  lookup->hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(lookup->host.c_str(), lookup->service.c_str(), &lookup->hints, &found) == 0) {
    return Addresses(found);
  }
  lookup->hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG;
  lookup->request = {.ar_name = lookup->host.c_str(),
                     .ar_service = lookup->service.c_str(),
                     .ar_request = &lookup->hints,
                     .ar_result = nullptr,
                     .__return = 0,
                     .__glibc_reserved = {}};
  gaicb* requests[] = {&lookup->request};
  if (const int failed = ::getaddrinfo_a(GAI_NOWAIT, requests, 1, nullptr); failed != 0) {
    return cannot_find(host, failed);
  }
  while (::gai_error(&lookup->request) == EAI_INPROGRESS) {
    const Nanos rest = std::max(left(until), Nanos(0));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(rest);
    const timespec wait{.tv_sec = seconds.count(), .tv_nsec = (rest - seconds).count()};
    const gaicb* const waited[] = {&lookup->request};
    if (rest > Nanos(0)) {
      ::gai_suspend(waited, 1, &wait);
      continue;
    }
    // Once it runs it cannot be called off: what it writes to is left to it.
    if (::gai_cancel(&lookup->request) == EAI_NOTCANCELED) {
      [[maybe_unused]] const Lookup* left_behind = lookup.release();
    }
    return unavailable(cat("cannot find the host ", quoted(host), " in time"));
  }
  if (const int failed = ::gai_error(&lookup->request); failed != 0) {
    return cannot_find(host, failed);
  }
  return Addresses(lookup->request.ar_result);
}

Result<Fd> dial(const sockaddr* address, socklen_t length, MonoTime until, std::string_view where) {
  Fd fd(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return unavailable(errno_text("making a socket"));
  if (::connect(fd.get(), address, length) != 0) {
    // A Unix socket whose queue is full says EAGAIN and cannot be waited for.
    if (errno != EINPROGRESS) return unavailable(errno_text(cat("cannot connect to ", where)));
    if (!wait_ready(fd.get(), Direction::Write, until)) {
      return unavailable(cat("cannot connect to ", where, ": no answer in time"));
    }
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      return unavailable(cat("cannot connect to ", where, ": ", std::strerror(error)));
    }
  }
  return fd;
}

// Questions go out at once, and a peer that vanished is noticed while nothing is asked.
void tune(int fd) {
  const int on = 1;
  const int idle_s = 60;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
}

}  // namespace

Result<Fd> dial_tcp(const std::string& host, std::uint16_t port, MonoTime until) {
  auto addresses = resolve(host, port, until);
  if (!addresses) return addresses.error();
  const std::string where =
      cat(host.find(':') == host.npos ? host : cat("[", host, "]"), ":", port);
  Error last = unavailable(cat("cannot connect to ", where, ": it has no address"));
  for (const addrinfo* at = addresses->get(); at != nullptr; at = at->ai_next) {
    auto fd = dial(at->ai_addr, at->ai_addrlen, until, where);
    if (fd) {
      tune(fd->get());
      return fd;
    }
    last = fd.error();
  }
  return last;
}

Result<Fd> dial_unix(const std::string& path, MonoTime until) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return invalid(cat("the path of a socket has at most ", sizeof address.sun_path - 1, " bytes"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return dial(reinterpret_cast<const sockaddr*>(&address), sizeof address, until, quoted(path));
}

bool wait_ready(int fd, Direction direction, MonoTime until) {
  pollfd polled{.fd = fd,
                .events = static_cast<short>(direction == Direction::Read ? POLLIN : POLLOUT),
                .revents = 0};
  while (true) {
    const auto rest = std::chrono::ceil<Millis>(left(until)).count();
    const int timeout = static_cast<int>(std::clamp<std::int64_t>(rest, 0, 60'000));
    const int ready = ::poll(&polled, 1, timeout);
    if (ready > 0) return true;
    if (ready == 0 && rest <= timeout) return false;
  }
}

Result<std::size_t> send_some(int fd, std::string_view bytes, MonoTime until) {
  while (true) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) return static_cast<std::size_t>(sent);
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return unavailable(errno_text("sending"));
    if (!wait_ready(fd, Direction::Write, until)) return unavailable("nothing can be sent in time");
  }
}

Result<std::size_t> receive_some(int fd, char* into, std::size_t size, MonoTime until) {
  while (true) {
    const ssize_t got = ::recv(fd, into, size, 0);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return unavailable(errno_text("receiving"));
    if (!wait_ready(fd, Direction::Read, until)) return unavailable("no answer in time");
  }
}

bool quiet(int fd) {
  char byte = 0;
  const ssize_t got = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace stint::os
