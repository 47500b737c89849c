// A TCP proxy on loopback that can be made slow, deaf or cruel: for `stint torture` and the tests,
// since not every kernel has netem, nor may everybody use it.
//
// A request is what the client sends after the server has spoken, or first: right for protocols
// that ask and wait (SQL, Redis, HTTP/1.1), also when one request comes in pieces.
//
//   auto proxy = TcpProxy::start("127.0.0.1", server.port());
//   (*proxy)->drop_replies(TcpProxy::Dropped::Cut);
//   client((*proxy)->port()).commit();  // carried out; its answer is lost with the connection
//   (*proxy)->forward();
//
// Thread safety: every method may be called from any thread. One thread inside, joined by the
// destructor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/result.h"
#include "base/time.h"

namespace stint::os {

class TcpProxy {
 public:
  // Listens on a port of its own.
  static Result<std::unique_ptr<TcpProxy>> start(const std::string& host, std::uint16_t port);
  ~TcpProxy();  // cuts what is left
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  std::uint16_t port() const;

  // Ends all faults. A connection that lost bytes stays crippled: cut() it.
  void forward();
  // Each piece, in both directions, arrives this much later. Zero: at once.
  void delay(Millis by);
  // All present connections end with a reset; new ones are served.
  void cut();
  // As cut(), and new ones are refused with a reset until forward().
  void refuse();
  // Nothing passes, nothing is closed: a partition. What is sent meanwhile is lost.
  void black_hole();

  enum class Dropped {
    Silently,  // the client waits for ever
    Cut,       // the connection ends where the answer would have come: it was carried out, surely
  };
  // The next `n` requests are answered, the replies to later ones are dropped.
  void drop_replies_after(int n, Dropped how);
  void drop_replies(Dropped how) { drop_replies_after(0, how); }
  // The next `n` requests pass; later ones never reach the server, their connections are cut.
  void cut_at_request_after(int n);
  // The next `n` requests are answered; the one after them is carried out, its answer is cut off,
  // and all goes on as with forward(): what asks again at once meets no fault.
  void cut_one_reply_after(int n);
  // The next `n` requests pass; the one after them never reaches the server, its connection is cut,
  // and all goes on as with forward().
  void cut_one_request_after(int n);

  struct Counts {
    int connections = 0;  // accepted so far
    int open = 0;
    int requests = 0;
    std::uint64_t bytes = 0;  // that arrived here, from both sides
    int dropped_replies = 0;
    int cut = 0;
  };
  Counts counts() const;

 private:
  class Loop;
  explicit TcpProxy(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
  std::jthread thread_;
};

}  // namespace stint::os
