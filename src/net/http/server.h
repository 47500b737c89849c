// An HTTP/1.1 server: listens, reads requests strictly (net/http/message.h), keeps connections
// alive, cuts off who is slow or greedy, and hands each request to a handler, which answers it,
// asks for its body, or has it forwarded to an upstream: once its body is whole, and its answer
// streaming.
//
// One thread runs the loop; a small pool with a bounded queue does what may block (work()).
// What it stands on (Boost.Asio) shows in no header but net/http/wire.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/http/message.h"

namespace stint::net::http {

struct Limits {
  std::size_t head_bytes = std::size_t{16} << 10U;
  std::uint64_t body_bytes = std::uint64_t{1} << 30U;
  std::size_t connections = 1024;
  Millis head_time{10'000};      // for the whole head, from its first byte
  Millis idle_time{60'000};      // between two requests
  Millis first_time{0};          // until the first byte of a connection; 0: as idle_time
  Millis stall_time{30'000};     // without a byte of the body, or of our answer being taken
  Millis request_time{600'000};  // from head to the end of the body
  Millis connect_time{5'000};    // to the upstream
  Millis answer_time{60'000};    // without a byte from the upstream
};

struct Answer {
  int status = 200;
  std::string body;  // JSON, unless `type` says otherwise
  std::vector<Field> fields = {};
  std::string type = "application/json";
  // Called once, on the loop: whether all of it was given to the kernel. Empty: nobody asks.
  std::function<void(bool)> sent = {};
  bool is_short = false;  // what a TurnHandler would have answered
};

// An answer that goes on. The loop's alone.
class Feed {
 public:
  virtual ~Feed() = default;
  virtual void put(std::string piece) = 0;
  virtual void end() = 0;
  virtual std::size_t waiting() const = 0;  // bytes that the client has not taken yet
  virtual bool gone() const = 0;            // nobody reads any more
};

// What became of a request that was to be forwarded.
enum class Forwarded {
  NotSent,     // the upstream has seen nothing of it
  Answered,    // answered to the last byte
  Ended,       // never sent as a whole; the upstream has let go of it by itself
  Unanswered,  // the upstream may still be at it
};

struct Forward {
  // Asked before every write to the upstream; false: nothing more is sent. Empty: always.
  std::function<bool()> may_send;
  // Called once, on the loop. Empty: nobody needs to know; then nothing is waited for either.
  std::function<void(Forwarded)> ended;
};

// One request that waits for its handler. Exactly one of answer(), forward(), gather() and
// collect() is called, once (after collect(): answer(); after gather(): answer() or forward()).
// Thread safety: any thread.
class Call {
 public:
  virtual ~Call() = default;
  virtual const RequestHead& head() const = 0;
  virtual void answer(Answer answer) = 0;
  virtual void forward(Forward forward) = 0;
  // Waits for the whole body and keeps it, for forward(); `then` is called on the loop, and decides
  // anew. Too long, too late or broken: it is not called, and the client is told.
  virtual void gather(std::function<void()> then) = 0;
  // Reads the whole body; `then` is called on the loop. Too long or broken: it is not called, and
  // the client is told.
  virtual void collect(std::size_t most, std::function<void(std::string)> then) = 0;
  // Answers with what is put into the feed, for as long as the client stays; `head.body` comes
  // first. On the loop.
  virtual std::shared_ptr<Feed> stream(Answer head) = 0;
  // `then` is called on the loop if the client closes its connection before it is answered. On the
  // loop.
  virtual void on_gone(std::function<void()> then) = 0;
  // "192.0.2.7:54321"
  virtual std::string peer() const = 0;
  // Closes both sides at once.
  virtual void cut() = 0;
};

class Handler {
 public:
  virtual ~Handler() = default;
  // On the loop: must not block.
  virtual void request(const std::shared_ptr<Call>& call) = 0;
};

// A request of a lane (net/http/lanes.h). For its handler alone, until it is answered.
class ShortCall : public Call {
 public:
  virtual std::string_view body() const = 0;
};

// What a lane has brought and is not answered yet. REQUIRES: one thread at a time.
class Sitting {
 public:
  virtual ~Sitting() = default;
  // Reads it, and asks nobody. False: it is not for lanes, and goes to Handler::request().
  virtual bool take(const std::shared_ptr<ShortCall>& call) = 0;
  // While another turn waits for the disk: answers those that need none, and writes nothing. Asked
  // of what was taken since the last time.
  virtual void look() = 0;
  // Answers all. `pause` is called before it waits for a disk or for somebody else: what is
  // answered by then goes out. The next answer says that this is over.
  using Pause = std::function<void()>;
  virtual void serve(const Pause& pause) = 0;
};

// Serves short requests.
class TurnHandler {
 public:
  virtual ~TurnHandler() = default;
  // Each lane has two: one is gathered while the other is served.
  virtual std::unique_ptr<Sitting> sit() = 0;
};

struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
};

// PEM files. Who listens with a certificate speaks TLS alone.
struct ServerTls {
  std::string certificate = {};  // the whole chain; empty: no TLS
  std::string key = {};
  std::string client_authorities = {};  // given: a client must show a certificate of theirs
};

struct ServerOptions {
  Endpoint listen;    // port 0: any
  Endpoint upstream;  // of forward(); port 0: none
  Limits limits;
  std::size_t workers = 4;
  std::size_t most_work = 256;  // waiting for a worker
  ServerTls tls = {};
  // Who serves short requests by turns, on so many threads; not over TLS. Null: nobody.
  TurnHandler* turns = nullptr;
  std::size_t lanes = 1;
};

// Ends what it stands for when it goes; the loop's alone.
class Watching {
 public:
  virtual ~Watching() = default;
};

class Server {
 public:
  virtual ~Server() = default;  // stops at once
  // `handler` and `clock` must outlive the server. Errors: Unavailable (address in use ...).
  static Result<std::unique_ptr<Server>> start(const ServerOptions& options, Handler& handler,
                                               const Clock& clock);
  virtual std::uint16_t port() const = 0;
  // On the loop, soon.
  virtual void post(std::function<void()> task) = 0;
  virtual void later(Millis delay, std::function<void()> task) = 0;
  // Calls `task` on the loop whenever the descriptor is readable. On the loop.
  virtual std::unique_ptr<Watching> watch(int fd, std::function<void()> task) = 0;
  // How many connections there are, those of lanes among them. On the loop.
  virtual std::size_t connections() const = 0;
  // Reads the TLS files anew, for the connections that come. An error leaves the old ones.
  virtual Status reload() = 0;
  // On a worker; false: too much is waiting, nothing is done.
  virtual bool work(std::function<void()> task) = 0;
  // The same, one after another, on a thread of their own: what comes without end finds its memory
  // and its caches where it left them.
  virtual bool work_in_turn(std::function<void()> task) = 0;
  // The same, on another thread of its own: for what is not to wait for those.
  virtual bool work_beside(std::function<void()> task) = 0;
  // Takes no new connections, ends idle ones, waits so long for the others, then cuts them. True:
  // none had to be cut. Not from the loop.
  virtual bool stop(Millis patience) = 0;
};

}  // namespace stint::net::http
