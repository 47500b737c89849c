// Lanes: connections whose clients ask for little things again and again, served in turns.
//
// A turn of a lane reads all of its connections that have something, gives the requests to its
// handler together, and sends the answers. There is no hand-over of a request between threads in
// it, no timer, and per request one call to read and one to send.
//
// One thread does that. Another one helps it: it sends, where that is much, and when a turn waits
// for the disk for longer than half a millisecond, it stands at the door in its place: it reads on,
// answers at once who needs no disk (refusals: they never wait for a sync), and leaves the rest for
// the next turn. So there is one turn at the store at a time.
//
// A lane knows only the plain case: one request, whole, in one piece, with a length. Whatever else
// comes (half a request, two at once, a body in chunks, the end of the connection, what its handler
// declines) goes to the loop of net/http/server.h with all that was read, as if it had come there:
// limits and refusals stand there alone. A connection comes from the loop after two short requests
// in a row; whoever had to go back, after more of them.
//
// Thread safety: any thread, but stop() and the destruction, which are one thread's.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/http/server.h"
#include "os/fd.h"

namespace stint::net::http {

// A connection that goes from one to the other.
struct Moved {
  os::Fd fd = {};
  std::string peer = {};
  std::string unread = {};  // of what was read
  std::string unsent = {};  // of the last answer
  // How often a lane could not serve it: each time the loop keeps it for longer.
  unsigned returned = 0;
};

// A request that is longer is not short.
constexpr std::size_t kMostRequest = std::size_t{8} << 10U;

class Lane;

class Lanes {
 public:
  // `back`: takes over what a lane does not serve; any thread. Errors: out of descriptors.
  static Result<std::unique_ptr<Lanes>> open(std::size_t count, Millis idle_time,
                                             TurnHandler& turns, const Clock& clock,
                                             const std::function<void(Moved)>& back);
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // REQUIRES: nothing is read of it that was not answered.
  void take(Moved connection);
  std::size_t connections() const;
  // What is under way is answered; then all connections are closed. Nothing may be taken any more.
  void stop();

 private:
  Lanes() = default;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::atomic<std::size_t> next_ = 0;
};

}  // namespace stint::net::http
