// etcd://: a database that is full. A member that finds it full while it applies a transaction
// carries that out and answers "space exceeded" all the same; mostly it refuses beforehand, in the
// same words.
#include <sys/socket.h>

#include <atomic>
#include <functional>

#include "tests/fault/etcd_fixture.h"
#include "tests/support/loopback.h"

namespace stint::test {
namespace {

// Between the store and a real etcd, one request a connection.
class FullEtcd {
 public:
  enum class Full { No, Beforehand, WhenApplied };

  explicit FullEtcd(std::uint16_t server) : server_(server), listener_(listen_loopback()) {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        os::wait_readable({listener_.fd.get()}, now() + Millis(20));
        const os::Fd client(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_NONBLOCK));
        if (client) send_all(client.get(), answer(request_of(client.get())));
      }
    });
  }
  std::uint16_t port() const { return listener_.port; }
  void set(Full full) { full_ = full; }
  // What another does between a transaction that was carried out and the word that it was not.
  // REQUIRES: before set().
  void then(std::function<void()> other) { then_ = std::move(other); }

 private:
  static std::string request_of(int client) {
    constexpr std::string_view kLength = "Content-Length: ";
    std::string got;
    std::size_t enough = 1;
    while (got.size() < enough) {
      const Received more = receive(client, 1);
      got += more.bytes;
      if (more.closed || more.timed_out) return got;
      const std::size_t head = got.find("\r\n\r\n");
      const std::size_t length = got.find(kLength);
      enough = head == got.npos ? got.size() + 1 : head + 4;
      if (head != got.npos && length < head)
        enough += std::stoul(got.substr(length + kLength.size()));
    }
    return got;
  }
  std::string answer(std::string request) const {
    const bool writes = request.find("request_put") != request.npos ||
                        request.find("request_delete_range") != request.npos;
    const Full full = writes ? full_.load() : Full::No;
    request.insert(request.find("\r\n") + 2, "Connection: close\r\n");
    std::string said;
    if (full != Full::Beforehand) said = ask(server_, request, SIZE_MAX, Millis(5'000)).bytes;
    if (full == Full::No) return said;
    if (then_) then_();
    const std::string body = R"({"error":"etcdserver: mvcc: database space exceeded",)"
                             R"("message":"etcdserver: mvcc: database space exceeded","code":8})";
    return cat("HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\n",
               "Connection: close\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
  }

  const std::uint16_t server_;
  std::function<void()> then_;
  std::atomic<Full> full_ = Full::No;
  Listener listener_;
  std::jthread thread_;
};

class EtcdSpace : public ::testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_ETCD();
    ASSERT_TRUE(etcd_.start());
    full_ = std::make_unique<FullEtcd>(etcd_.node(0).port());
    store_ = open_etcd({full_->port()});
    ASSERT_NE(store_, nullptr);
    ASSERT_EQ(outcome(store_->commit({started("t", Millis(60'000))}, {})), "done");
  }
  store::Version version(const std::string& key) {
    return store_->read({key})->entries.front().version;
  }
  Step expecting(Step step) {
    step.version = version(step.key);
    step.expect = step.version == 0 ? store::Expect::Absent : store::Expect::Seen;
    return step;
  }
  // A record that is made, one that is changed, a timer, and a record that goes.
  std::vector<std::function<Step()>> all_kinds() {
    return {[&] { return expecting(step_on(Step::Kind::Set, "new", "v")); },
            [&] { return expecting(step_on(Step::Kind::Set, "t", "w")); },
            [] { return extended("t", Millis(90'000)); },
            [&] { return expecting(step_on(Step::Kind::Remove, "t")); }};
  }
  // Whatever a commit may have changed.
  std::string state() {
    const auto entries = store_->read({"new", "t"})->entries;
    return cat(entries[0].version, ' ', entries[1].version, ' ',
               entries[1].timer.ttl.value_or(Millis(0)).count());
  }

  EtcdCluster etcd_;
  std::unique_ptr<FullEtcd> full_;
  std::unique_ptr<EtcdStore> store_;
};

TEST_F(EtcdSpace, ACommitThatWasCarriedOutIsNotToldAsRefused) {
  for (const auto& make : all_kinds()) {
    const Step step = make();
    const std::string before = state();
    full_->set(FullEtcd::Full::WhenApplied);
    EXPECT_EQ(outcome(store_->commit({step}, {})), "unknown_outcome") << step.key;
    full_->set(FullEtcd::Full::No);
    EXPECT_NE(state(), before);
  }
}

// Somebody claims an item in the moment in which it was put: its place is empty again.
TEST_F(EtcdSpace, ARecordThatIsGoneAgainDoesNotShowThatItWasNeverMade) {
  const auto other = open_etcd({etcd_.node(0).port()});
  ASSERT_NE(other, nullptr);
  std::string removed;
  full_->then([&] { removed = outcome(other->commit({step_on(Step::Kind::Remove, "new")}, {})); });
  full_->set(FullEtcd::Full::WhenApplied);
  EXPECT_EQ(outcome(store_->commit({expecting(step_on(Step::Kind::Set, "new", "v"))}, {})),
            "unknown_outcome");
  full_->set(FullEtcd::Full::No);
  EXPECT_EQ(removed, "done");
  EXPECT_EQ(version("new"), 0U);
}

TEST_F(EtcdSpace, ACommitThatWasRefusedIsToldAsThatWhereItShows) {
  const std::string before = state();
  full_->set(FullEtcd::Full::Beforehand);
  for (const auto& make : all_kinds()) {
    const Step step = make();
    const bool shows = step.expect == store::Expect::Seen;
    const auto answer = store_->commit({step}, {});
    ASSERT_EQ(outcome(answer), shows ? "unavailable" : "unknown_outcome") << step.key;
    EXPECT_NE(answer.error().message.find("database space exceeded"), std::string::npos);
  }
  EXPECT_EQ(state(), before);
}

}  // namespace
}  // namespace stint::test
