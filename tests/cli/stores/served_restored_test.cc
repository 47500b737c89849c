// A store that is put back under a running `stint serve`: the server refuses it as a command that
// starts does, says so, and gives no token of the lost span again. On every store, however far the
// store is put back, and whoever made the commits that are lost.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include "base/text.h"
#include "tests/cli/stint.h"
#include "tests/cli/stores/restorable.h"
#include "tests/support/loopback.h"
#include "tests/support/slice.h"

namespace stint::test {
namespace {

enum class Way { OneCommit, OneCommitOfAnother, AsManyAsWereMadeSince, ToEmpty };

std::string word(Way way) {
  switch (way) {
    case Way::OneCommit: return "OneCommit";
    case Way::OneCommitOfAnother: return "OneCommitOfAnother";
    case Way::AsManyAsWereMadeSince: return "AsManyAsWereMadeSince";
    case Way::ToEmpty: return "ToEmpty";
  }
  return {};
}

std::optional<std::uint64_t> granted_in(const Finished& done) {
  return done.exit_code == 0 ? parse_digits(trim(done.out)) : std::nullopt;
}

class ServedRestored : public ::testing::TestWithParam<std::tuple<RestorableKind, Way>> {
 protected:
  void SetUp() override {
    const std::string why = store_->start();
    if (why.find("not installed") != std::string::npos) GTEST_SKIP() << why;
    ASSERT_EQ(why, "");
    direct_.use_store(store_->url());
    stranger_.use_store(store_->url());
    if (kind().alone && way() == Way::OneCommitOfAnother) {
      GTEST_SKIP() << "nobody but the server has this store";
    }
    serve();
  }
  static const RestorableKind& kind() { return std::get<0>(GetParam()); }
  static Way way() { return std::get<1>(GetParam()); }

  void serve() {
    server_.reset();
    server_ =
        std::make_unique<Child>(direct_.command({"serve", "--listen", cat("127.0.0.1:", port_)}));
    ASSERT_TRUE(wait_until([&] {
      return server_->err().find("listening on") != std::string::npos;
    })) << server_->err();
    served_.use_store(cat("http://127.0.0.1:", port_));
  }
  std::string ask_readyz() const {
    return ask(port_, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 13,
               Millis(10'000))
        .bytes.substr(0, 12);
  }
  // One commit: the grant of a resource that nobody has.
  static std::optional<std::uint64_t> take(const Stint& world, const std::string& resource) {
    return granted_in(world({"acquire", resource, "--ttl", "1h"}));
  }
  // Grants that are lost: each resource's token.
  void lose(const Stint& world, const std::string& resource) {
    const auto token = take(world, resource);
    ASSERT_TRUE(token) << resource;
    lost_.emplace(resource, *token);
  }
  static Finished grant(const Stint& world, const std::string& resource) {
    return world({"run", resource, "--on-held", "wait=30s", "--", "printenv", "STINT_TOKEN"},
                 Millis(60'000));
  }
  // What somebody tries in the restored store, again and again.
  void attempt(const Stint& world, const std::string& who) const {
    for (const auto& [resource, token] : lost_) {
      const Finished done = grant(world, resource);
      if (done.exit_code != 0) {
        EXPECT_EQ(done.exit_code, 69) << who << ": " << done.err;
        continue;
      }
      EXPECT_TRUE(kind().reserves) << who << " got " << resource << " " << done.out;
      EXPECT_GT(granted_in(done), token) << who << ", " << resource;
    }
  }
  // After the operator's word: the server and commands side by side.
  void go_on() const {
    std::mutex mutex;
    std::map<std::string, std::set<std::uint64_t>> given;
    const auto work = [&](const Stint& world) {
      for (int round = 0; round < rounds(); ++round) {
        for (const auto& [resource, token] : lost_) {
          const Finished done = grant(world, resource);
          const std::lock_guard lock(mutex);
          EXPECT_GT(granted_in(done), token) << resource << ": " << done.err;
          EXPECT_TRUE(given[resource].insert(granted_in(done).value_or(0)).second) << done.out;
        }
      }
    };
    std::thread served([&] { work(served_); });
    if (!kind().alone) work(direct_);
    served.join();
  }
  // A hundred of each side by STINT_RESTORED_ROUNDS=100.
  static int rounds() { return asked("STINT_RESTORED_ROUNDS", 3); }

  const std::unique_ptr<Restorable> store_ = kind().make();
  const std::uint16_t port_ = free_port();
  Stint direct_;
  Stint served_;    // asks the server
  Stint stranger_;  // remembers nothing
  std::unique_ptr<Child> server_;
  std::set<std::pair<std::string, std::uint64_t>> lost_;
};

// EVIDENCE-OF: G1 G12
TEST_P(ServedRestored, IsRefusedByTheServerAndNoTokenOfTheLostSpanComesTwice) {
  ASSERT_TRUE(take(served_, "before"));
  if (!kind().alone) {
    ASSERT_TRUE(take(direct_, "too"));
  }
  store_->back_up();
  if (way() != Way::OneCommitOfAnother) lose(served_, "a");
  if (way() == Way::OneCommitOfAnother) lose(direct_, "a");
  if (way() == Way::AsManyAsWereMadeSince || way() == Way::ToEmpty) {
    for (const char* resource : {"b", "c"}) lose(served_, resource);
    if (!kind().alone) lose(direct_, "d");
  }
  way() == Way::ToEmpty ? store_->empty() : store_->put_back();
  if (way() == Way::AsManyAsWereMadeSince && !kind().alone) {
    // Nobody can be kept from it who remembers nothing.
    for (const auto& [resource, token] : lost_) take(stranger_, resource);
  }
  for (int round = 0; round < rounds(); ++round) {
    attempt(served_, "the server");
    if (!kind().alone) attempt(direct_, "a command");
  }
  if (!kind().reserves || way() == Way::ToEmpty) {
    EXPECT_TRUE(wait_until([&] { return ask_readyz().ends_with("503"); }, Millis(10'000)));
    EXPECT_TRUE(wait_until(
        [&] { return server_->err().find("the store has trouble") != std::string::npos; },
        Millis(15'000)))
        << server_->err();
  }

  for (const auto& [resource, token] : lost_) {
    stranger_({"release", resource, "--token", cat(token)});
  }
  if (kind().alone) server_.reset();
  const Finished word =
      direct_({"doctor", "--accept-restored", "--why", "the restored one is to be used"});
  ASSERT_EQ(word.exit_code, 0) << word.err;
  if (kind().replaces) serve();
  EXPECT_TRUE(wait_until([&] { return ask_readyz().ends_with("200"); }, Millis(10'000)))
      << server_->err();
  go_on();
}

INSTANTIATE_TEST_SUITE_P(
    Store, ServedRestored,
    ::testing::Combine(::testing::ValuesIn(restorable_kinds()),
                       ::testing::Values(Way::OneCommit, Way::OneCommitOfAnother,
                                         Way::AsManyAsWereMadeSince, Way::ToEmpty)),
    [](const auto& kind) { return std::get<0>(kind.param).name + word(std::get<1>(kind.param)); });

}  // namespace
}  // namespace stint::test
