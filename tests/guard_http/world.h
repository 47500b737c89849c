// A proxy, an upstream that remembers what landed in which order, and clients that speak raw HTTP.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "app/opened.h"
#include "guard/http/proxy.h"
#include "os/clock.h"
#include "os/random.h"
#include "tests/support/loopback.h"
#include "tests/support/process.h"

namespace stint::test {

struct Reply {
  int status = 0;  // 0: none
  std::string head;
  std::string body;
  std::string field(const std::string& name) const;
};

// One keep-alive connection.
class Client {
 public:
  explicit Client(std::uint16_t port) : fd_(connect_loopback(port)) {}
  bool send(std::string_view bytes) { return send_all(fd_.get(), bytes); }
  Reply read(Millis deadline = Millis(8'000));
  bool closed(Millis deadline = Millis(5'000));  // the other side ends it, whatever it still says
  void hang_up() { fd_.reset(); }
  int fd() const { return fd_.get(); }

 private:
  os::Fd fd_;
  std::string buffer_;
};

// Records each request when its whole body is there, then answers, unless its token is held.
class Upstream {
 public:
  explicit Upstream(std::uint16_t port = 0);
  ~Upstream();
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  std::uint16_t port() const { return listener_.port; }
  std::vector<std::uint64_t> landed();  // tokens, in order; 0: none was shown
  std::vector<std::string> bodies();
  int heads() const { return heads_; }  // requests of which at least the head came
  // Answers of this token wait; close(): it ends the connection without an answer.
  void hold(std::uint64_t token);
  void let_go(std::uint64_t token);
  void drop_answers(bool drop) { drop_ = drop; }
  // A request that ends before it is whole gets a 400, as many servers do.
  void answer_halves(bool answer) { halves_ = answer; }

 private:
  void accept_loop();
  void serve(int fd);
  Listener listener_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> drop_ = false;
  std::atomic<bool> halves_ = false;
  std::atomic<int> heads_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> landed_;
  std::vector<std::string> bodies_;
  std::set<std::uint64_t> held_;
  std::list<os::Fd> connections_;
  std::vector<std::thread> threads_;
  std::thread accepting_;
};

// api::Fences that can be switched off.
class SwitchedFences final : public api::Fences {
 public:
  explicit SwitchedFences(api::Fences& real) : real_(real) {}
  std::atomic<bool> down = false;
  Result<api::TokenWord> word(const ResourceName& resource) override {
    if (down) return gone();
    return real_.word(resource);
  }
  Result<std::vector<std::string>> sealed(const ResourceName& r) override {
    return real_.sealed(r);
  }
  Result<core::Verdict> remember(const core::Offer& offer,
                                 const std::vector<std::string>& targets) override {
    return real_.remember(offer, targets);
  }
  Status forget(const ResourceName& resource, const std::string& target,
                const api::ForgetWord& word) override {
    return real_.forget(resource, target, word);
  }
  Result<api::FenceAnswer> admit(const std::string& target, const core::Offer& offer) override {
    if (down) return gone();
    return real_.admit(target, offer);
  }
  Result<api::FenceAnswer> seal(const std::string& target, const core::Offer& offer) override {
    if (down) return gone();
    return real_.seal(target, offer);
  }
  Result<std::optional<core::Fence>> fence(const std::string& target) override {
    if (down) return gone();
    return real_.fence(target);
  }
  Result<api::FenceAnswer> begin(const api::Act& act, const core::Offer& offer) override {
    return real_.begin(act, offer);
  }
  Result<api::FenceAnswer> finish(const api::Act& act, const core::Offer& offer) override {
    return real_.finish(act, offer);
  }
  Result<std::optional<api::Act>> act(const std::string& name, const std::string& key) override {
    return real_.act(name, key);
  }

 private:
  static Error gone() { return unavailable("the store is not there"); }
  api::Fences& real_;
};

// A proxy in this process, on a store in memory.
class ProxyWorld {
 public:
  ProxyWorld();
  ~ProxyWorld();

  guard::http::ProxyRequest request;  // change it, then start()
  void start(bool admitting = true);
  void restart();  // as after a crash: nothing is waited for

  // The next token of "site".
  std::uint64_t issue();
  void revoke();  // the next token is nobody's
  std::string headers(std::uint64_t token) const;
  std::string put(std::uint64_t token, const std::string& body) const;
  Reply ask(const std::string& text, Millis deadline = Millis(8'000)) const;
  Reply send(std::uint64_t token, const std::string& body = "x") const {
    return ask(put(token, body));
  }

  std::uint16_t port() const { return proxy->port(); }
  os::SystemClock clock;
  os::SystemRandom random;
  std::unique_ptr<app::Opened> opened;
  std::unique_ptr<SwitchedFences> fences;
  Upstream upstream;
  std::unique_ptr<guard::http::Proxy> proxy;

 private:
  std::optional<api::Grip> grip_;
};

}  // namespace stint::test
