#include "net/http/server.h"

#include <array>
#include <condition_variable>

#include "base/mutex.h"
#include "base/text.h"
#include "net/http/wire.h"

namespace stint::net::http {
namespace {

constexpr std::chrono::milliseconds kSweep{100};
constexpr Millis kCutTime{5000};
constexpr std::string_view kFullBody =
    R"({"error":{"code":"unavailable",)"
    R"("message":"too many connections: ask again. Nothing was done."}})";
constexpr std::string_view kFullHead =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 95\r\n"
    "Retry-After: 1\r\nConnection: close\r\n\r\n";
static_assert(kFullBody.size() == 95);

// A descriptor of another's: it is let go of, never closed.
class FdWatching final : public Watching {
 public:
  FdWatching(asio::io_context& loop, int fd, std::function<void()> task)
      : state_(std::make_shared<State>(loop, fd, std::move(task))) {
    arm(state_);
  }
  ~FdWatching() override {
    state_->task = nullptr;
    state_->descriptor.release();
  }
  FdWatching(const FdWatching&) = delete;
  FdWatching& operator=(const FdWatching&) = delete;

 private:
  struct State {
    State(asio::io_context& loop, int fd, std::function<void()> then)
        : descriptor(loop, fd), task(std::move(then)) {}
    asio::posix::stream_descriptor descriptor;
    std::function<void()> task;
  };
  static void arm(const std::shared_ptr<State>& state) {
    state->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                 [state](error_code failed) {
                                   if (failed || !state->task) return;
                                   const auto task = state->task;
                                   task();
                                   if (state->task) arm(state);
                                 });
  }
  const std::shared_ptr<State> state_;
};

class AsioServer final : public Server {
 public:
  AsioServer(const ServerOptions& options, Handler& handler, const Clock& clock)
      : hub_(std::make_shared<Hub>(options, handler, clock)),
        acceptor_(hub_->loop),
        workers_(options.workers) {}
  ~AsioServer() override { stop(Millis(0)); }

  Status open() {
    auto tls = load_tls(hub_->options.tls);
    if (!tls) return tls.error();
    hub_->tls = std::move(*tls);
    const Endpoint& at = hub_->options.listen;
    error_code failed;
    const auto address = asio::ip::make_address(at.host, failed);
    if (failed) return invalid(cat(quoted(at.host), " is no address to listen on"));
    const tcp::endpoint place(address, at.port);
    acceptor_.open(place.protocol(), failed);
    if (!failed) acceptor_.set_option(tcp::acceptor::reuse_address(true), failed);
    if (!failed) acceptor_.bind(place, failed);
    if (!failed) acceptor_.listen(asio::socket_base::max_listen_connections, failed);
    if (failed) {
      return unavailable(cat("cannot listen on ", at.host, ":", at.port, ": ", failed.message()));
    }
    port_ = acceptor_.local_endpoint(failed).port();
    if (auto lanes = open_lanes(place.protocol()); !lanes) return lanes;
    asio::co_spawn(hub_->loop, accept(), asio::detached);
    asio::co_spawn(hub_->loop, sweep(), asio::detached);
    thread_ = std::thread([hub = hub_] { hub->loop.run(); });
    return {};
  }

  std::uint16_t port() const override { return port_; }
  void post(std::function<void()> task) override { asio::post(hub_->loop, std::move(task)); }

  void later(Millis delay, std::function<void()> task) override {
    auto timer = std::make_shared<asio::steady_timer>(hub_->loop, delay);
    timer->async_wait([timer, task = std::move(task)](error_code failed) {
      if (!failed) task();
    });
  }

  std::unique_ptr<Watching> watch(int fd, std::function<void()> task) override {
    return std::make_unique<FdWatching>(hub_->loop, fd, std::move(task));
  }

  std::size_t connections() const override {
    return hub_->connections.size() + (hub_->lanes ? hub_->lanes->connections() : 0);
  }

  Status reload() override {
    auto tls = load_tls(hub_->options.tls);
    if (!tls) return tls.error();
    post([hub = hub_, fresh = std::move(*tls)] { hub->tls = fresh; });
    return {};
  }

  bool work(std::function<void()> task) override { return give(workers_, std::move(task)); }
  bool work_in_turn(std::function<void()> task) override { return give(clerk_, std::move(task)); }
  bool work_beside(std::function<void()> task) override { return give(second_, std::move(task)); }

  bool stop(Millis patience) override {
    if (!thread_.joinable()) return true;
    post([this] { quiesce(); });
    if (hub_->lanes) {
      hub_->lanes->stop();
      // What they gave back meanwhile is waited for, too: it is on its way to the loop.
      {
        const MutexLock lock(mutex_);
        none_ = false;
      }
      post([this] { tell(); });
    }
    const bool clean = wait_for_none(patience);
    post([this] {
      const auto all = hub_->connections;
      for (const auto& one : all) one->cut();
    });
    wait_for_none(kCutTime);
    workers_.join();
    clerk_.join();
    second_.join();
    hub_->loop.stop();
    thread_.join();
    hub_->lanes.reset();
    hub_->loop.drop_all();
    return clean;
  }

 private:
  bool give(asio::thread_pool& pool, std::function<void()> task) {
    if (waiting_->fetch_add(1) >= hub_->options.most_work) {
      waiting_->fetch_sub(1);
      return false;
    }
    asio::post(pool, [waiting = waiting_, task = std::move(task)] {
      task();
      waiting->fetch_sub(1);
    });
    return true;
  }

  Status open_lanes(const tcp& protocol) {
    TurnHandler* const turns = hub_->options.turns;
    if (turns == nullptr || hub_->tls) return {};
    // A lane takes what it reads whole: where heads have to be shorter, the loop looks at each.
    if (hub_->options.limits.head_bytes < kMostRequest) return {};
    auto lanes = Lanes::open(hub_->options.lanes, hub_->options.limits.idle_time, *turns,
                             hub_->clock, [this, protocol](Moved moved) {
                               // Shared: a task is copied.
                               auto shared = std::make_shared<Moved>(std::move(moved));
                               post([this, protocol, shared] { come_back(protocol, *shared); });
                             });
    if (!lanes) return lanes.error();
    hub_->lanes = std::move(*lanes);
    return {};
  }

  void come_back(const tcp& protocol, Moved& moved) {
    tcp::socket socket(hub_->loop);
    error_code failed;
    socket.assign(protocol, moved.fd.get(), failed);
    if (failed) return;
    (void)moved.fd.release();
    serve(std::make_shared<Connection>(*hub_, std::move(socket), &moved));
  }

  void quiesce() {
    hub_->stopping = true;
    error_code ignored;
    acceptor_.close(ignored);
    for (const IdleUpstream& one : hub_->idle) one.wire->close();
    hub_->idle.clear();
    const auto all = hub_->connections;
    for (const auto& one : all) {
      if (one->idle()) one->cut();
    }
    tell();
  }

  void tell() {
    const MutexLock lock(mutex_);
    none_ = hub_->stopping && hub_->connections.empty();
    changed_.notify_all();
  }

  bool wait_for_none(Millis patience) {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock, patience, [this]() REQUIRES(mutex_) { return none_; });
  }

  Task<void> accept() {
    while (!hub_->stopping) {
      auto [failed, socket] = co_await acceptor_.async_accept(kQuietly);
      if (hub_->stopping || !acceptor_.is_open()) co_return;
      if (failed) {
        // Out of descriptors: others will be given back.
        asio::steady_timer pause(hub_->loop, kSweep);
        co_await pause.async_wait(kQuietly);
        continue;
      }
      welcome(std::move(socket));
    }
  }

  void welcome(tcp::socket socket) {
    error_code ignored;
    if (connections() >= hub_->options.limits.connections) {
      socket.non_blocking(true, ignored);
      socket.write_some(std::array{asio::buffer(kFullHead), asio::buffer(kFullBody)}, ignored);
      return;
    }
    socket.set_option(tcp::no_delay(true), ignored);
    serve(std::make_shared<Connection>(*hub_, std::move(socket)));
  }

  void serve(const std::shared_ptr<Connection>& connection) {
    hub_->connections.insert(connection);
    asio::co_spawn(hub_->loop, connection->run(), [this, connection](const std::exception_ptr&) {
      connection->cut();
      hub_->connections.erase(connection);
      tell();
    });
  }

  Task<void> sweep() {
    asio::steady_timer tick(hub_->loop);
    while (true) {
      tick.expires_after(kSweep);
      co_await tick.async_wait(kQuietly);
      const MonoTime now = hub_->clock.mono();
      for (const auto& one : hub_->connections) one->look(now);
      std::erase_if(hub_->idle,
                    [now](const IdleUpstream& idle) { return now - idle.since >= kMostIdle; });
    }
  }

  const std::shared_ptr<Hub> hub_;
  tcp::acceptor acceptor_;
  asio::thread_pool workers_;
  asio::thread_pool clerk_{1};
  asio::thread_pool second_{1};
  std::shared_ptr<std::atomic<std::size_t>> waiting_ =
      std::make_shared<std::atomic<std::size_t>>(0);
  std::uint16_t port_ = 0;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool none_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const ServerOptions& options, Handler& handler,
                                              const Clock& clock) {
  try {
    auto server = std::make_unique<AsioServer>(options, handler, clock);
    if (auto open = server->open(); !open) return open.error();
    return std::unique_ptr<Server>(std::move(server));
  } catch (const std::exception& e) {
    return unavailable(cat("the HTTP server cannot start: ", e.what()));
  }
}

}  // namespace stint::net::http
