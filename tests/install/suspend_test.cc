// stint::Holder on a machine that sleeps (played: tests/cli/preload/asleep.cc). Each case runs in a
// program of its own, this very one, with the played clocks preloaded.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "stint/stint.h"
#include "tests/support/asleep.h"

namespace stint::test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kInside = "STINT_TEST_INSIDE";

class SuspendedHolder : public testing::Test {
 protected:
  static bool inside() { return ::getenv(kInside) != nullptr; }

  // Runs the present case again, inside; true: done, there is nothing more to do out here.
  static bool ran_inside() {
    if (inside()) return false;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;  // a sanitizer will not have another library before its own
#endif
    const TempDir dir;
    const Machine machine(dir.file("asleep"));
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    const Command again{
        .argv = {std::filesystem::read_symlink("/proc/self/exe").string(),
                 cat("--gtest_filter=", info->test_suite_name(), ".", info->name())},
        .env = {{kInside, dir.path()},
                {"XDG_STATE_HOME", dir.file("state")},
                {"XDG_CONFIG_HOME", dir.file("config")},
                {"STINT_STORE", cat("sqlite:", dir.file("stint.db"))},
                {"STINT_OWNER", std::nullopt},
                {"RUN_ID", std::nullopt}}};
    const Finished done = run(machine.here(again, ASLEEP), Millis(60'000));
    EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
    return true;
  }

  static Machine machine() { return Machine(cat(::getenv(kInside), "/asleep")); }
};

// EVIDENCE-OF: G6
TEST_F(SuspendedHolder, BeforeTheDeadlineNothingChanges) {
  if (ran_inside()) return;
  Machine machine = this->machine();
  const auto client = Client::open();
  ASSERT_TRUE(client);
  auto holder = Holder::acquire(*client, {.resource = "r", .ttl = 60s});
  ASSERT_TRUE(holder);
  for (int i = 0; i < 3; ++i) {
    const auto before = holder->deadline();
    machine.suspend(40s);
    EXPECT_TRUE(holder->holding());
    ASSERT_TRUE(wait_until([&] { return holder->deadline() > before + 30s; })) << "not renewed";
  }
  EXPECT_FALSE(holder->stop_token().stop_requested());
  EXPECT_EQ(holder->token(), 1U);
}

// EVIDENCE-OF: G6
TEST_F(SuspendedHolder, PastTheTtlItStopsFirstAndAcquiresAnewWithANewToken) {
  if (ran_inside()) return;
  Machine machine = this->machine();
  const auto client = Client::open();
  ASSERT_TRUE(client);
  auto holder = Holder::acquire(*client, {.resource = "r", .ttl = 60s});
  ASSERT_TRUE(holder);
  const std::stop_token stop = holder->stop_token();
  machine.suspend(600s);
  // Whoever asks first after the wake-up is told no, and the stop was requested by then.
  EXPECT_FALSE(holder->holding());
  EXPECT_TRUE(stop.stop_requested());
  auto again = holder->reacquire();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->token(), 2U);
  EXPECT_TRUE(again->holding());
  EXPECT_FALSE(again->stop_token().stop_requested());
}

TEST_F(SuspendedHolder, ThatNobodyAsksStopsByItselfAtTheWakeUp) {
  if (ran_inside()) return;
  Machine machine = this->machine();
  const auto client = Client::open();
  ASSERT_TRUE(client);
  auto holder = Holder::acquire(*client, {.resource = "r", .ttl = 60s});
  ASSERT_TRUE(holder);
  const std::stop_token stop = holder->stop_token();
  machine.suspend(55s);  // past the deadline, before the ttl: the store would still renew it
  EXPECT_TRUE(wait_until([&] { return stop.stop_requested(); }));
  EXPECT_FALSE(holder->holding());
}

}  // namespace
}  // namespace stint::test
