// Outgoing connections with deadlines: names, TCP and Unix sockets. All descriptors are
// non-blocking.
//
// A deadline is a time on the boot-time clock (os/clock.h): time asleep counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "os/fd.h"

namespace stint::os {

// Unavailable: unknown name, refused, unreachable, or not before the deadline.
Result<Fd> dial_tcp(const std::string& host, std::uint16_t port, MonoTime until);
Result<Fd> dial_unix(const std::string& path, MonoTime until);

enum class Direction { Read, Write };
// False: the deadline passed first. An error on the descriptor counts as ready: the call that
// follows tells it.
bool wait_ready(int fd, Direction direction, MonoTime until);

// How many bytes went; an error when none can go before the deadline or the peer is gone.
Result<std::size_t> send_some(int fd, std::string_view bytes, MonoTime until);
// Zero: the peer has closed.
Result<std::size_t> receive_some(int fd, char* into, std::size_t size, MonoTime until);
// True if a question can be asked: nothing lies there unread, and the peer has not closed.
bool quiet(int fd);

}  // namespace stint::os
