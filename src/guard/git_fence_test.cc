#include "guard/git_fence.h"

#include <gtest/gtest.h>

#include <set>

#include "base/text.h"
#include "guard/git_command.h"
#include "guard/git_porcelain.h"
#include "guard/git_remote.h"
#include "guard/git_target.h"

namespace stint::guard {
namespace {

GitFence example() {
  return {.fence = {.generation = Generation::parse(std::string(32, 'a')).value(),
                    .resource = "site/a b",
                    .token = Token(7),
                    .key = {},
                    .digest = {}},
          .seq = 3,
          .claim = ClaimHash(std::string(32, 'c')),
          .owner = "host-a-1",
          .nonce = std::string(32, '1')};
}

TEST(GitFenceText, ReadsBackWhatItWrites) {
  GitFence fence = example();
  for (const bool used : {false, true}) {
    fence.fence.used = used;
    fence.fence.key = used ? "a key\nof two lines" : "";
    fence.fence.digest = used ? "abc refs/heads/main" : "";
    const auto read = parse_git_fence(encode(fence));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(encode(*read), encode(fence));
    EXPECT_EQ(read->fence.key, fence.fence.key);
  }
  fence.claim = {};
  fence.owner = "";
  for (const bool nobodys : {false, true}) {
    fence.fence.nobodys = nobodys;
    const auto read = parse_git_fence(encode(fence));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->fence.nobodys, nobodys);
  }
}

TEST(GitFenceText, EveryCutAndEveryChangedByteOfItsFrameIsUnreadable) {
  const std::string text = encode(example());
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_FALSE(parse_git_fence(text.substr(0, i))) << i;
    std::string bad = text;
    bad[i] = '\x01';
    EXPECT_FALSE(parse_git_fence(bad)) << i;
  }
  EXPECT_FALSE(parse_git_fence(text + "\n"));
  EXPECT_FALSE(parse_git_fence(std::string(100'000, 'x')));
}

TEST(GitFenceText, StandsInACommitToo) {
  const std::string raw = encode_commit({.tree = "t", .parent = "p", .at_s = 1}, encode(example()));
  const auto commit = parse_fence_commit(raw);
  ASSERT_TRUE(commit);
  EXPECT_EQ(commit->parent, "p");
  EXPECT_EQ(commit->text, encode(example()));
  EXPECT_FALSE(parse_fence_commit("blob"));
}

TEST(FenceRef, IsValidAndDifferentForEachResource) {
  std::set<std::string> seen;
  const std::vector<std::string> names = {"a",
                                          "A",
                                          "a/b",
                                          "a%2Fb",
                                          "a.lock",
                                          "..",
                                          ".",
                                          "@",
                                          "@{",
                                          "a b",
                                          "ä",
                                          "a~b",
                                          "refs",
                                          "-",
                                          "a:b",
                                          "a*b",
                                          "a\\b",
                                          "%",
                                          "a%",
                                          "a_b",
                                          "a-b",
                                          "a\"b",
                                          std::string(512, 'x'),
                                          std::string(511, 'x') + "y",
                                          std::string(512, 'X')};
  for (const std::string& name : names) {
    const std::string ref = fence_ref(kFencePrefix, ResourceName::parse(name).value());
    EXPECT_TRUE(seen.insert(ref).second) << name;
    const std::string_view last = std::string_view(ref).substr(kFencePrefix.size());
    EXPECT_LT(last.size(), 250U);
    EXPECT_EQ(last.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_%ABCDEF"), last.npos)
        << ref;
    const auto back = resource_of_fence_ref(kFencePrefix, ref);
    EXPECT_EQ(back ? back->text() : "", ref.find("%_") == ref.npos ? name : "");
  }
  EXPECT_EQ(fence_ref(kFencePrefix, ResourceName::parse("blog-repo").value()),
            "refs/stint/fence/blog-repo");
  for (const char* none : {"refs/stint/fence/", "refs/stint/fence/A", "refs/stint/fence/%4",
                           "refs/stint/fence/%61", "refs/heads/a", "refs/stint/fence/%zz"}) {
    EXPECT_FALSE(resource_of_fence_ref(kFencePrefix, none)) << none;
  }
}

TEST(FencePrefix, MustStandBehindTheBranches) {
  EXPECT_TRUE(check_fence_prefix("refs/stint/fence/"));
  EXPECT_TRUE(check_fence_prefix("refs/heads/zz-fence/"));
  for (const char* bad : {"refs/fence/", "refs/tags/", "refs/tags/x/", "refs/heads/", "fence/",
                          "refs/stint", "refs/x y/", "refs//", "refs/../"}) {
    EXPECT_FALSE(check_fence_prefix(bad)) << bad;
  }
  EXPECT_TRUE(check_fence_order("refs/stint/fence/r", "refs/heads/main"));
  EXPECT_TRUE(check_fence_order("refs/stint/fence/r", "refs/tags/v1"));
  EXPECT_TRUE(check_fence_order("refs/heads/zz-fence/r", "refs/heads/main"));
  EXPECT_FALSE(check_fence_order("refs/heads/fence/r", "refs/heads/main"));
}

TEST(GitTargets, AreReadAndWrittenTheSame) {
  const auto named = parse_git_target("git:origin/feature/x");
  ASSERT_TRUE(named);
  EXPECT_TRUE(named->named);
  EXPECT_EQ(named->branch, "refs/heads/feature/x");
  const auto url = parse_git_target("git:ssh://u:secret@h/r.git#main;fence=refs/heads/zz-fence/");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->fence_prefix, "refs/heads/zz-fence/");
  const std::string words = canonical_git(*url, url->remote);
  EXPECT_EQ(words, "git:ssh://u@h/r.git#refs/heads/main;fence=refs/heads/zz-fence/");
  EXPECT_TRUE(same_fence(words, "git:ssh://u@h/r.git#other;fence=refs/heads/zz-fence/"));
  EXPECT_FALSE(same_fence(words, "git:ssh://u@h/r.git#main"));
  for (const char* bad :
       {"git:", "git:origin", "git:origin/", "git:#main", "git:-x/main", "git:origin/+main",
        "git:origin/a..b", "git:origin/refs/notes/x", "git:u#a;x=1", "git:https://h/r.git"}) {
    EXPECT_FALSE(parse_git_target(bad)) << bad;
  }
}

TEST(GitVersion, OlderThan224IsRefused) {
  EXPECT_TRUE(git_version_suffices("git version 2.24.0"));
  EXPECT_TRUE(git_version_suffices("git version 2.39.5 (Apple Git-154)"));
  EXPECT_TRUE(git_version_suffices("git version 3.0"));
  for (const char* old : {"git version 2.23.9", "git version 1.9", "git version two", "", "2.40"})
    EXPECT_FALSE(git_version_suffices(old)) << old;
}

struct Printed {
  const char* out;
  const char* talk;
  int code;
  PushFate fate;
};

TEST(GitPorcelain, EveryAnswerOfGitIsToldApart) {
  const Printed cases[] = {
      {"To u\n*\tX:refs/stint/fence/r\t[new reference]\n \tY:refs/heads/main\ta..b\nDone\n", "", 0,
       PushFate::Landed},
      {"To u\n+\tX:refs/stint/fence/r\ta...b (forced update)\n=\tY:refs/heads/main\t[up to "
       "date]\nDone\n",
       "", 0, PushFate::Landed},
      {"!\tX:refs/stint/fence/r\t[rejected] (stale info)\n!\tY:refs/heads/main\t[rejected] (fetch "
       "first)\n",
       "", 1, PushFate::Moved},
      {"!\tX:refs/stint/fence/r\t[rejected] (atomic push failed)\n!\tY:refs/heads/main\t[rejected] "
       "(fetch first)\n",
       "", 1, PushFate::Conflict},
      {"!\tX:refs/stint/fence/r\t[remote rejected] (atomic transaction failed)\n"
       "!\tY:refs/heads/main\t[remote rejected] (atomic transaction failed)\n",
       "", 1, PushFate::Locked},
      {"!\tX:refs/stint/fence/r\t[remote rejected] (atomic push failure)\n"
       "!\tY:refs/heads/main\t[remote rejected] (pre-receive hook declined)\n",
       "", 1, PushFate::Refused},
      {"!\tX:refs/stint/fence/r\t[remote failure] (remote failed to report status)\n", "", 1,
       PushFate::Unknown},
      {"", "fatal: the remote end hung up unexpectedly\n", 128, PushFate::Unknown},
      {"", "fatal: the receiving end does not support --atomic push\n", 128, PushFate::Unreached},
      {"", "fatal: remote error: access denied or repository not exported: /r.git\n", 128,
       PushFate::Unreached},
      {"", "fatal: remote error: internal\n", 128, PushFate::Unknown},
      {"", "", 0, PushFate::Unknown},
      // The other side's hook may say anything, after the push has landed too.
      {"", "remote: curl: (7) Connection refused\nfatal: the remote end hung up unexpectedly\n",
       128, PushFate::Unknown},
      {"", "ssh: connect to host h port 22: Connection refused\n", 128, PushFate::Unreached},
      // So may the user's pre-push hook, before it is sent.
      {"", "psql: error: Connection refused\nfatal: the remote end hung up unexpectedly\n", 128,
       PushFate::Unknown},
      {"",
       "fatal: unable to access 'u': Connection refused\nsend-pack: unexpected disconnect while "
       "reading sideband packet\nfatal: the remote end hung up unexpectedly\n",
       128, PushFate::Unknown},
      {"",
       "fatal: unable to access 'u': Connection refused\nfatal: read error: Connection reset by "
       "peer\n",
       128, PushFate::Unknown},
      {"",
       "fatal: the receiving end does not support --atomic push\nfatal: the remote end hung up "
       "unexpectedly\n",
       128, PushFate::Unreached},
      // Sent on a connection that was kept, which died, and then on a new one, which was refused.
      {"", "error: RPC failed; curl 7 Failed to connect to h port 80: Connection refused\n", 1,
       PushFate::Unknown},
      // A curl failure after sending: git then says that all is well.
      {"Everything up-to-date\n", "error: RPC failed; HTTP 500\n", 1, PushFate::Unknown},
      {" \tY:refs/heads/main\ta..b\n", "", 0, PushFate::Unknown},
  };
  for (const Printed& one : cases) {
    std::string why;
    EXPECT_EQ(
        fate_of_push(one.code, parse_porcelain(one.out), one.talk, "refs/stint/fence/r", &why),
        one.fate)
        << one.out << one.talk;
  }
}

}  // namespace
}  // namespace stint::guard
