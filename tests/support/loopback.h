// Small TCP helpers on 127.0.0.1 for tests, or on a namespace of the same machine: nothing leaves
// it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "os/fd.h"

namespace stint::test {

// A port that is free now, below the range from which the kernel gives out ports for connections:
// so that nobody takes it by chance while its server is down between a kill and a restart.
std::uint16_t free_port();

struct Listener {
  os::Fd fd;
  std::uint16_t port = 0;
};
Listener listen_loopback(std::uint16_t port = 0);

// An empty Fd if nobody listens. Non-blocking from then on.
os::Fd connect_loopback(std::uint16_t port, const std::string& host = "127.0.0.1",
                        Millis deadline = Millis(5'000));

// Sends all; false if the other side is gone or the deadline has passed.
bool send_all(int fd, std::string_view bytes, Millis deadline = Millis(5'000));

struct Received {
  std::string bytes;
  bool closed = false;  // by the other side, also by a reset
  bool timed_out = false;
};
// Until at least `enough` bytes are there, the other side closes or the deadline passes.
Received receive(int fd, std::size_t enough, Millis deadline = Millis(5'000));

// Connects, sends, and receives what comes: one question to a server.
Received ask(std::uint16_t port, std::string_view question, std::size_t enough, Millis deadline,
             const std::string& host = "127.0.0.1");

// Closes with a reset, so that the peer sees an error and not a polite end.
void reset_connection(os::Fd& fd);

}  // namespace stint::test
