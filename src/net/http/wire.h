// The server's inside: sockets with a buffer and a deadline, connections, the upstream's pool.
// Only for the .cc files of this folder. Everything here belongs to the loop's thread, unless said.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "net/http/lanes.h"
#include "net/http/server.h"
#include "net/http/spool.h"

namespace stint::net::http {

namespace asio = boost::asio;

// Faults come as values.
constexpr auto kQuietly = asio::as_tuple(asio::use_awaitable);
// All before the body.
void append_head(std::string& out, const Answer& answer, bool keep);
// One chunk of a body; of nothing: nothing (an empty one would end the body).
std::string chunk(std::string_view data);
using boost::system::error_code;
using tcp = asio::ip::tcp;
using TlsContext = asio::ssl::context;
template <class T>
using Task = asio::awaitable<T>;

// A socket, what was read from it and not used yet, and until when its present step may take.
class Wire {
 public:
  Wire(tcp::socket socket, const Clock& clock, std::span<char> scratch)
      : socket_(std::move(socket)), clock_(clock), scratch_(scratch) {}

  // The server's side of a TLS handshake; false: failed.
  Task<bool> secure(std::shared_ptr<TlsContext> context);
  // Reads some more; false: end or failure (see timed_out).
  Task<bool> fill();
  Task<bool> write(std::string_view one, std::string_view two = {}, std::string_view three = {});
  // Sends what the socket takes without waiting, as it does with nearly every answer: how many
  // bytes. Zero also for what is encrypted, and for a failure: write() finds out.
  std::size_t push(std::string_view one, std::string_view two);
  std::string_view unread() const { return std::string_view(buffer_).substr(at_); }
  void consume(std::size_t bytes);
  bool full(std::size_t most) const { return buffer_.size() - at_ >= most; }
  // What another has read of it already.
  void put_back(std::string&& bytes) { buffer_ = std::move(bytes); }
  // The socket leaves, open. Empty: it cannot.
  os::Fd release();

  void allow(Millis time) { deadline_ = clock_.mono() + time; }
  void allow_until(MonoTime deadline) { deadline_ = deadline; }
  void allow_for_ever() { deadline_ = MonoTime::max(); }
  // The sweeper's: cancels what is under way if its time is up.
  void look(MonoTime now);
  bool timed_out() const { return timed_out_; }
  void forgive() { timed_out_ = false; }

  void close();
  void shut_sending();
  bool open() const { return socket_.is_open(); }
  tcp::socket& socket() { return socket_; }
  // Idle and still there: nothing to read, not closed by the other side.
  bool quiet();
  // Closed by the other side, with nothing left to read.
  bool ended();
  // The other side will send no more, whatever is left to read.
  bool hung_up();
  // The socket alone, past any encryption: for the last word to who does not speak it.
  void say_plain(std::string_view text);

 private:
  bool never_block();

  tcp::socket socket_;
  bool blocks_ = true;
  std::shared_ptr<TlsContext> context_;  // shared: the next connections may have another
  std::unique_ptr<asio::ssl::stream<tcp::socket&>> tls_;
  const Clock& clock_;
  const std::span<char> scratch_;
  std::string buffer_;
  std::size_t at_ = 0;
  MonoTime deadline_ = MonoTime::max();
  bool timed_out_ = false;
};

struct Collect {
  std::size_t most = 0;
  std::function<void(std::string)> then;
};
struct Gather {
  std::function<void()> then;
};
class OpenFeed;
struct Streaming {
  Answer head;
  std::shared_ptr<OpenFeed> feed;
};
using Decision = std::variant<std::monostate, Answer, Forward, Gather, Collect, Streaming>;

struct Hub;
class PendingCall;

// One client's connection, for as long as it lasts.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `from`: it comes back from a lane; null: it is new.
  Connection(Hub& hub, tcp::socket socket, Moved* from = nullptr);
  Task<void> run();
  void look(MonoTime now);
  void cut();
  // Between two requests, or in an answer that has no end of its own.
  bool idle() const { return idle_; }
  void watch_client(std::function<void()> gone);
  std::string peer() const { return peer_; }

 private:
  friend class PendingCall;
  bool move_to_lane();
  bool head_is_here() const;
  Task<std::optional<RequestHead>> read_head();
  Task<bool> serve(RequestHead head);  // false: the connection ends
  Task<Decision> decision(PendingCall& call);
  std::optional<bool> send_at_once(const Answer& answer, bool keep, bool head_only);
  Task<bool> send_rest(const Answer& answer, bool keep);
  Task<bool> refuse(int status, std::string_view why);
  // `pieces`: what was taken of the body already.
  Task<std::optional<std::string>> collect(std::size_t most, Result<std::string> pieces);
  // All of the body into spool_. False: the client was told what is wrong.
  Task<bool> gather();
  // What is there of the body. Errors: Invalid.
  Result<std::string> take_pieces();
  Task<void> linger();
  Task<bool> stream(const Streaming& order, bool head_only);
  void unwatch_client();
  // ---- forward.cc
  Task<bool> forward(const RequestHead& head, const Forward& order);
  Task<std::shared_ptr<Wire>> connect_upstream();
  struct Passing;
  Task<void> send_first(std::shared_ptr<Passing> passing);
  Task<bool> tell_no_answer(Passing& passing);
  Task<void> send_body(std::shared_ptr<Passing> passing);
  Task<bool> send_pieces(Passing& passing);
  Task<std::optional<ResponseHead>> read_answer_head(Passing& passing);
  Task<bool> pass_answer(Passing& passing, const ResponseHead& head);
  Task<bool> pass_answer_body(Passing& passing, Framing framing, bool chunked, std::string first);
  Task<bool> give_up(Passing& passing, int status, std::string_view why);
  void finish(Passing& passing, Forwarded how);

  Hub& hub_;
  Wire client_;
  std::shared_ptr<Wire> upstream_;
  std::optional<BodyReader> body_;  // of the present request
  std::optional<Spool> spool_;      // the whole of it, if it was gathered
  bool keep_ = false;               // after it
  bool continue_due_ = false;       // the client waits for 100 Continue
  bool idle_ = true;
  bool fresh_ = true;        // before its first request
  unsigned short_ones_ = 0;  // in a row
  unsigned returned_ = 0;    // from a lane
  bool cut_ = false;
  PendingCall* pending_ = nullptr;  // waits for its handler
  OpenFeed* feed_ = nullptr;        // what is being answered
  std::function<void()> gone_;      // told when the client goes
  bool minding_ = false;            // whether the client goes
  bool watching_ = false;           // its next byte, or its end
  std::string peer_;
  std::uint64_t taken_ = 0;  // bytes of the present body
  std::string unsent_;       // of the present answer
  MonoTime request_until_ = MonoTime::max();
};

class PendingCall final : public Call, public std::enable_shared_from_this<PendingCall> {
 public:
  PendingCall(std::shared_ptr<Hub> hub, std::shared_ptr<Connection> connection, RequestHead head);
  const RequestHead& head() const override { return head_; }
  void answer(Answer answer) override { decide(std::move(answer)); }
  void forward(Forward forward) override { decide(std::move(forward)); }
  void collect(std::size_t most, std::function<void(std::string)> then) override {
    decide(Collect{most, std::move(then)});
  }
  std::shared_ptr<Feed> stream(Answer head) override;
  void on_gone(std::function<void()> then) override;
  std::string peer() const override { return connection_->peer(); }
  void cut() override;
  void gather(std::function<void()> then) override { decide(Gather{std::move(then)}); }
  void decide(Decision decision);

  // The loop's own.
  const std::shared_ptr<Hub> hub;  // before all that stands on its loop
  Decision decided;
  asio::steady_timer wake;

 private:
  const std::shared_ptr<Connection> connection_;
  const RequestHead head_;
};

class OpenFeed final : public Feed {
 public:
  explicit OpenFeed(std::shared_ptr<Hub> owner);
  void put(std::string piece) override;
  void end() override;
  std::size_t waiting() const override { return waiting_; }
  bool gone() const override { return gone_; }

  // The connection's.
  std::string take();
  bool ended() const { return ended_; }
  void leave();

  const std::shared_ptr<Hub> hub;
  asio::steady_timer wake;

 private:
  std::deque<std::string> pieces_;
  std::size_t waiting_ = 0;
  bool ended_ = false;
  bool gone_ = false;
};

// An upstream's connection is not used again after this time: the upstream may be about to close
// it.
constexpr Millis kMostIdle{15'000};

struct IdleUpstream {
  std::shared_ptr<Wire> wire;
  MonoTime since;
};

class Loop : public asio::io_context {
 public:
  using asio::io_context::io_context;
  // Forgets what was still to be done; after the last run(). What waits there may hold the hub, and
  // so the loop itself: neither would ever go.
  void drop_all() { shutdown(); }
};

// What all connections share.
struct Hub : public std::enable_shared_from_this<Hub> {
  Hub(const ServerOptions& asked, Handler& to, const Clock& time)
      : options(asked), handler(to), clock(time) {}

  const ServerOptions options;
  Handler& handler;
  const Clock& clock;
  Loop loop{1};
  std::set<std::shared_ptr<Connection>> connections;
  std::vector<IdleUpstream> idle;
  bool stopping = false;
  std::shared_ptr<TlsContext> tls;  // null: none is spoken
  std::unique_ptr<Lanes> lanes;     // null: there are none
  // Where every socket is read into: a connection that waits has no buffer of its own.
  std::array<char, std::size_t{32} << 10U> scratch{};
};

// Errors: Invalid, with the file that is wrong.
Result<std::shared_ptr<TlsContext>> load_tls(const ServerTls& files);

}  // namespace stint::net::http
