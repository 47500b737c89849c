// The hook of `stint guard install PATH.git`: every decision against core/fence.h, and what it
// refuses from real clients.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "core/fence.h"
#include "guard/git_fence.h"
#include "guard/git_hook.h"
#include "guard/git_probe.h"
#include "tests/guard_git/git_world.h"

namespace stint::test {
namespace {

using guard::GitFence;

Generation generation(char digit) { return Generation::parse(std::string(32, digit)).value(); }

GitFence fence(std::uint64_t token, std::uint64_t seq, char life, const std::string& resource,
               char claim) {
  static int count = 0;
  os::SystemRandom random;
  return {.fence = {.generation = generation(life),
                    .resource = resource,
                    .token = Token(token),
                    .key = {},
                    .digest = {}},
          .seq = seq,
          .claim = claim == '-' ? ClaimHash() : ClaimHash(std::string(32, claim)),
          .owner = cat("o", ++count),
          .nonce = random.id_hex()};
}

class GitHook : public testing::Test {
 protected:
  void install(const std::vector<std::string>& branches = {}, const std::string& of = {}) {
    const auto done =
        guard::install_hook({.repository = world.repository(), .branches = branches, .fence = of});
    ASSERT_TRUE(done) << done.error().message;
  }
  Finished server(std::vector<std::string> words) const {
    words.insert(words.begin(), {"--git-dir", world.repository()});
    return world.git("first", std::move(words));
  }
  std::string object(const std::string& text) const {
    write_text(world.dir().file("object"), text);
    return std::string(trim(server({"hash-object", "-w", world.dir().file("object")}).out));
  }
  std::vector<std::string> objects(const std::vector<GitFence>& fences) const {
    std::vector<std::string> words = {"hash-object", "-w"};
    for (std::size_t i = 0; i < fences.size(); ++i) {
      words.push_back(world.dir().file(cat("object", i)));
      write_text(words.back(), guard::encode(fences[i]));
    }
    std::vector<std::string> out;
    const Finished done = server(words);
    for (const std::string_view oid : split(trim(done.out), '\n')) out.emplace_back(oid);
    return out;
  }
  // Puts it there past the hook.
  void plant(const std::string& ref, const std::string& text) const {
    plant_object(ref, object(text));
  }
  void plant_object(const std::string& ref, const std::string& oid) const {
    const std::string path = cat(world.repository(), "/", ref);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    write_text(path, cat(oid, "\n"));
  }

  GitWorld world;
};

// What the hook knows of the offer: nothing but that its client asked the store.
bool admitted_by_core(const std::optional<GitFence>& standing, const GitFence& offered,
                      bool follows) {
  const core::Issued issued{
      .generation = offered.fence.generation,
      .ancestors = follows ? std::vector{generation('a')} : std::vector<Generation>{},
      .newest = offered.fence.token,
      .newest_granted = true};
  const core::Offer offer{.generation = offered.fence.generation,
                          .resource = offered.fence.resource,
                          .token = offered.fence.token,
                          .key = {},
                          .digest = {}};
  const auto decision =
      core::seal(standing ? std::optional(standing->fence) : std::nullopt, offer, issued);
  if (decision.verdict != core::Verdict::Admitted) return false;
  // Of one token, git's guard also tells pushes and claims apart (git_guard.h).
  const bool same = standing && standing->fence.token == offered.fence.token &&
                    standing->fence.generation == offered.fence.generation;
  if (!same) return true;
  const bool mine = standing->claim.empty() || standing->claim.matches(offered.claim);
  return mine && offered.seq > standing->seq;
}

// EVIDENCE-OF: G5
TEST_F(GitHook, DecidesAsCoreDoesInEveryCell) {
  install();
  const std::string follows = cat(std::string(32, 'c'), " ", std::string(32, 'a'));
  server({"config", "--add", "stint.descends", follows});
  std::vector<std::optional<GitFence>> all_standing = {std::nullopt};
  for (const char claim : {'1', '-'}) all_standing.emplace_back(fence(5, 3, 'a', "r", claim));
  all_standing.emplace_back(fence(5, 3, 'a', "r", '-'));
  all_standing.back()->fence.nobodys = true;
  all_standing.emplace_back(fence(5, 3, 'b', "r", '1'));
  all_standing.emplace_back(fence(5, 3, 'a', "other", '1'));
  std::vector<GitFence> all_offered;
  for (const std::uint64_t token : {4U, 5U, 6U}) {
    for (const std::uint64_t seq : {3U, 4U}) {
      for (const char life : {'a', 'c'}) {
        for (const char claim : {'1', '2'})
          all_offered.push_back(fence(token, seq, life, "r", claim));
      }
    }
  }
  const std::vector<std::string> oids = objects(all_offered);
  ASSERT_EQ(oids.size(), all_offered.size());
  int cells = 0;
  int admitted = 0;
  for (const auto& standing : all_standing) {
    const std::string planted = standing ? object(guard::encode(*standing)) : "";
    for (std::size_t i = 0; i < oids.size(); ++i) {
      const GitFence& offered = all_offered[i];
      std::filesystem::remove(world.repository() + "/refs/stint/fence/r");
      if (standing) plant_object("refs/stint/fence/r", planted);
      const Finished done = server({"update-ref", "refs/stint/fence/r", oids[i]});
      const bool followed = offered.fence.generation == generation('c') && standing &&
                            standing->fence.generation == generation('a');
      const bool core = admitted_by_core(standing, offered, followed);
      EXPECT_EQ(done.exit_code == 0, core)
          << "standing:\n"
          << (standing ? guard::encode(*standing) : "none\n") << "offered:\n"
          << guard::encode(offered) << done.err;
      ++cells;
      admitted += core ? 1 : 0;
    }
  }
  std::printf("%d cells, %d admitted by both\n", cells, admitted);
  EXPECT_GT(admitted, 0);
  EXPECT_LT(admitted, cells);
}

// Without a binding the fence of any resource opens a branch, and the check called that refused.
TEST_F(GitHook, BranchesThatAnyResourceOpensAreSaidToBeSo) {
  const auto warned = [&] {
    const auto lines = guard::probe_git(world.target());
    EXPECT_TRUE(lines) << lines.error().message;
    return lines && std::ranges::any_of(*lines, [](const guard::CheckLine& line) {
             return line.level == guard::CheckLine::Level::Warn &&
                    line.text.starts_with("binding: any resource's lease opens refs/heads/*");
           });
  };
  const auto install_by = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"guard", "install", world.repository()});
    const Finished done = world.stint()(more);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done;
  };
  EXPECT_FALSE(warned());
  EXPECT_NE(install_by({}).err.find("any resource's lease opens refs/heads/*"), std::string::npos);
  EXPECT_TRUE(warned());
  const std::string a = world.clone("a");
  const Finished open = world.stint()({"guard", "check", world.target()});
  EXPECT_EQ(open.out.find("liars"), std::string::npos) << open.out;
  // One branch alone leaves the others open.
  EXPECT_NE(install_by({"--branch", "main", "--resource", "r"}).err.find("opens refs/heads/*"),
            std::string::npos);
  EXPECT_TRUE(warned());
  EXPECT_EQ(json_field(install_by({"--json"}).out, "bound"), "false");
  EXPECT_EQ(install_by({"--resource", "r"}).err.find("any resource"), std::string::npos);
  EXPECT_FALSE(warned());
  EXPECT_EQ(json_field(install_by({"--json"}).out, "bound"), "true");
}

TEST_F(GitHook, TheCommandBindsABranchToAResource) {
  const Finished done = world.stint()(
      {"guard", "install", world.repository(), "--branch", "main", "--resource", "r"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
}

TEST_F(GitHook, RefusesWhatIsNoFence) {
  install();
  const std::string good = guard::encode(fence(5, 3, 'a', "r", '1'));
  const auto push = [&](const std::string& text) {
    return server({"update-ref", "refs/stint/fence/r", object(text)}).exit_code == 0;
  };
  EXPECT_FALSE(push(""));
  EXPECT_FALSE(push("garbage\n"));
  EXPECT_FALSE(push(good + "\n"));
  EXPECT_FALSE(push(good + "more\n"));
  EXPECT_FALSE(push(good.substr(0, good.size() - 1)));
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"token 5", "token 05"},
                                                        {"token 5", "token 0"},
                                                        {"token 5", "token -5"},
                                                        {"token 5", "token 99999999999999999"},
                                                        {"token 5", "token 9007199254740992"},
                                                        {"seq 3", "seq x"},
                                                        {"resource r", "resource "},
                                                        {"claim 1", "claim G"}}) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    EXPECT_FALSE(push(bad)) << bad;
    EXPECT_FALSE(guard::parse_git_fence(bad)) << bad;
  }
  EXPECT_TRUE(push(good));
  // Fails closed: a fence that cannot be read is not "no fence".
  plant("refs/stint/fence/r", "torn");
  EXPECT_FALSE(push(guard::encode(fence(6, 0, 'a', "r", '1'))));
  write_text(world.repository() + "/refs/stint/fence/r", "torn\n");
  EXPECT_FALSE(push(guard::encode(fence(6, 0, 'a', "r", '1'))));
}

TEST_F(GitHook, LetsStintPushAndRefusesEveryoneElse) {
  install();
  world.server_config("receive.denyDeleteCurrent", "ignore");
  const std::string a = world.clone("a");
  const Grant first = world.take("a");
  const Finished pushed = world.push(a, first);
  ASSERT_EQ(pushed.exit_code, 0) << pushed.err;
  const std::string main = world.commit(a, "more");
  const std::string before = world.main();
  const std::string stood = world.fence();
  const auto refused = [&](std::vector<std::string> words, const std::string& why) {
    words.insert(words.begin(), "push");
    const Finished done = world.git(a, words);
    EXPECT_NE(done.exit_code, 0);
    EXPECT_NE(done.err.find(why), std::string::npos) << done.err;
    EXPECT_EQ(world.main(), before);
    EXPECT_EQ(world.fence(), stood);
  };
  refused({"origin", "main"}, "is guarded");                     // no token
  refused({"origin", "+HEAD~2:refs/heads/main"}, "is guarded");  // force
  refused({"origin", ":refs/heads/main"}, "is guarded");         // deletion
  refused({"origin", ":refs/stint/fence/r"}, "must not be deleted");
  // A liar with the right expected value, and a lower token; with force too.
  const Grant second = world.take("b");
  ASSERT_TRUE(world.seal(second));
  const std::string now = world.fence();
  write_text(world.dir().file("lie"),
             guard::encode({.fence = {.generation = world.pass(first).generation,
                                      .resource = "r",
                                      .token = Token(1),
                                      .key = {},
                                      .digest = {}},
                            .seq = 99,
                            .claim = {},
                            .owner = "liar",
                            .nonce = std::string(32, '0')}));
  const std::string oid(trim(world.git(a, {"hash-object", "-w", world.dir().file("lie")}).out));
  for (const std::string& force : {std::string("--no-verify"), std::string("--force")}) {
    const Finished lied =
        world.git(a, {"push", "--atomic", force, cat("--force-with-lease=refs/stint/fence/r:", now),
                      "origin", cat(main, ":refs/heads/main"), cat(oid, ":refs/stint/fence/r")});
    EXPECT_NE(lied.exit_code, 0);
    EXPECT_NE(lied.err.find("stale"), std::string::npos) << lied.err;
    EXPECT_EQ(world.main(), before);
    EXPECT_EQ(world.fence(), now);
  }
}

// It was told as a push without an answer, to be tried again.
TEST_F(GitHook, AFenceInAnotherPlaceIsRefusedAndSaidSo) {
  install();
  const std::string a = world.clone("a");
  const std::string main = world.main();
  const Grant grant = world.take("a");
  const std::vector<std::string> words = {"origin", "main", "--fence-ref", "refs/stint/other/",
                                          "--json"};
  const Finished refused = world.push(a, grant, words);
  EXPECT_EQ(refused.exit_code, 13) << refused.err;
  EXPECT_NE(refused.err.find("\"cause\":\"server_hook\""), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("refs/heads/main is guarded"), std::string::npos) << refused.err;
  EXPECT_EQ(world.main(), main);
  const Finished bound = world.stint()({"guard", "install", world.repository(), "--resource", "r",
                                        "--fence-ref", "refs/stint/other/"});
  ASSERT_EQ(bound.exit_code, 0) << bound.err;
  EXPECT_EQ(world.push(a, grant, words).exit_code, 0);
  EXPECT_EQ(world.main(), world.head(a));
  // Said once, it holds for later bindings.
  ASSERT_EQ(world.stint()({"guard", "install", world.repository(), "--resource", "s"}).exit_code,
            0);
  EXPECT_NE(server({"config", "--get-all", "stint.guarded"}).out.find("refs/stint/other/s"),
            std::string::npos);
}

TEST_F(GitHook, RefusesForceAlsoWithAGoodFence) {
  install({"refs/heads/main"}, "refs/stint/fence/r");
  const std::string a = world.clone("a");
  const Grant grant = world.take("a");
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  const std::string before = world.main();
  const auto next = fence(1, 50, 'a', "r", '1');
  GitFence good = next;
  good.fence.generation = world.pass(grant).generation;
  good.claim = world.pass(grant).claim->hash();
  write_text(world.dir().file("good"), guard::encode(good));
  const std::string oid(trim(world.git(a, {"hash-object", "-w", world.dir().file("good")}).out));
  world.git(a, {"reset", "-q", "--hard", "HEAD~1"});
  world.commit(a, "instead");
  const Finished forced = world.git(a, {"push", "--atomic", "--force", "origin",
                                        "HEAD:refs/heads/main", cat(oid, ":refs/stint/fence/r")});
  EXPECT_NE(forced.exit_code, 0);
  EXPECT_NE(forced.err.find("must not be forced"), std::string::npos) << forced.err;
  EXPECT_EQ(world.main(), before);
  // Branches that are not guarded stay free.
  EXPECT_EQ(world.git(a, {"push", "origin", "HEAD:refs/heads/free"}).exit_code, 0);
}

// Each with a fence that is as good as can be; what is wrong is the rest of the push.
TEST_F(GitHook, RefusesDeletionAnotherResourcesFenceAndAFenceMadeAlong) {
  install({"refs/heads/main"}, "refs/stint/fence/r");
  world.server_config("receive.denyDeleteCurrent", "ignore");
  const std::string a = world.clone("a");
  const Grant grant = world.take("a");
  const auto pass = world.pass(grant);
  const auto fence_oid = [&](const std::string& resource) {
    GitFence out = fence(1, 50, 'a', resource, '1');
    out.fence.generation = pass.generation;
    out.claim = pass.claim->hash();
    write_text(world.dir().file("good"), guard::encode(out));
    return std::string(trim(world.git(a, {"hash-object", "-w", world.dir().file("good")}).out));
  };
  const std::string main = world.main();
  const auto refused = [&](std::vector<std::string> words, const std::string& why) {
    words.insert(words.begin(), {"push", "--atomic", "origin"});
    const Finished done = world.git(a, words);
    EXPECT_NE(done.exit_code, 0);
    EXPECT_NE(done.err.find(why), std::string::npos) << done.err;
    EXPECT_EQ(world.main(), main);
  };
  refused({"main", cat(fence_oid("r"), ":refs/stint/fence/r")}, "seal in a push of its own first");
  ASSERT_TRUE(world.seal(grant));
  refused({"main", cat(fence_oid("s"), ":refs/stint/fence/s")}, "which this push does not carry");
  refused({":refs/heads/main", cat("+", fence_oid("r"), ":refs/stint/fence/r")},
          "must not be deleted");
  const Finished good = world.git(
      a, {"push", "--atomic", "origin", "main", cat("+", fence_oid("r"), ":refs/stint/fence/r")});
  EXPECT_EQ(good.exit_code, 0) << good.err;  // so that it is the rest that was refused
}

TEST_F(GitHook, IsInstalledOnceKeepsTheHookBeforeItAndGoesAgain) {
  world.server_hook("reference-transaction", cat("cat >>", world.dir().file("seen"), "; exit 0"));
  install();
  const std::string path = world.repository() + "/hooks/reference-transaction";
  EXPECT_EQ(read_text(path), guard::hook_text());
  const auto again =
      guard::install_hook({.repository = world.repository(), .branches = {}, .fence = {}});
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->already);
  EXPECT_TRUE(again->chained);
  EXPECT_EQ(trim(server({"config", "--get-all", "stint.guarded"}).out), "refs/heads/* *");
  EXPECT_NE(server({"config", "core.fsync"}).out.find("reference"), std::string::npos);
  const std::string a = world.clone("a");
  EXPECT_NE(world.git(a, {"push", "origin", "main"}).exit_code, 0);
  EXPECT_NE(read_text(world.dir().file("seen")).find("refs/heads/main"), std::string::npos);
  const auto gone = guard::uninstall_hook(world.repository());
  ASSERT_TRUE(gone);
  EXPECT_TRUE(gone->restored);
  EXPECT_EQ(world.git(a, {"push", "origin", "main"}).exit_code, 0);
  EXPECT_FALSE(
      guard::install_hook({.repository = world.dir().path(), .branches = {}, .fence = {}}));
}

TEST_F(GitHook, AndTheProbeGetOnTogether) {
  for (const bool with_hook : {false, true}) {
    if (with_hook) install();
    const auto lines = guard::probe_git(world.target());
    ASSERT_TRUE(lines) << lines.error().message;
    for (const guard::CheckLine& line : *lines)
      EXPECT_NE(line.level, guard::CheckLine::Level::Fail) << line.text;
    EXPECT_EQ(server({"for-each-ref", "refs/stint/fence/"}).out, "");
  }
  world.server_config("receive.advertiseAtomic", "false");
  const auto lines = guard::probe_git(world.target());
  ASSERT_TRUE(lines) << lines.error().message;
  EXPECT_EQ(lines->back().level, guard::CheckLine::Level::Fail) << lines->back().text;
}

// Only in `prepared` everything is locked (facts A5); newer gits also call with `preparing`.
TEST_F(GitHook, ActsOnPreparedOnly) {
  install();
  for (const char* state : {"preparing", "committed", "aborted", "prepared"}) {
    Command call{.argv = {world.repository() + "/hooks/reference-transaction", state},
                 .env = {{"GIT_DIR", world.repository()}},
                 .stdin_text = cat(world.main(), " ", std::string(40, '0'), " refs/heads/main\n"),
                 .cwd = world.repository()};
    EXPECT_EQ(run(call).exit_code == 0, std::string_view(state) != "prepared") << state;
  }
}

// git itself refuses to touch a ref that it cannot read. Should one of its storages call the hook
// all the same, a damaged fence is not taken for none.
TEST_F(GitHook, ADamagedFenceIsNotTakenForNone) {
  install();
  const std::string oid = object(guard::encode(fence(9, 1, 'a', "r", '1')));
  const auto ask = [&] {
    return run({.argv = {world.repository() + "/hooks/reference-transaction", "prepared"},
                .env = {{"GIT_DIR", world.repository()}},
                .stdin_text = cat(std::string(40, '0'), " ", oid, " refs/stint/fence/r\n"),
                .cwd = world.repository()});
  };
  EXPECT_EQ(ask().exit_code, 0) << "there is none";
  for (const std::string& text : {std::string("garbage\n"), std::string(), std::string(17, 'f')}) {
    std::filesystem::create_directories(world.repository() + "/refs/stint/fence");
    write_text(world.repository() + "/refs/stint/fence/r", text);
    const Finished refused = ask();
    EXPECT_EQ(refused.exit_code, 1) << text;
    EXPECT_NE(refused.err.find("stint: refused"), std::string::npos) << refused.err;
  }
}

}  // namespace
}  // namespace stint::test
