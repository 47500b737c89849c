// Started without some of its standard descriptors, the program writes into no file of the store's.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "base/text.h"
#include "cli/command.h"
#include "tests/cli/every_command.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

// Bit N: descriptor N is closed.
constexpr unsigned kCombinations = 7;

std::string names_of(unsigned closed) {
  std::string out;
  for (unsigned fd = 0; fd < 3; ++fd) {
    if ((closed >> fd & 1U) != 0) out += cat(fd);
  }
  return out;
}

// `stint WORDS...` without those descriptors.
Command without(const Stint& stint, unsigned closed, const Words& words) {
  Command command = stint.command(words);
  std::string line = "exec \"$@\"";
  for (unsigned fd = 0; fd < 3; ++fd) {
    if ((closed >> fd & 1U) != 0) line += cat(" ", fd, ">&-");
  }
  command.argv.insert(command.argv.begin(), {"sh", "-c", line, "sh"});
  return command;
}

// A store of one of the three kinds that are files, with a lease that is held.
class World {
 public:
  explicit World(const std::string& kind) {
    stint.use_store(cat(kind, ":", stint.dir().file("leases")));
    prepare_folder(stint);
    const Finished held = stint({"acquire", "keep", "--ttl", "1h"});
    EXPECT_EQ(held.out, "1\n") << held.err;
  }

  Finished with(unsigned closed, const Words& words) const {
    Command command = without(stint, closed, words);
    command.cwd = stint.dir().path();
    return run(command, Millis(30'000));
  }

  // The store is sound, the lease is as it was, and no message stands in any of its files.
  void expect_intact(const std::string& after) const {
    const Finished shown = stint({"show", "keep", "--json"});
    ASSERT_EQ(shown.exit_code, 0) << after << ": " << shown.err;
    EXPECT_EQ(json_field(shown.out, "token"), "1") << after;
    EXPECT_EQ(json_field(shown.out, "held"), "true") << after;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(stint.dir().path())) {
      if (entry.path().string().find("/leases") == std::string::npos) continue;
      if (!entry.is_regular_file()) continue;
      const std::string text = read_text(entry.path());
      EXPECT_EQ(text.find("{\"error\""), std::string::npos) << after << ": " << entry.path();
      EXPECT_EQ(text.find("stint: "), std::string::npos) << after << ": " << entry.path();
    }
  }

  Stint stint;
};

// Those that do not end by themselves.
const std::vector<Words> kLong = {
    {"serve", "--listen", "127.0.0.1:0"},
    {"watch", "--json"},
    {"proxy", "--resource", "keep", "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:0"},
    {"cron"},
};

TEST(ClosedDescriptors, TheTableHasEveryCommand) {
  std::set<std::string_view> named;
  for (const auto* table : {&kEveryCommand, &kLong}) {
    for (const Words& words : *table) named.insert(words.front());
  }
  for (const cli::Command* command : cli::all_commands()) {
    EXPECT_TRUE(named.contains(command->name)) << command->name;
  }
}

class ClosedDescriptors : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Files, ClosedDescriptors, testing::Values("sqlite", "dir", "log"),
                         [](const auto& kind) { return std::string(kind.param); });

// EVIDENCE-OF: G11
TEST_P(ClosedDescriptors, NoCommandWritesIntoTheStore) {
  for (unsigned closed = 1; closed <= kCombinations; ++closed) {
    const World world(GetParam());
    for (const Words& words : kEveryCommand) {
      const std::string what = cat(words.front(), " without ", names_of(closed));
      const Finished done = world.with(closed, words);
      EXPECT_FALSE(done.timed_out) << what;
      EXPECT_EQ(done.signal, 0) << what;
      if (HasFatalFailure()) return;
    }
    world.expect_intact(cat("without ", names_of(closed)));
    if (HasFatalFailure()) return;
  }
}

// EVIDENCE-OF: G11
TEST_P(ClosedDescriptors, NorDoesOneThatRunsOn) {
  for (const Words& words : kLong) {
    std::vector<std::unique_ptr<World>> worlds;
    std::vector<std::unique_ptr<Child>> running;
    for (unsigned closed = 1; closed <= kCombinations; ++closed) {
      worlds.push_back(std::make_unique<World>(GetParam()));
      Command command = without(worlds.back()->stint, closed, words);
      command.cwd = worlds.back()->stint.dir().path();
      running.push_back(std::make_unique<Child>(command));
    }
    // Up, or ended by a refusal: it sleeps in a call, and all its files are open.
    for (auto& child : running) {
      wait_until([&] { return !child->running() || state_of(child->pid()) == 'S'; });
    }
    for (std::size_t i = 0; i < running.size(); ++i) {
      running[i]->signal(SIGTERM);
      EXPECT_TRUE(running[i]->wait(Millis(20'000))) << words.front();
      worlds[i]->expect_intact(cat(words.front(), " without ", names_of(unsigned(i) + 1)));
    }
  }
}

TEST_P(ClosedDescriptors, AResultThatCannotBePrintedIsAFailureAndSaysWhatWasDone) {
  for (const unsigned closed : {2U, 3U}) {
    const World world(GetParam());
    const Finished taken = world.with(closed, {"acquire", "r"});
    EXPECT_EQ(taken.exit_code, 1);
    EXPECT_NE(taken.err.find("'r' is yours, token 1"), std::string::npos) << taken.err;
    const Finished json = world.with(closed, {"acquire", "s", "--json"});
    EXPECT_EQ(json.exit_code, 1);
    EXPECT_EQ(json_field(json.err, "code"), "failed") << json.err;
    EXPECT_NE(json.err.find("token 1"), std::string::npos) << json.err;
    EXPECT_TRUE(world.stint.held("r") && world.stint.held("s"));
  }
}

TEST(FullDisk, AResultThatCannotBePrintedIsAFailure) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "held"}).exit_code, 0);
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(stint({"run", cat("r", i), "--", "true"}).exit_code, 0);
  }
  // The last one prints more than a buffer holds: the failure comes before the end.
  for (const Words& words :
       {Words{"acquire", "new", "--json"}, Words{"ls"}, Words{"version"}, Words{"--help"},
        Words{"help"}, Words{"run", "--help"}, Words{"events", "--json"}}) {
    Command command = stint.command(words);
    command.argv.insert(command.argv.begin(), {"sh", "-c", "exec \"$@\" >/dev/full", "sh"});
    const Finished done = run(command);
    EXPECT_EQ(done.exit_code, 1) << words.front() << ": " << done.err;
    EXPECT_NE(done.err.find("could not be written"), std::string::npos) << done.err;
  }
}

TEST(FullDisk, WatchEndsWhenNobodyCanReadIt) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "before"}).exit_code, 0);
  Command command = stint.command({"watch", "--after", "0"});
  command.argv.insert(command.argv.begin(), {"sh", "-c", "exec \"$@\" >/dev/full", "sh"});
  EXPECT_EQ(run(command).exit_code, 1);
}

// The child of a run has them too, and they are of no use.
TEST(ClosedDescriptors, TheWorkOfARunFindsStandInsThatCannotBeUsed) {
  const Stint stint;
  const std::string seen = stint.dir().file("seen");
  const Finished done = run(without(stint, 7,
                                    {"run", "r", "--", "sh", "-c",
                                     cat("for n in 0 1 2; do readlink /proc/self/fd/$n; done >",
                                         seen, "; echo x 2>>", seen, " || echo no >>", seen)}));
  EXPECT_EQ(done.exit_code, 0);
  const std::string text = read_text(seen);
  EXPECT_EQ(count_lines(text, "/dev/null"), 2) << text;  // readlink's own 1 is the file
  EXPECT_NE(text.find("no\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace stint::test
