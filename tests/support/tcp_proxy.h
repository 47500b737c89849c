// os::TcpProxy for tests: in front of a server on loopback, and there at once.
#pragma once

#include "base/check.h"
#include "os/tcp_proxy.h"

namespace stint::test {

class TcpProxy {
 public:
  using Dropped = os::TcpProxy::Dropped;
  using Counts = os::TcpProxy::Counts;

  explicit TcpProxy(std::uint16_t target_port) {
    auto started = os::TcpProxy::start("127.0.0.1", target_port);
    CHECK(started.has_value(), "no proxy");
    proxy_ = std::move(*started);
  }

  std::uint16_t port() const { return proxy_->port(); }
  Counts counts() const { return proxy_->counts(); }
  void forward() { proxy_->forward(); }
  void delay(Millis by) { proxy_->delay(by); }
  void cut() { proxy_->cut(); }
  void refuse() { proxy_->refuse(); }
  void black_hole() { proxy_->black_hole(); }
  void drop_replies_after(int n, Dropped how) { proxy_->drop_replies_after(n, how); }
  void drop_replies(Dropped how) { proxy_->drop_replies(how); }
  void cut_at_request_after(int n) { proxy_->cut_at_request_after(n); }
  void cut_one_reply_after(int n) { proxy_->cut_one_reply_after(n); }
  void cut_one_request_after(int n) { proxy_->cut_one_request_after(n); }

 private:
  std::unique_ptr<os::TcpProxy> proxy_;
};

}  // namespace stint::test
