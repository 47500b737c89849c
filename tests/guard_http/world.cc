#include "tests/guard_http/world.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/text.h"

namespace stint::test {
namespace {

std::string field_of(const std::string& head, const std::string& name) {
  const std::size_t at = head.find(cat("\r\n", name, ": "));
  if (at == std::string::npos) return {};
  const std::size_t from = at + name.size() + 4;
  return head.substr(from, head.find("\r\n", from) - from);
}

// More bytes into `buffer`; false: the end, or the time is up.
bool more(int fd, std::string& buffer, Millis deadline) {
  const Received got = receive(fd, 1, deadline);
  buffer += got.bytes;
  return !got.bytes.empty();
}

// A whole message with a Content-Length; empty head: there is none.
std::pair<std::string, std::string> read_message(int fd, std::string& buffer, Millis deadline) {
  std::size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (!more(fd, buffer, deadline)) return {};
  }
  const std::string head = buffer.substr(0, end + 2);
  buffer.erase(0, end + 4);
  if (field_of(head, "Transfer-Encoding") == "chunked") {
    while ((end = buffer.find("0\r\n\r\n")) == std::string::npos) {
      if (!more(fd, buffer, deadline)) return {};
    }
    const std::string chunks = buffer.substr(0, end);
    buffer.erase(0, end + 5);
    return {head, chunks};
  }
  const auto length = parse_digits(field_of(head, "Content-Length")).value_or(0);
  while (buffer.size() < length) {
    if (!more(fd, buffer, deadline)) return {};
  }
  const std::string body = buffer.substr(0, length);
  buffer.erase(0, length);
  return {head, body};
}

constexpr Millis kLong{60'000};

}  // namespace

std::string Reply::field(const std::string& name) const { return field_of(head, name); }

Reply Client::read(Millis deadline) {
  const auto [head, body] = read_message(fd_.get(), buffer_, deadline);
  if (head.empty()) return {};
  return {static_cast<int>(parse_digits(head.substr(9, 3)).value_or(0)), head, body};
}

bool Client::closed(Millis deadline) {
  const MonoTime until = now() + deadline;
  while (now() < until) {
    if (receive(fd_.get(), 1U << 20U, Millis(200)).closed) return true;
  }
  return false;
}

Upstream::Upstream(std::uint16_t port) : listener_(listen_loopback(port)) {
  accepting_ = std::thread([this] { accept_loop(); });
}

Upstream::~Upstream() {
  stop_ = true;
  {
    const std::lock_guard lock(mutex_);
    held_.clear();
    for (const os::Fd& fd : connections_) ::shutdown(fd.get(), SHUT_RDWR);
  }
  changed_.notify_all();
  accepting_.join();
  for (std::thread& one : threads_) one.join();
}

void Upstream::accept_loop() {
  while (!stop_) {
    pollfd wait{listener_.fd.get(), POLLIN, 0};
    if (::poll(&wait, 1, 50) != 1) continue;
    os::Fd fd(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) continue;
    const int number = fd.get();
    const std::lock_guard lock(mutex_);
    connections_.push_back(std::move(fd));
    threads_.emplace_back([this, number] { serve(number); });
  }
}

void Upstream::serve(int fd) {
  std::string buffer;
  while (!stop_) {
    if (!more(fd, buffer, kLong)) break;
    ++heads_;
    const auto [head, body] = read_message(fd, buffer, kLong);
    if (head.empty() && halves_) {
      send_all(fd, "HTTP/1.1 400 Bad Request\r\nContent-Length: 4\r\n\r\nhalf");
    }
    if (head.empty()) break;
    const auto token = parse_digits(field_of(head, "Fencing-Token")).value_or(0);
    std::unique_lock lock(mutex_);
    landed_.push_back(token);
    bodies_.push_back(body);
    changed_.wait(lock, [&] { return stop_ || !held_.contains(token); });
    lock.unlock();
    if (stop_ || drop_) break;
    if (!send_all(fd, cat("HTTP/1.1 200 OK\r\nContent-Length: ", body.size(), "\r\n\r\n", body))) {
      break;
    }
  }
  ::shutdown(fd, SHUT_RDWR);
}

std::vector<std::uint64_t> Upstream::landed() {
  const std::lock_guard lock(mutex_);
  return landed_;
}

std::vector<std::string> Upstream::bodies() {
  const std::lock_guard lock(mutex_);
  return bodies_;
}

void Upstream::hold(std::uint64_t token) {
  const std::lock_guard lock(mutex_);
  held_.insert(token);
}

void Upstream::let_go(std::uint64_t token) {
  const std::lock_guard lock(mutex_);
  held_.erase(token);
  changed_.notify_all();
}

ProxyWorld::ProxyWorld() {
  opened = app::Opened::open({.url = app::parse_store_url("memory:").value(),
                              .state_directory = "",
                              .may_create = true},
                             clock, random)
               .value();
  fences = std::make_unique<SwitchedFences>(opened->fences());
  request.listen = {"127.0.0.1", 0};
  request.upstream = {"127.0.0.1", upstream.port()};
  request.resource = ResourceName::parse("site").value();
  request.drain = Millis(300);
  request.fences = fences.get();
  request.watch = [this](const ResourceName& name) { return opened->leases().watch(name); };
}

ProxyWorld::~ProxyWorld() { proxy.reset(); }

void ProxyWorld::start(bool admitting) {
  auto open = guard::http::open_proxy(request, clock);
  ASSERT_TRUE(open) << open.error().message;
  proxy = std::move(*open);
  if (admitting) proxy->hold_until(MonoTime::max());
}

void ProxyWorld::restart() {
  proxy.reset();
  start();
}

std::uint64_t ProxyWorld::issue() {
  const auto name = ResourceName::parse("site").value();
  if (grip_) (void)opened->leases().release(*grip_, false);
  const Claim claim = Claim::make(random);
  const auto answer = opened->leases().acquire({.resource = name,
                                                .owner = Owner::parse("ann").value(),
                                                .claim = claim,
                                                .terms = {.ttl = Millis(60'000)},
                                                .note = "",
                                                .retake = {}});
  const auto& granted = std::get<api::Granted>(*answer);
  grip_ = api::Grip{name, granted.lease.token, claim, {}, {}};
  return granted.lease.token.number();
}

void ProxyWorld::revoke() {
  const auto name = ResourceName::parse("site").value();
  const auto done = opened->leases().revoke(
      {.resource = name, .expected = grip_->token, .why = "test", .by = "test"},
      core::Reason::Revoked);
  EXPECT_TRUE(done);
  grip_.reset();
}

std::string ProxyWorld::headers(std::uint64_t token) const {
  return cat("Host: x\r\nFencing-Token: ", token, "\r\nFencing-Resource: site\r\n",
             "Fencing-Generation: ", opened->leases().generation().hex(), "\r\n");
}

std::string ProxyWorld::put(std::uint64_t token, const std::string& body) const {
  return cat("PUT /doc HTTP/1.1\r\n", headers(token), "Content-Length: ", body.size(), "\r\n\r\n",
             body);
}

Reply ProxyWorld::ask(const std::string& text, Millis deadline) const {
  Client client(port());
  if (!client.send(text)) return {};
  return client.read(deadline);
}

}  // namespace stint::test
