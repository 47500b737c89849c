// A connection of a lane: whose it is, and what is sent to it.
//
// It is free, or a turn serves it. Of a free one only who stands at the lane's door touches
// anything; of one that is served only its turn does, until it lets go. What happens on it
// meanwhile is noted, and is looked at by who stands at the door after that. So it is never in two
// hands, and it ends at the door alone.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "os/fd.h"

namespace stint::net::http {

class LaneClient {
 public:
  LaneClient(os::Fd connection, std::string name, MonoTime end, unsigned times_returned)
      : fd(std::move(connection)), peer(std::move(name)), until(end), returned(times_returned) {}

  // ---- who stands at the door
  // False: a turn serves it, and the events are noted.
  bool is_free_or_notes(std::uint32_t events) {
    std::uint32_t now = state_.load(std::memory_order_acquire);
    while ((now & kServed) != 0) {
      if (state_.compare_exchange_weak(now, now | events << 1U)) return false;
    }
    return true;
  }
  bool is_free() const { return state_.load(std::memory_order_acquire) == 0; }
  void is_served() { state_.store(kServed, std::memory_order_relaxed); }
  // What was noted of one that its turn could not let go.
  std::uint32_t take_back() { return state_.exchange(0) >> 1U; }

  // ---- the turn that serves it
  // Gives it to the kernel, as far as that takes it.
  void send(std::string_view text) {
    const ssize_t sent = ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    gone = sent < 0 && errno != EAGAIN && errno != EINTR;
    if (!gone) unsent = text.substr(sent < 0 ? 0 : static_cast<std::size_t>(sent));
  }
  // True: it is free. False: who stands at the door has to look at it, and nobody else touches it.
  bool let_go(MonoTime idle_until) {
    if (gone || !unsent.empty()) return false;
    until = idle_until;
    std::uint32_t served = kServed;
    return state_.compare_exchange_strong(served, 0, std::memory_order_release);
  }

  os::Fd fd;
  std::string peer;
  MonoTime until;
  const unsigned returned;
  bool gone = false;
  std::string unsent;

 private:
  static constexpr std::uint32_t kServed = 1;
  std::atomic<std::uint32_t> state_ = 0;  // kServed, and above it the events that were noted
};

// Answers, one after another in one piece of memory.
struct Outbox {
  struct Piece {
    LaneClient* client;
    std::size_t size;
  };
  std::string bytes;
  std::vector<Piece> pieces;
  void clear() {
    bytes.clear();
    pieces.clear();
  }
};

}  // namespace stint::net::http
