// What the fault tests on `do:` share: the real workerd, and a server that says what it is told to.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "os/random.h"
#include "store/do/do_store.h"
#include "tests/support/loopback.h"
#include "tests/support/servers.h"
#include "tests/support/tcp_proxy.h"

namespace stint::test {

using store::Step;
using store::durable::DoStore;

#define SKIP_WITHOUT_WORKERD() \
  if (const std::string why = WorkerdServer::missing(); !why.empty()) GTEST_SKIP() << why

inline const Clock& do_clock() {
  static const os::SystemClock clock;
  return clock;
}

inline std::unique_ptr<DoStore> open_do(std::uint16_t port, Millis timeout = Millis(5'000),
                                        const std::string& key = WorkerdServer::kSecret,
                                        bool may_create = true) {
  store::OpenRequest request;
  request.address.scheme = "do+http";
  request.address.hosts.push_back({"127.0.0.1", port});
  request.address.printable = cat("do+http://127.0.0.1:", port);
  request.timeout = timeout;
  request.key = key;
  request.may_create = may_create;
  auto store = DoStore::open(request, do_clock());
  EXPECT_TRUE(store) << store.error().message;
  return store ? std::move(*store) : nullptr;
}

inline Step a_step(Step::Kind kind, std::string key, std::string value = "") {
  Step step;
  step.kind = kind;
  step.key = std::move(key);
  step.value = std::move(value);
  return step;
}

// What became of it, in a word.
inline std::string word_of(const Result<store::CommitAnswer>& answer) {
  if (!answer) return std::string(word(answer.error().code));
  return std::holds_alternative<store::Conflict>(*answer) ? "conflict" : "done";
}
inline std::string word_of(const Result<store::Reading>& answer) {
  return answer ? "done" : std::string(word(answer.error().code));
}

// Says the same to every request, one a connection, and counts them.
class Parrot {
 public:
  Parrot(int status, const std::string& body) : listener_(listen_loopback()) {
    const std::string answer =
        cat("HTTP/1.1 ", status, " X\r\nConnection: close\r\nContent-Type: application/json\r\n",
            "Content-Length: ", body.size(), "\r\n\r\n", body);
    thread_ = std::jthread([this, answer](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        os::wait_readable({listener_.fd.get()}, now() + Millis(20));
        const os::Fd client(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_NONBLOCK));
        if (!client) continue;
        read_request(client.get());
        ++asked_;
        send_all(client.get(), answer);
      }
    });
  }
  std::uint16_t port() const { return listener_.port; }
  int asked() const { return asked_; }

 private:
  static void read_request(int client) {
    std::string got;
    std::size_t enough = std::string::npos;
    while (got.size() < enough) {
      const Received more = receive(client, 1);
      got += more.bytes;
      if (more.closed || more.timed_out) return;
      const std::size_t head = got.find("\r\n\r\n");
      const std::size_t length = got.find("Content-Length: ");
      if (head != got.npos && length < head)
        enough = head + 4 + std::stoul(got.substr(length + 16));
    }
  }

  Listener listener_;
  std::atomic<int> asked_ = 0;
  std::jthread thread_;
};

}  // namespace stint::test
