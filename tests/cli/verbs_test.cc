// The verbs of scripts and operators, as a shell sees them: words in, lines and exit codes out.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/text.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

using std::chrono::milliseconds;

TEST(Acquire, PrintsTheTokenAloneAndLaterCommandsFindTheClaim) {
  const Stint stint;
  EXPECT_EQ(stint({"acquire", "r", "--ttl", "30s"}).out, "1\n");
  const Finished again = stint({"acquire", "r"});
  EXPECT_EQ(again.exit_code, 11);
  EXPECT_EQ(again.out, "");
  EXPECT_EQ(stint({"check", "r", "--token", "1"}).exit_code, 0);
  EXPECT_EQ(stint({"renew", "r", "--token", "1", "--ttl", "60s"}).exit_code, 0);
  EXPECT_EQ(stint({"release", "r", "--token", "1"}).exit_code, 0);
  EXPECT_EQ(stint({"release", "r", "--token", "1"}).exit_code, 0) << "0 also the second time";
  EXPECT_EQ(stint({"renew", "r", "--token", "1"}).exit_code, 12);
  EXPECT_EQ(stint({"check", "r", "--token", "1"}).exit_code, 12);
  EXPECT_EQ(stint({"acquire", "r"}).out, "2\n");
  EXPECT_EQ(stint({"renew", "r", "--token", "1"}).exit_code, 12);
  EXPECT_EQ(stint.events({"refused_held"}), 1);
}

TEST(Acquire, WaitsAsLongAsAsked) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r", "--ttl", "300ms"}).exit_code, 0);
  const Finished waited = stint({"acquire", "r", "--wait", "10s"});
  EXPECT_EQ(waited.exit_code, 0) << waited.err;
  EXPECT_EQ(waited.out, "2\n");
  const Finished gave_up = stint({"acquire", "r", "--wait", "200ms"});
  EXPECT_EQ(gave_up.exit_code, 11);
}

TEST(Acquire, RetakesOnlyWithTheClaim) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).exit_code, 0);
  EXPECT_EQ(stint({"acquire", "r", "--retake"}).out, "2\n");
  EXPECT_EQ(stint.lease("r", "reason"), "retaken");
  EXPECT_EQ(stint({"renew", "r", "--token", "1"}).exit_code, 12);
  Command stranger =
      stint.command({"acquire", "r", "--retake", "--store", cat("sqlite:", stint.database())});
  stranger.env.emplace_back("XDG_STATE_HOME", stint.dir().file("elsewhere"));
  EXPECT_EQ(run(stranger).exit_code, 11);
}

TEST(Acquire, PrintsShellLines) {
  const Stint stint;
  const Finished lines = stint({"acquire", "it's", "--env"});
  EXPECT_NE(lines.out.find("export STINT_RESOURCE='it'\\''s'\n"), std::string::npos) << lines.out;
  EXPECT_NE(lines.out.find("export STINT_TOKEN='1'\n"), std::string::npos);
}

TEST(Claims, AreFilesOfOnesOwn) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).exit_code, 0);
  const Finished listed =
      run({.argv = {"find", stint.dir().file("state"), "-type", "f", "-perm", "/077"}});
  EXPECT_EQ(listed.out, "") << "readable by others";
}

TEST(Show, HasTheContractsFields) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r", "--owner", "me", "--note", "testing"}).exit_code, 0);
  const std::string json = stint({"show", "r", "--json"}).out;
  for (const char* field :
       {"resource", "held", "state", "owner", "token", "generation", "reason", "ttl_ms",
        "remaining_ms", "acquired_at_ms", "renewed_at_ms", "note", "progress", "progress_at_ms"}) {
    EXPECT_NE(json.find(cat('"', field, "\":")), std::string::npos) << field << json;
  }
  EXPECT_EQ(json_field(json, "note"), "testing");
  EXPECT_EQ(json_field(json, "owner"), "me");
  EXPECT_EQ(json.find("claim"), std::string::npos);
  const std::string acquired = stint({"acquire", "other", "--json"}).out;
  EXPECT_EQ(json_field(acquired, "claim").size(), 32U) << acquired;
}

TEST(Listings, ArePlainTablesAndJson) {
  const Stint stint;
  for (const char* name : {"b/1", "a/1", "a/2"})
    ASSERT_EQ(stint({"run", name, "--", "true"}).exit_code, 0);
  EXPECT_EQ(count_lines(stint({"ls"}).out), 4);
  EXPECT_EQ(count_lines(stint({"ls", "a/"}).out), 3);
  EXPECT_EQ(stint({"ls", "zzz", "--json"}).out, "[]\n");
  const std::string history = stint({"history", "a/1", "--json"}).out;
  for (const char* field :
       {"token", "owner", "reason", "by", "why", "acquired_at_ms", "ended_at_ms", "ended"}) {
    EXPECT_NE(history.find(cat('"', field, "\":")), std::string::npos) << field << history;
  }
  const std::string events = stint({"events", "--json"}).out;
  EXPECT_EQ(count_lines(events, "\"granted\""), 3);
  EXPECT_EQ(count_lines(events, "\"released\""), 3);
  for (const std::string_view line : split(trim(events), '\n')) {
    for (const char* field : {"at_ms", "kind", "resource", "token", "owner"}) {
      EXPECT_NE(line.find(cat('"', field, "\":")), line.npos) << line;
    }
  }
}

TEST(Watch, PrintsEventsAsTheyHappen) {
  const Stint stint;
  ASSERT_EQ(stint({"run", "before", "--", "true"}).exit_code, 0);
  Child watching(stint.command({"watch", "r", "--json"}));
  ASSERT_TRUE(wait_until([&] {
    EXPECT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
    return count_lines(watching.out(), "\"released\"") > 0;
  }));
  EXPECT_EQ(watching.out().find("before"), std::string::npos);
  watching.signal(SIGINT);
  const auto exit = watching.wait(milliseconds(5000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0);
}

// EVIDENCE-OF: G8
TEST(FormerOwner, ChangesNothing) {
  const Stint stint;
  const std::string claim = json_field(stint({"acquire", "r", "--json"}).out, "claim");
  ASSERT_EQ(stint({"transfer", "r", "--to", "bob", "--token", "1", "--why", "moving"}).exit_code,
            0);
  const std::string before = stint({"show", "r", "--json"}).out;
  EXPECT_EQ(stint({"renew", "r", "--token", "1", "--ttl", "1h"}).exit_code, 12);
  EXPECT_EQ(stint({"release", "r", "--token", "1"}).exit_code, 12);
  Command progress = stint.command({"progress", "half"});
  for (const auto& [name, value] :
       {std::pair{"STINT_RESOURCE", "r"}, {"STINT_TOKEN", "1"}, {"STINT_CLAIM", claim.c_str()}}) {
    progress.env.emplace_back(name, value);
  }
  EXPECT_EQ(run(progress).exit_code, 12);
  EXPECT_EQ(json_field(before, "token"), "2");
  EXPECT_EQ(stint.lease("r", "token"), "2");
  EXPECT_EQ(stint.lease("r", "state"), "reserved");
  EXPECT_EQ(stint.lease("r", "progress"), "");
}

TEST(WrongExpectedToken, IsRefused) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).exit_code, 0);
  EXPECT_EQ(stint({"revoke", "r", "--token", "2", "--why", "x"}).exit_code, 12);
  EXPECT_EQ(stint({"transfer", "never", "--to", "b", "--token", "1", "--why", "x"}).exit_code, 12);
  EXPECT_TRUE(stint.held("r"));
}

// EVIDENCE-OF: G1
TEST(Forget, RaisesTheFloorSoThatNoTokenComesTwice) {
  const Stint stint;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  ASSERT_EQ(stint({"forget", "r"}).exit_code, 0);
  EXPECT_EQ(stint({"acquire", "r"}).out, "4\n");
  EXPECT_EQ(stint({"acquire", "new"}).out, "4\n");
  EXPECT_EQ(stint({"forget", "r"}).exit_code, 11);
}

TEST(Owner, GivenMustMatch) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r", "--owner", "me"}).exit_code, 0);
  EXPECT_EQ(stint({"renew", "r", "--token", "1", "--owner", "you"}).exit_code, 12);
  EXPECT_EQ(stint({"renew", "r", "--token", "1"}).exit_code, 0);
  EXPECT_EQ(stint({"renew", "r", "--token", "1", "--owner", "me"}).exit_code, 0);
}

TEST(Config, SaysWhereEachValueCameFrom) {
  const Stint stint;
  ASSERT_EQ(run({.argv = {"mkdir", "-p", stint.dir().file("config/stint")}}).exit_code, 0);
  write_text(stint.dir().file("config/stint/config.toml"), "ttl = \"2m\"\nowner = \"laptop\"\n");
  const std::string shown = stint({"config", "show", "--json"}).out;
  EXPECT_NE(shown.find("\"value\":\"2m\""), std::string::npos) << shown;
  EXPECT_NE(shown.find("config.toml"), std::string::npos) << shown;
  ASSERT_EQ(stint({"acquire", "r"}).exit_code, 0);
  EXPECT_EQ(stint.lease("r", "ttl_ms"), "120000");
  EXPECT_EQ(stint.lease("r", "owner"), "laptop");
  write_text(stint.dir().file("config/stint/config.toml"), "ttl = 5\n");
  const Finished bad = stint({"ls"});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_NE(bad.err.find("config.toml:1:"), std::string::npos) << bad.err;
  write_text(stint.dir().file("config/stint/config.toml"), "\n\ncolour = \"red\"\n");
  EXPECT_NE(stint({"ls"}).err.find("config.toml:3:1: unknown key 'colour'"), std::string::npos);
}

// Asked of bash itself; and what it offers is there.
TEST(Completion, OffersTheVerbsOfACommand) {
  const Stint stint;
  const std::string script = stint({"completion", "bash"}).out;
  const auto offered = [&](const std::string& command) {
    const Finished said = run({.argv = {"bash", "-c",
                                        cat(script, "\nCOMP_WORDS=(stint ", command,
                                            " ''); COMP_CWORD=2; _stint; echo ${COMPREPLY[@]}")}});
    EXPECT_EQ(said.exit_code, 0) << said.err;
    std::vector<std::string> verbs;
    for (const std::string_view word : split(trim(said.out), ' ')) {
      if (!word.starts_with('-')) verbs.emplace_back(word);
    }
    return verbs;
  };
  EXPECT_TRUE(offered("run").empty());
  EXPECT_EQ(offered("key"), (std::vector<std::string>{"create", "ls", "revoke"}));
  for (const char* command : {"key", "queue", "cron", "guard", "store", "config"}) {
    const auto verbs = offered(command);
    EXPECT_FALSE(verbs.empty()) << command;
    for (const std::string& verb : verbs) {
      const Finished said = stint({command, verb});
      EXPECT_EQ(said.err.find("there is no stint "), std::string::npos)
          << command << ' ' << said.err;
    }
  }
  for (const char* shell : {"zsh", "fish"}) {
    EXPECT_NE(stint({"completion", shell}).out.find("create ls revoke"), std::string::npos);
  }
}

TEST(Refusal, NamesNoCommandThatBreaksAnothersLease) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r", "--note", "publishing", "--owner", "host-a"}).exit_code, 0);
  const std::string said = stint({"acquire", "r"}).err;
  for (const char* part : {"host-a", "token 1", "since", "for another", "publishing"}) {
    EXPECT_NE(said.find(part), std::string::npos) << part << said;
  }
  for (const char* recipe : {"revoke", "transfer", "forget", "release", "retake", "force"}) {
    EXPECT_EQ(said.find(recipe), std::string::npos) << recipe << said;
  }
}

TEST(HostileText, DoesNotReachTheTerminal) {
  const Stint stint;
  ASSERT_EQ(
      stint({"acquire", "<img src=x onerror=alert(1)>", "--note", "\xe2\x80\xaeright to left"})
          .exit_code,
      0);
  EXPECT_EQ(stint({"ls"}).exit_code, 0);
  EXPECT_EQ(count_lines(stint({"ls"}).out), 2);
}

}  // namespace
}  // namespace stint::test
