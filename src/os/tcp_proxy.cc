#include "os/tcp_proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "os/clock.h"
#include "os/dial.h"
#include "os/fd.h"

namespace stint::os {
namespace {

constexpr Millis kDialing{5000};

MonoTime proxy_now() { return system_clock().mono(); }

// Small pieces go at once, as they would without a proxy between.
void send_at_once(const Fd& fd) {
  const int yes = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

// So that the peer sees an error and not a polite end.
void reset_connection(Fd& fd) {
  const linger at_once{1, 0};
  if (fd) ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  fd.reset();
}

// On a port that the kernel chooses.
Result<Fd> listen_here(std::uint16_t& port) {
  const auto failed = [] { return Error{Code::Failed, errno_text("listening on loopback")}; };
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return failed();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd.get(), any, size) != 0 || ::listen(fd.get(), 64) != 0) return failed();
  if (::getsockname(fd.get(), any, &size) != 0) return failed();
  port = ntohs(address.sin_port);
  return fd;
}

struct Faults {
  Millis delay{0};
  bool refuse = false;
  bool black_hole = false;
  std::optional<int> replies_left;  // requests that are still answered
  TcpProxy::Dropped how = TcpProxy::Dropped::Silently;
  std::optional<int> requests_left;  // requests that still pass
  bool once = false;                 // the first one that is hit ends them all
};

struct Piece {
  MonoTime due;
  std::string bytes;
  bool end = false;  // the sender has closed
};

// One direction of one connection.
struct Way {
  Fd* from = nullptr;
  Fd* to = nullptr;
  std::deque<Piece> waiting;
  bool ended = false;  // nothing more comes from `from`
};

struct Connection {
  Fd client;
  Fd server;
  Way up;
  Way down;
  bool client_spoke_last = false;
  // The answer to the present request is to be dropped, and how: forward() may come before it.
  std::optional<TcpProxy::Dropped> reply_lost;
  bool dead = false;
};

}  // namespace

class TcpProxy::Loop {
 public:
  Loop(std::string host, std::uint16_t target, Fd listener, std::uint16_t port, EventFd wake)
      : host_(std::move(host)),
        target_(target),
        listener_(std::move(listener)),
        port_(port),
        wake_(std::move(wake)) {}

  std::uint16_t port() const { return port_; }

  void change(const std::function<void(Faults&)>& edit, bool cut) {
    {
      const MutexLock lock(mutex_);
      edit(faults_);
      cut_asked_ = cut_asked_ || cut;
    }
    wake_.signal();
  }

  Counts counts() const {
    const MutexLock lock(mutex_);
    return counts_;
  }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      wait();
      wake_.drain();
      take_cut();
      accept_new();
      for (Connection& connection : connections_) serve(connection);
      for (auto at = connections_.begin(); at != connections_.end();) {
        at = at->dead ? connections_.erase(at) : std::next(at);
      }
      const MutexLock lock(mutex_);
      counts_.open = static_cast<int>(connections_.size());
    }
    for (Connection& connection : connections_) kill(connection);
  }

  void wake() { wake_.signal(); }

 private:
  Faults faults() const {
    const MutexLock lock(mutex_);
    return faults_;
  }

  void wait() {
    std::vector<pollfd> fds{{wake_.fd(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    std::optional<MonoTime> due;
    for (Connection& connection : connections_) {
      for (const Way* way : {&connection.up, &connection.down}) {
        if (!way->ended) fds.push_back({way->from->get(), POLLIN, 0});
        if (way->waiting.empty()) continue;
        const MonoTime first = way->waiting.front().due;
        if (first <= proxy_now()) fds.push_back({way->to->get(), POLLOUT, 0});
        due = std::min(due.value_or(first), first);
      }
    }
    int timeout = -1;
    if (due && *due > proxy_now()) {
      timeout = static_cast<int>(std::chrono::ceil<Millis>(*due - proxy_now()).count());
    }
    ::poll(fds.data(), fds.size(), timeout);
  }

  void take_cut() {
    {
      const MutexLock lock(mutex_);
      if (!cut_asked_) return;
      cut_asked_ = false;
    }
    for (Connection& connection : connections_) kill(connection);
  }

  void accept_new() {
    while (true) {
      Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!client) return;
      {
        const MutexLock lock(mutex_);
        ++counts_.connections;
      }
      Fd server;
      if (!faults().refuse) {
        if (auto dialled = dial_tcp(host_, target_, proxy_now() + kDialing)) {
          server = std::move(*dialled);
        }
      }
      if (!server) {
        reset_connection(client);
        continue;
      }
      send_at_once(client);
      send_at_once(server);
      Connection& made = connections_.emplace_back();
      made.client = std::move(client);
      made.server = std::move(server);
      made.up = {&made.client, &made.server, {}, false};
      made.down = {&made.server, &made.client, {}, false};
    }
  }

  void serve(Connection& connection) {
    take_in(connection, connection.up, true);
    take_in(connection, connection.down, false);
    pass_on(connection, connection.up);
    pass_on(connection, connection.down);
    const bool done = connection.up.ended && connection.down.ended &&
                      connection.up.waiting.empty() && connection.down.waiting.empty();
    if (done) connection.dead = true;
  }

  void take_in(Connection& connection, Way& way, bool from_client) {
    std::array<char, 16'384> buffer{};
    while (!connection.dead && !way.ended) {
      const ssize_t got = ::recv(way.from->get(), buffer.data(), buffer.size(), 0);
      if (got < 0 && errno == EAGAIN) return;
      if (got < 0) return kill(connection);
      const Faults present = faults();
      {
        const MutexLock lock(mutex_);
        counts_.bytes += static_cast<std::uint64_t>(got);
      }
      Piece piece{proxy_now() + present.delay,
                  std::string(buffer.data(), static_cast<std::size_t>(got)), got == 0};
      way.ended = piece.end;
      if (piece.end) {
        way.waiting.push_back(std::move(piece));
        return;
      }
      const bool passes = from_client ? request_passes(connection) : reply_passes(connection);
      if (!connection.dead && passes && !present.black_hole)
        way.waiting.push_back(std::move(piece));
    }
  }

  // Counts a request when its first piece comes.
  bool request_passes(Connection& connection) {
    if (connection.client_spoke_last) return true;
    connection.client_spoke_last = true;
    bool cut_here = false;
    {
      const MutexLock lock(mutex_);
      ++counts_.requests;
      const bool lost = faults_.replies_left && *faults_.replies_left <= 0;
      connection.reply_lost = lost ? std::optional(faults_.how) : std::nullopt;
      if (faults_.replies_left && *faults_.replies_left > 0) --*faults_.replies_left;
      cut_here = faults_.requests_left && *faults_.requests_left <= 0;
      if (faults_.requests_left && *faults_.requests_left > 0) --*faults_.requests_left;
      if (faults_.once && (lost || cut_here)) faults_ = {};
    }
    if (cut_here) kill(connection);
    return !cut_here;
  }

  bool reply_passes(Connection& connection) {
    const bool first_piece = connection.client_spoke_last;
    connection.client_spoke_last = false;
    if (!connection.reply_lost) return true;
    if (first_piece) {
      const MutexLock lock(mutex_);
      ++counts_.dropped_replies;
    }
    if (*connection.reply_lost == Dropped::Cut) kill(connection);
    return false;
  }

  void pass_on(Connection& connection, Way& way) {
    while (!connection.dead && !way.waiting.empty() && way.waiting.front().due <= proxy_now()) {
      Piece& piece = way.waiting.front();
      if (piece.end) {
        ::shutdown(way.to->get(), SHUT_WR);
      } else {
        const ssize_t sent =
            ::send(way.to->get(), piece.bytes.data(), piece.bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) return;
        if (sent < 0) return kill(connection);
        piece.bytes.erase(0, static_cast<std::size_t>(sent));
        if (!piece.bytes.empty()) return;
      }
      way.waiting.pop_front();
    }
  }

  void kill(Connection& connection) {
    if (connection.dead) return;
    reset_connection(connection.client);
    reset_connection(connection.server);
    connection.dead = true;
    const MutexLock lock(mutex_);
    ++counts_.cut;
  }

  const std::string host_;
  const std::uint16_t target_;
  const Fd listener_;
  const std::uint16_t port_;
  EventFd wake_;
  std::list<Connection> connections_;  // only the loop's thread

  mutable Mutex mutex_;
  Faults faults_ GUARDED_BY(mutex_);
  Counts counts_ GUARDED_BY(mutex_);
  bool cut_asked_ GUARDED_BY(mutex_) = false;
};

Result<std::unique_ptr<TcpProxy>> TcpProxy::start(const std::string& host, std::uint16_t port) {
  std::uint16_t own = 0;
  auto listener = listen_here(own);
  if (!listener) return listener.error();
  auto wake = EventFd::make();
  if (!wake) return wake.error();
  return std::unique_ptr<TcpProxy>(new TcpProxy(
      std::make_unique<Loop>(host, port, std::move(*listener), own, std::move(*wake))));
}

TcpProxy::TcpProxy(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {
  thread_ = std::jthread([loop = loop_.get()](const std::stop_token& stop) { loop->run(stop); });
}

TcpProxy::~TcpProxy() {
  thread_.request_stop();
  loop_->wake();
  thread_.join();
}

std::uint16_t TcpProxy::port() const { return loop_->port(); }
TcpProxy::Counts TcpProxy::counts() const { return loop_->counts(); }

void TcpProxy::forward() {
  loop_->change([](Faults& faults) { faults = {}; }, false);
}

void TcpProxy::delay(Millis by) {
  loop_->change([by](Faults& faults) { faults.delay = by; }, false);
}

void TcpProxy::cut() {
  loop_->change([](Faults&) {}, true);
}

void TcpProxy::refuse() {
  loop_->change([](Faults& faults) { faults.refuse = true; }, true);
}

void TcpProxy::black_hole() {
  loop_->change([](Faults& faults) { faults.black_hole = true; }, false);
}

void TcpProxy::drop_replies_after(int n, Dropped how) {
  loop_->change(
      [n, how](Faults& faults) {
        faults.replies_left = n;
        faults.how = how;
      },
      false);
}

void TcpProxy::cut_at_request_after(int n) {
  loop_->change([n](Faults& faults) { faults.requests_left = n; }, false);
}

void TcpProxy::cut_one_reply_after(int n) {
  loop_->change(
      [n](Faults& faults) {
        faults.replies_left = n;
        faults.how = Dropped::Cut;
        faults.once = true;
      },
      false);
}

void TcpProxy::cut_one_request_after(int n) {
  loop_->change(
      [n](Faults& faults) {
        faults.requests_left = n;
        faults.once = true;
      },
      false);
}

}  // namespace stint::os
