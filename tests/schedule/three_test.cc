// Three real schedulers whose wall clocks are 45 s behind, right, and 45 s ahead, on one store,
// killed with -9 at random and restarted. A slice in `make test`; `make soak` asks for ten minutes
// (STINT_SCHEDULE_SECONDS) on each store.
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "os/clock.h"
#include "tests/cli/faketime.h"
#include "tests/cli/stint.h"
#include "tests/support/servers.h"
#include "tests/support/slice.h"

namespace stint::test {
namespace {

namespace json = boost::json;

constexpr Millis kPatience{120'000};
constexpr int kBackfill = 2;

class ThreeSchedulers : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_FAKETIME();
    if (GetParam() != "dir" && asked("STINT_SCHEDULE_SECONDS", 0) == 0) {
      GTEST_SKIP() << "STINT_SCHEDULE_SECONDS is not set: schedule soak";
    }
    std::string url = "dir:" + stint_.dir().file("store");
    if (GetParam() == "postgres") {
      if (const std::string why = PostgresServer::missing(); !why.empty()) GTEST_SKIP() << why;
      server_ = std::make_unique<PostgresServer>();
    } else if (GetParam() == "redis") {
      if (const std::string why = RedisServer::missing(); !why.empty()) GTEST_SKIP() << why;
      server_ = std::make_unique<RedisServer>();
    }
    if (server_) {
      ASSERT_TRUE(server_->start().has_value()) << server_->log();
      url = server_->url();
    }
    stint_.use_store(url);
    write_text(file(), cat(job("often", 1), job("seldom", 5)));
  }
  std::string file() const { return stint_.dir().file("stint.toml"); }
  std::string log() const { return stint_.dir().file("log"); }
  std::string job(const std::string& name, int seconds) const {
    return cat("[job.", name, "]\nschedule='*/", seconds,
               " * * * * *'\nttl='3s'\nmax_backfill=", kBackfill, "\nretries=1\nbackoff='1s'\n",
               "command='echo ", name, " $STINT_SLOT_KEY $STINT_ATTEMPT >>", log(), "; sleep 0.",
               seconds, "'\n");
  }
  Command scheduler(std::size_t i) const {
    static constexpr const char* kOff[] = {"-45s", "+0s", "+45s"};
    return stepped(stint_.command({"cron", file(), "-q", "--drain", "20s"}), kOff[i]);
  }
  static void kill9(Child& child, bool with_runs) {
    if (with_runs) {
      for (const pid_t pid : descendants(child.pid())) ::kill(pid, SIGKILL);
    }
    child.signal(SIGKILL);
    ASSERT_TRUE(child.wait(kPatience));
  }
  json::array slots(const std::string& name) const {
    const Finished done = stint_({"slots", name, "--json", "-n", "100000"}, kPatience);
    return json::parse(done.out).as_array();
  }
  bool at_rest(const std::string& name) const {
    for (const json::value& row : slots(name)) {
      const auto state = row.at("state").as_string();
      if (state == "due" || state == "claimed" || state == "starting" || state == "running") {
        return false;
      }
    }
    return true;
  }

  std::int64_t stint_wall() const { return to_ms(os::SystemClock().wall()); }
  // The last slot that was decided.
  std::int64_t newest(const std::string& name) const {
    const json::array all = slots(name);
    return all.empty() ? 0 : all.back().at("at_ms").as_int64();
  }

  // Every slot from the first to the last, once; and what ran was started once an attempt.
  void account(const std::string& name, int seconds) const {
    std::map<std::string, int> starts;
    const std::string lines = read_text(log());
    for (const std::string_view line : split(lines, '\n')) {
      if (line.starts_with(name + " ")) ++starts[std::string(line.substr(name.size() + 1))];
    }
    for (const auto& [key, count] : starts) EXPECT_EQ(count, 1) << key << " started twice";
    std::int64_t last = 0;
    std::map<std::string, int> states;
    for (const json::value& row : slots(name)) {
      const std::int64_t at = row.at("at_ms").as_int64();
      EXPECT_TRUE(last == 0 || at - last == 1000 * seconds) << row.at("key").as_string();
      last = at;
      const std::string state(row.at("state").as_string());
      ++states[state];
      const std::string key =
          cat(std::string(row.at("key").as_string()), " ", row.at("attempt").as_int64());
      const bool started = starts.contains(key);
      EXPECT_TRUE(started || state != "ran") << key << " was never started";
      EXPECT_FALSE(started && state.starts_with("skipped_")) << key << " " << state;
    }
    std::string text;
    for (const auto& [state, count] : states) text += cat(" ", state, " ", count);
    std::printf("%s, %s: %d starts;%s\n", GetParam().c_str(), name.c_str(),
                static_cast<int>(starts.size()), text.c_str());
    EXPECT_GT(states["ran"], 0);
  }

  Stint stint_;
  std::unique_ptr<Server> server_;
};

// EVIDENCE-OF: G9
TEST_P(ThreeSchedulers, EachAttemptStartsOnceAndEverySlotIsAccountedFor) {
  const Millis length = std::chrono::seconds(asked("STINT_SCHEDULE_SECONDS", 4));
  SeededRandom random(static_cast<std::uint64_t>(now().time_since_epoch().count()));
  std::vector<std::unique_ptr<Child>> children;
  for (std::size_t i = 0; i < 3; ++i) children.push_back(std::make_unique<Child>(scheduler(i)));
  ASSERT_TRUE(wait_until([&] { return !read_text(log()).empty(); }, kPatience))
      << children[1]->err();
  const MonoTime end = now() + length;
  int kills = 0;
  while (now() < end) {
    const MonoTime next = now() + Millis(500 + random.below(2500));
    wait_until([&] { return now() >= next; }, Millis(5000));
    const std::size_t victim = random.below(3);
    kill9(*children[victim], random.below(3) == 0);
    children[victim] = std::make_unique<Child>(scheduler(victim));
    ++kills;
  }
  // An outage of all of them: of what it missed at most max_backfill run.
  for (auto& child : children) kill9(*child, true);
  const std::int64_t down = stint_wall();
  wait_until([&] { return stint_wall() >= down + 5000; }, Millis(20'000));
  const std::int64_t up = stint_wall();
  for (std::size_t i = 0; i < 3; ++i) children[i] = std::make_unique<Child>(scheduler(i));
  ASSERT_TRUE(wait_until([&] { return newest("often") > up + 2000; }, kPatience));
  for (auto& child : children) child->signal(SIGTERM);
  for (auto& child : children) ASSERT_TRUE(child->wait(kPatience)) << child->err();
  // One that is left alone clears up what the others left.
  {
    Child last(scheduler(1));
    const auto rest = [&] { return newest("seldom") > up + 3000 && at_rest("seldom"); };
    EXPECT_TRUE(wait_until(rest, kPatience));
    last.signal(SIGTERM);
    ASSERT_TRUE(last.wait(kPatience));
  }
  std::printf("%s: %d kills in %d s\n", GetParam().c_str(), kills,
              static_cast<int>(length.count() / 1000));
  for (const auto& [name, seconds] : {std::pair{"often", 1}, std::pair{"seldom", 5}}) {
    account(name, seconds);
    int caught_up = 0;
    for (const json::value& row : slots(name)) {
      const std::int64_t at = row.at("at_ms").as_int64();
      const auto state = row.at("state").as_string();
      const bool started = state == "ran" || state == "failed" || state == "lost";
      if (at > down + 1000 && at < up - 1000 && started) ++caught_up;
    }
    EXPECT_LE(caught_up, kBackfill) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Store, ThreeSchedulers, ::testing::Values("dir", "redis", "postgres"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace stint::test
