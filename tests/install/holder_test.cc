// stint::Holder, through include/stint only, on a real sqlite: store.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <thread>

#include "base/text.h"
#include "stint/stint.h"
#include "tests/support/process.h"

namespace stint::test {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

// Its own state and configuration, not the user's; before any thread reads the environment.
class HolderTest : public testing::Test {
 protected:
  HolderTest() {
    ::setenv("XDG_STATE_HOME", dir_.file("state").c_str(), 1);
    ::setenv("XDG_CONFIG_HOME", dir_.file("config").c_str(), 1);
    for (const char* name : {"STINT_STORE", "STINT_STORE_FILE", "STINT_OWNER", "RUN_ID"}) {
      ::unsetenv(name);
    }
  }
  Client open() const {
    auto client = Client::open({.store = url_});
    if (client.error() != nullptr) ADD_FAILURE() << client.error()->message;
    return *client;
  }
  static Holder must_acquire(const Client& client, const AcquireOptions& options) {
    auto holder = Holder::acquire(client, options);
    if (holder.error() != nullptr) ADD_FAILURE() << holder.error()->message;
    if (const auto* refused = holder.get_if<Refused>())
      ADD_FAILURE() << "held by " << refused->owner;
    return std::move(*holder);
  }
  static Lease must_get(const Client& client, const std::string& resource = "r") {
    auto lease = client.get(resource);
    if (!lease) ADD_FAILURE() << lease.error()->message;
    return *lease;
  }
  void move_store_away() const {
    for (const char* end : {"", "-wal", "-shm"}) {
      std::error_code ignored;
      std::filesystem::rename(path_ + end, cat(path_, ".away", end), ignored);
    }
  }

  const TempDir dir_;
  const std::string path_ = dir_.file("stint.db");
  const std::string url_ = cat("sqlite:", path_);
};

bool stopped(const Holder& holder, milliseconds within) {
  return wait_until([&] { return holder.stop_token().stop_requested(); }, within);
}

// EVIDENCE-OF: G6
TEST_F(HolderTest, IsRenewedBeyondItsTtl) {
  const Client client = open();
  Holder holder = must_acquire(client, {.resource = "r", .ttl = 1500ms});
  const auto first = holder.deadline();
  const auto end = BootClock::now() + 3500ms;
  ASSERT_TRUE(wait_until([&] { return BootClock::now() >= end; }));
  EXPECT_TRUE(holder.holding());
  EXPECT_FALSE(holder.stop_token().stop_requested());
  EXPECT_GT(holder.deadline(), first + 2000ms);
  const auto seen = holder.check();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->token, 1U);
  EXPECT_FALSE(Holder::acquire(client, {.resource = "r"}));
}

TEST_F(HolderTest, KnowsWhatItHolds) {
  const Client client = open();
  const Holder holder =
      must_acquire(client, {.resource = "r", .owner = "me", .ttl = 30s, .note = "a test"});
  EXPECT_EQ(holder.resource(), "r");
  EXPECT_EQ(holder.owner(), "me");
  EXPECT_EQ(holder.token(), 1U);
  EXPECT_EQ(holder.generation(), must_get(client).generation);
  EXPECT_EQ(holder.previous_progress(), "");
  EXPECT_TRUE(holder.holding());
  EXPECT_FALSE(holder.lost());
  EXPECT_GT(holder.deadline(), BootClock::now());
  EXPECT_LT(holder.deadline(), BootClock::now() + 30s);
}

// With a ttl of 30 s no renewal is due for 9 s: only the wake-up can tell it.
TEST_F(HolderTest, StopsAtOnceWhenRevoked) {
  const Client client = open();
  Holder holder = must_acquire(client, {.resource = "r", .ttl = 30s});
  std::atomic<bool> called = false;
  const std::stop_callback callback(holder.stop_token(), [&] { called = true; });
  const auto before = BootClock::now();
  // Another client: another process would do the same.
  const auto revoked =
      open().revoke({.resource = "r", .expected = 1, .why = "a test", .by = "operator"});
  ASSERT_TRUE(revoked);
  EXPECT_EQ(revoked->token, 2U);
  ASSERT_TRUE(stopped(holder, 5s));
  EXPECT_LT(BootClock::now() - before, 1s);
  EXPECT_TRUE(wait_until([&] { return called.load(); }));
  const auto lost = holder.lost();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->cause, Cause::Revoked);
  EXPECT_EQ(word(lost->cause), "revoked");
  EXPECT_EQ(lost->token, 1U);
  EXPECT_EQ(lost->now.why, "a test");
  EXPECT_FALSE(holder.holding());
  const auto released = holder.release();
  ASSERT_NE(released.get_if<Lost>(), nullptr);
}

TEST_F(HolderTest, StopsAtOnceWhenTransferred) {
  const Client client = open();
  const Holder holder = must_acquire(client, {.resource = "r", .ttl = 30s});
  ASSERT_TRUE(
      client.transfer({.resource = "r", .expected = 1, .why = "a test", .by = ""}, "other"));
  ASSERT_TRUE(stopped(holder, 1s));
  EXPECT_EQ(holder.lost()->cause, Cause::Transferred);
}

// EVIDENCE-OF: G6
TEST_F(HolderTest, StopsByTheDeadlineWhenTheStoreIsGone) {
  const Client client = open();
  Holder holder = must_acquire(client, {.resource = "r", .ttl = 1500ms});
  const auto acquired = BootClock::now();
  move_store_away();
  ASSERT_TRUE(stopped(holder, 5s));
  // The last renewal may have been answered just before the move, never after.
  EXPECT_LT(BootClock::now(), acquired + 1500ms);
  const auto lost = holder.lost();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->cause, Cause::Deadline);
  EXPECT_EQ(lost->now.resource, "r");
  EXPECT_NE(lost->trouble.find("moved"), std::string::npos) << lost->trouble;
  EXPECT_FALSE(holder.holding());
  EXPECT_NE(holder.release().error(), nullptr);
}

TEST_F(HolderTest, AFaultOfTheStoreIsNoLoss) {
  const Client client = open();
  Holder holder = must_acquire(client, {.resource = "r", .ttl = 30s});
  move_store_away();
  const auto seen = holder.check();
  ASSERT_NE(seen.error(), nullptr);
  EXPECT_EQ(seen.error()->code, Code::Unavailable);
  EXPECT_TRUE(holder.holding());
  EXPECT_FALSE(holder.stop_token().stop_requested());
}

TEST_F(HolderTest, AcquiresAnewAfterTheDeadlineWithANewToken) {
  const Client client = open();
  Holder holder = must_acquire(client, {.resource = "r", .ttl = 1s});
  const auto early = holder.reacquire();
  ASSERT_NE(early.error(), nullptr);
  EXPECT_EQ(early.error()->code, Code::Invalid);
  const std::stop_token first_stop = holder.stop_token();
  move_store_away();
  ASSERT_TRUE(stopped(holder, 5s));
  for (const char* end : {"", "-wal", "-shm"}) {
    std::error_code ignored;
    std::filesystem::rename(cat(path_, ".away", end), path_ + end, ignored);
  }
  auto again = holder.reacquire();
  ASSERT_TRUE(again) << (again.error() != nullptr ? again.error()->message : "refused");
  holder = std::move(*again);
  EXPECT_EQ(holder.token(), 2U);
  EXPECT_TRUE(holder.holding());
  EXPECT_TRUE(first_stop.stop_requested());
  EXPECT_FALSE(holder.stop_token().stop_requested());
}

// The exit code of a process that holds until it is told to stop: 75 if it was.
int hold_until_stopped(const std::string& url, int ready) {
  auto client = Client::open({.store = url});
  if (!client) return 69;
  auto holder = Holder::acquire(*client, {.resource = "r", .ttl = 1s});
  if (!holder) return 11;
  if (::write(ready, "x", 1) != 1) return 1;
  if (!wait_until([&] { return !holder->holding(); }, 20s)) return 1;
  // Said no: then the stop was requested before.
  if (!holder->stop_token().stop_requested() || !holder->lost()) return 2;
  return holder->reacquire().get_if<Refused>() != nullptr ? 75 : 3;
}

// EVIDENCE-OF: G6
TEST_F(HolderTest, FrozenPastItsDeadlineStopsFirstWhenItWakes) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(hold_until_stopped(url_, ready[1]));
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(::kill(child, SIGSTOP), 0);
  // Nobody renews: another gets it when the ttl is over.
  const Holder next = must_acquire(open(), {.resource = "r", .ttl = 30s, .wait = 20s});
  EXPECT_EQ(next.token(), 2U);
  ASSERT_EQ(::kill(child, SIGCONT), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 75);
  EXPECT_TRUE(next.holding());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(HolderTest, EndsAtMaxHold) {
  const Client client = open();
  const Holder holder = must_acquire(client, {.resource = "r", .ttl = 1500ms, .max_hold = 2500ms});
  const auto acquired = BootClock::now();
  ASSERT_TRUE(stopped(holder, 5s));
  EXPECT_LT(BootClock::now(), acquired + 2500ms);
  EXPECT_GT(BootClock::now(), acquired + 1500ms);
  EXPECT_EQ(holder.lost()->cause, Cause::MaxHold) << word(holder.lost()->cause);
}

TEST_F(HolderTest, IsFreeAfterReleaseAndASecondOneIsNoError) {
  const Client client = open();
  Holder holder = must_acquire(client, {.resource = "r", .ttl = 30s});
  ASSERT_TRUE(holder.release());
  EXPECT_FALSE(must_get(client).held);
  EXPECT_TRUE(holder.release());
  EXPECT_FALSE(holder.holding());
  EXPECT_FALSE(holder.lost());
  EXPECT_FALSE(holder.stop_token().stop_requested());
  const auto seen = holder.check();
  ASSERT_NE(seen.get_if<Lost>(), nullptr);
  EXPECT_EQ(must_acquire(client, {.resource = "r"}).token(), 2U);
}

TEST_F(HolderTest, IsReleasedByTheDestructorAndByAssignment) {
  const Client client = open();
  {
    const Holder holder = must_acquire(client, {.resource = "r", .ttl = 30s});
    EXPECT_TRUE(must_get(client).held);
  }
  EXPECT_FALSE(must_get(client).held);
  Holder one = must_acquire(client, {.resource = "one", .ttl = 30s});
  Holder moved = std::move(one);
  EXPECT_TRUE(moved.holding());
  moved = must_acquire(client, {.resource = "two", .ttl = 30s});
  EXPECT_FALSE(must_get(client, "one").held);
  EXPECT_TRUE(must_get(client, "two").held);
  EXPECT_EQ(moved.resource(), "two");
}

TEST_F(HolderTest, OutlivesItsClient) {
  std::optional<Client> client = open();
  Holder holder = must_acquire(*client, {.resource = "r", .ttl = 30s});
  client.reset();
  EXPECT_TRUE(holder.check());
  EXPECT_TRUE(holder.release());
}

// EVIDENCE-OF: G2
TEST_F(HolderTest, TwoOfOneOwnerExcludeEachOther) {
  const Client client = open();
  const Holder first =
      must_acquire(client, {.resource = "r", .owner = "me", .ttl = 30s, .note = "publishing"});
  const auto second = Holder::acquire(client, {.resource = "r", .owner = "me"});
  const auto* refused = second.get_if<Refused>();
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(second.error(), nullptr);
  EXPECT_EQ(refused->owner, "me");
  EXPECT_EQ(refused->token, 1U);
  EXPECT_EQ(refused->state, "held");
  EXPECT_EQ(refused->note, "publishing");
  ASSERT_TRUE(refused->since);
  ASSERT_TRUE(refused->remaining);
  EXPECT_LE(*refused->remaining, 30s);
  EXPECT_GT(*refused->remaining, 20s);
}

TEST_F(HolderTest, WaitsUntilTheOtherReleases) {
  const Client client = open();
  Holder first = must_acquire(client, {.resource = "r", .ttl = 30s});
  auto waiting = std::async(std::launch::async, [this] {
    return must_acquire(open(), {.resource = "r", .ttl = 30s, .wait = 20s}).token();
  });
  // It may be waiting already, or not: both end the same way.
  const auto before = BootClock::now();
  ASSERT_TRUE(first.release());
  EXPECT_EQ(waiting.get(), 2U);
  EXPECT_LT(BootClock::now() - before, 5s);
}

TEST_F(HolderTest, IsRefusedWhenTheWaitIsOver) {
  const Client client = open();
  const Holder first = must_acquire(client, {.resource = "r", .owner = "first", .ttl = 30s});
  const auto before = BootClock::now();
  const auto second = Holder::acquire(client, {.resource = "r", .wait = 500ms});
  ASSERT_NE(second.get_if<Refused>(), nullptr);
  EXPECT_EQ(second.get_if<Refused>()->owner, "first");
  EXPECT_GE(BootClock::now() - before, 500ms);
}

TEST_F(HolderTest, AWaitCanBeCancelled) {
  const Client client = open();
  const Holder first = must_acquire(client, {.resource = "r", .owner = "first", .ttl = 30s});
  std::stop_source cancel;
  auto waiting = std::async(std::launch::async, [&] {
    return Holder::acquire(client,
                           {.resource = "r", .wait = kForever, .cancel = cancel.get_token()});
  });
  EXPECT_EQ(waiting.wait_for(200ms), std::future_status::timeout);
  cancel.request_stop();
  ASSERT_EQ(waiting.wait_for(5s), std::future_status::ready);
  const auto second = waiting.get();
  ASSERT_NE(second.get_if<Refused>(), nullptr);
  EXPECT_EQ(second.get_if<Refused>()->owner, "first");
}

TEST_F(HolderTest, HandsItsProgressOn) {
  const Client client = open();
  {
    Holder first = must_acquire(client, {.resource = "r", .ttl = 30s});
    ASSERT_TRUE(first.progress("page 40 of 200"));
    EXPECT_EQ(must_get(client).progress, "page 40 of 200");
    const auto second = Holder::acquire(client, {.resource = "r"});
    ASSERT_NE(second.get_if<Refused>(), nullptr);
    EXPECT_EQ(second.get_if<Refused>()->progress, "page 40 of 200");
  }
  EXPECT_EQ(must_acquire(client, {.resource = "r"}).previous_progress(), "page 40 of 200");
}

TEST_F(HolderTest, ProgressOfALostLeaseIsRefusedAndStops) {
  const Client client = open();
  Holder holder = must_acquire(client, {.resource = "r", .ttl = 30s});
  ASSERT_TRUE(client.revoke({.resource = "r", .expected = 1, .why = "a test", .by = ""}));
  const auto told = holder.progress("late");
  ASSERT_NE(told.get_if<Lost>(), nullptr);
  EXPECT_EQ(told.get_if<Lost>()->cause, Cause::Revoked);
  EXPECT_TRUE(holder.stop_token().stop_requested());
}

TEST_F(HolderTest, RefusesWhatMakesNoSense) {
  const Client client = open();
  const AcquireOptions bad[] = {
      {.resource = ""},
      {.resource = "a\nb"},
      {.resource = "r", .owner = "a\nb"},
      {.resource = "r", .ttl = -1s},
      {.resource = "r", .ttl = 10s, .stop_within = 9s},
      {.resource = "r", .ttl = 10s, .stop_within = -1s},
      {.resource = "r", .ttl = 10s, .max_hold = 5s},
      {.resource = "r", .wait = -1s},
  };
  for (const AcquireOptions& options : bad) {
    const auto holder = Holder::acquire(client, options);
    ASSERT_NE(holder.error(), nullptr);
    EXPECT_EQ(holder.error()->code, Code::Invalid) << holder.error()->message;
  }
  EXPECT_EQ(must_get(client).token, 0U);
}

// Inside a stop callback nothing should be released; if it is, nothing hangs.
TEST_F(HolderTest, MayBeDestroyedInsideItsOwnStopCallback) {
  const Client client = open();
  auto holder = std::make_unique<Holder>(must_acquire(client, {.resource = "r", .ttl = 30s}));
  std::atomic<bool> gone = false;
  const std::stop_callback callback(holder->stop_token(), [&] {
    holder.reset();
    gone = true;
  });
  ASSERT_TRUE(client.revoke({.resource = "r", .expected = 1, .why = "a test", .by = ""}));
  EXPECT_TRUE(wait_until([&] { return gone.load(); }, 5s));
}

// A signal of the program is for its own threads, whatever the library does.
TEST_F(HolderTest, ItsThreadsTakeNoSignals) {
  const Client client = open();
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  const Holder holder = must_acquire(client, {.resource = "r", .ttl = 30s});
  // Blocked here, after the threads started: a thread of theirs that took it would end the program.
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &usr1, nullptr), 0);
  ASSERT_EQ(kill(getpid(), SIGUSR1), 0);
  const timespec patience{.tv_sec = 5, .tv_nsec = 0};
  EXPECT_EQ(sigtimedwait(&usr1, nullptr, &patience), SIGUSR1);
  ASSERT_EQ(pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr), 0);
}

// EVIDENCE-OF: G1 G2
TEST_F(HolderTest, ManyThreadsTakeTurns) {
  constexpr int kThreads = 8;
  const Client client = open();
  std::atomic<int> inside = 0;
  std::atomic<int> overlaps = 0;
  std::atomic<std::uint64_t> highest = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        const Holder holder = must_acquire(client, {.resource = "r", .ttl = 30s, .wait = 60s});
        if (++inside != 1) ++overlaps;
        if (highest.exchange(holder.token()) >= holder.token()) ++overlaps;
        --inside;
      });
    }
  }
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(highest, static_cast<std::uint64_t>(kThreads));
}

// One client for many threads, each with leases of its own: for the thread sanitizer above all.
TEST_F(HolderTest, ManyThreadsShareOneClient) {
  const Client client = open();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&client, i] {
      for (std::uint64_t token = 1; token <= 5; ++token) {
        Holder holder = must_acquire(client, {.resource = cat("r", i), .ttl = 30s});
        EXPECT_EQ(holder.token(), token);
        EXPECT_TRUE(holder.progress("half"));
        EXPECT_TRUE(holder.check());
        EXPECT_TRUE(holder.holding());
      }
    });
  }
}

TEST_F(HolderTest, TheClientListsAndGets) {
  const Client client = open();
  const Holder a = must_acquire(client, {.resource = "site/a", .ttl = 30s});
  const Holder b = must_acquire(client, {.resource = "site/b", .ttl = 30s});
  const auto all = client.list("site/");
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ(all->front().resource, "site/a");
  EXPECT_EQ(all->front().state, "held");
  const Lease none = must_get(client, "never");
  EXPECT_FALSE(none.held);
  EXPECT_EQ(none.token, 0U);
  const auto wrong =
      client.revoke({.resource = "site/a", .expected = 7, .why = "a test", .by = ""});
  ASSERT_NE(wrong.get_if<Lost>(), nullptr);
  EXPECT_EQ(wrong.get_if<Lost>()->cause, Cause::WrongToken);
  EXPECT_TRUE(a.holding());
}

TEST_F(HolderTest, WithoutAStoreItIsTheOneOfTheProgram) {
  ASSERT_TRUE(Client::open());
  EXPECT_TRUE(std::filesystem::exists(dir_.file("state/stint/stint.db")));
  ::setenv("STINT_STORE", url_.c_str(), 1);
  ASSERT_TRUE(Client::open());
  EXPECT_TRUE(std::filesystem::exists(path_));
}

// EVIDENCE-OF: G11
TEST_F(HolderTest, AHostWithoutStandardDescriptorsWritesIntoNoStore) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    const auto client = Client::open({.store = cat("log:", dir_.file("leases"))});
    const auto holder = Holder::acquire(*client, {.resource = "r"});
    char byte = 'x';
    const bool refused =
        ::read(0, &byte, 1) < 0 && ::write(1, &byte, 1) < 0 && ::write(2, &byte, 1) < 0;
    ::_exit(holder && refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(HolderTest, AStoreThatMakesNoSenseIsInvalid) {
  const auto client = Client::open({.store = "carrier-pigeon:coop"});
  ASSERT_NE(client.error(), nullptr);
  EXPECT_EQ(client.error()->code, Code::Invalid) << client.error()->message;
}

TEST_F(HolderTest, AStoreThatIsNotThereIsUnavailableIfItMayNotBeMade) {
  const auto client =
      Client::open({.store = cat("sqlite:", dir_.file("no.db")), .may_create = false});
  ASSERT_NE(client.error(), nullptr);
  EXPECT_EQ(client.error()->code, Code::Unavailable) << client.error()->message;
}

}  // namespace
}  // namespace stint::test
