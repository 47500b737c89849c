#include "tests/support/loopback.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/check.h"
#include "os/random.h"
#include "tests/support/process.h"

namespace stint::test {
namespace {

constexpr std::uint16_t kFirstPort = 15'000;
constexpr std::uint16_t kPorts = 15'000;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

os::Fd stream_socket() {
  os::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  CHECK(fd, "no socket");
  const int yes = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return fd;
}

bool bind_to(int fd, std::uint16_t port) {
  const sockaddr_in address = loopback(port);
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

bool wait_for(int fd, short events, MonoTime end) {
  pollfd waited{fd, events, 0};
  const auto left = std::chrono::ceil<Millis>(end - now()).count();
  return ::poll(&waited, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) > 0;
}

}  // namespace

std::uint16_t free_port() {
  os::SystemRandom random;
  for (int tries = 0; tries < 1000; ++tries) {
    const auto port = static_cast<std::uint16_t>(kFirstPort + random.below(kPorts));
    const os::Fd fd = stream_socket();
    if (bind_to(fd.get(), port)) return port;
  }
  CHECK(false, "no free port");
  return 0;
}

Listener listen_loopback(std::uint16_t port) {
  Listener out{stream_socket(), port == 0 ? free_port() : port};
  CHECK(bind_to(out.fd.get(), out.port), "the port is taken");
  CHECK(::listen(out.fd.get(), 64) == 0, "listen failed");
  return out;
}

os::Fd connect_loopback(std::uint16_t port, const std::string& host, Millis deadline) {
  os::Fd fd = stream_socket();
  sockaddr_in address = loopback(port);
  CHECK(::inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1, "not an IPv4 address");
  const int made = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (made != 0 && errno != EINPROGRESS) return {};
  int error = 0;
  socklen_t size = sizeof error;
  if (!wait_for(fd.get(), POLLOUT, now() + deadline)) return {};
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return {};
  return fd;
}

bool send_all(int fd, std::string_view bytes, Millis deadline) {
  const MonoTime end = now() + deadline;
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EAGAIN || !wait_for(fd, POLLOUT, end)) {
      return false;
    }
  }
  return true;
}

Received receive(int fd, std::size_t enough, Millis deadline) {
  const MonoTime end = now() + deadline;
  Received out;
  std::array<char, 4096> buffer{};
  while (out.bytes.size() < enough) {
    const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (got > 0) {
      out.bytes.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EAGAIN) {
      out.closed = true;
      return out;
    } else if (!wait_for(fd, POLLIN, end)) {
      out.timed_out = true;
      return out;
    }
  }
  return out;
}

Received ask(std::uint16_t port, std::string_view question, std::size_t enough, Millis deadline,
             const std::string& host) {
  const os::Fd fd = connect_loopback(port, host, deadline);
  Received nothing;
  nothing.closed = true;
  if (!fd || !send_all(fd.get(), question, deadline)) return nothing;
  return receive(fd.get(), enough, deadline);
}

void reset_connection(os::Fd& fd) {
  const linger at_once{1, 0};
  if (fd) ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  fd.reset();
}

}  // namespace stint::test
