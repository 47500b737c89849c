// Clients whose clock is hours off, on every store: they take, renew, run, wait and see leases as
// everybody else does.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/cli/faketime.h"
#include "tests/cli/stint.h"
#include "tests/cli/stores/restorable.h"

namespace stint::test {
namespace {

using std::chrono::milliseconds;

class ClientClock : public ::testing::TestWithParam<RestorableKind> {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_FAKETIME();
    const std::string why = store_->start();
    if (why.find("not installed") != std::string::npos) GTEST_SKIP() << why;
    ASSERT_EQ(why, "");
    stint_.use_store(store_->url());
  }
  Command by(const char* offset, std::vector<std::string> words) const {
    return stepped(stint_.command(std::move(words)), offset);
  }
  // etcd counts whole seconds, and asks for two.
  bool slow() const { return GetParam().store == "etcd"; }

  const std::unique_ptr<Restorable> store_ = GetParam().make();
  Stint stint_;
};

constexpr const char* kAhead = "+5h";
constexpr const char* kBehind = "-5h";

// EVIDENCE-OF: G1 G2 G4
TEST_P(ClientClock, ChangesNothing) {
  const std::string ttl = slow() ? "2s" : "1s";
  const milliseconds length(slow() ? 2'000 : 1'000);
  const milliseconds late(slow() ? 4'000 : 1'500);
  ASSERT_EQ(run(by(kAhead, {"run", "r", "--", "true"})).exit_code, 0);
  const std::string stop = stint_.dir().file("stop");
  const std::string work = cat("while [ ! -e ", stop, " ]; do sleep 0.05; done");
  Child ahead(by(kAhead, {"run", "ahead", "--ttl", ttl, "--", "sh", "-c", work}));
  Child behind(by(kBehind, {"run", "behind", "--ttl", ttl, "--", "sh", "-c", work}));

  // A lease of the right clock ends for a wrong one when it ends, and the other way round.
  std::uint64_t token = 1;
  MonoTime before = now();
  Finished last = stint_({"acquire", "r", "--ttl", ttl});
  MonoTime after = now();
  for (const char* offset : {kAhead, kBehind, "+0"}) {
    ASSERT_EQ(last.exit_code, 0) << last.err;
    EXPECT_GT(parse_digits(trim(last.out)).value_or(0), token);
    token = parse_digits(trim(last.out)).value_or(0);
    EXPECT_EQ(run(by(offset, {"acquire", "r"})).exit_code, 11);
    const std::string shown = run(by(offset, {"show", "r", "--json"})).out;
    EXPECT_EQ(json_field(shown, "held"), "true") << shown;
    const auto left = parse_digits(json_field(shown, "remaining_ms"));
    EXPECT_LE(left.value_or(0), static_cast<std::uint64_t>(length.count())) << shown;
    const MonoTime sent = now();
    last = run(by(offset, {"acquire", "r", "--wait", "20s", "--ttl", ttl}));
    const MonoTime taken = now();
    EXPECT_GE(taken - before, length) << "early, seen by " << offset;
    EXPECT_LE(taken - after, length + late) << "late, seen by " << offset;
    before = sent;
    after = taken;
  }
  const std::string shown = cat(token + 1);
  EXPECT_EQ(run(by(kBehind, {"renew", "r", "--token", shown})).exit_code, 0);
  // The runs have been renewed again and again meanwhile.
  for (Child* holder : {&ahead, &behind}) EXPECT_TRUE(holder->running()) << holder->err();
  for (const char* name : {"ahead", "behind"}) {
    EXPECT_TRUE(stint_.held(name));
    EXPECT_EQ(stint_.lease(name, "token"), "1");
  }
  write_text(stop, "x");
  for (Child* holder : {&ahead, &behind}) {
    const auto exit = holder->wait(milliseconds(10'000));
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, 0) << holder->err();
  }
  EXPECT_EQ(stint_.events({"store_clock_stepped"}), 0);
}

INSTANTIATE_TEST_SUITE_P(Store, ClientClock, ::testing::ValuesIn(one_of_each_store()),
                         [](const auto& kind) { return kind.param.store; });

}  // namespace
}  // namespace stint::test
