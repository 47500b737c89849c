// The zombie play on git: A is held up inside its push, B takes over, seals and pushes, A goes on.
#include <gtest/gtest.h>

#include <cstdio>

#include "base/text.h"
#include "tests/guard_git/git_world.h"
#include "tests/support/slice.h"

namespace stint::test {
namespace {

enum class Where { Client, Server };

struct Play {
  Transport transport;
  Where where;
};

// One play in a standing world. What went wrong, or nothing.
std::string play(GitWorld& world, const std::string& a, const std::string& b,
                 const Barrier& barrier, bool b_pushes) {
  const Grant first = world.take("a");
  world.git(a, {"fetch", "-q"});
  world.git(a, {"reset", "-q", "--hard", "origin/main"});
  // A is well on its way: its own fence stands, so that only the newer one can stop it.
  if (auto sealed = world.seal(first); !sealed) return sealed.error().message;
  world.commit(a, "a zombie's");
  barrier.arm();
  Child zombie(world.push_command(a, first));
  if (!wait_until([&] { return barrier.arrived(); }, Millis(30'000)))
    return cat("A never got to the barrier: ", zombie.err());
  const Grant second = world.take("b");
  const auto sealed = world.seal(second);
  if (!sealed) return cat("B could not seal: ", sealed.error().message);
  if (!std::holds_alternative<guard::Sealed>(*sealed)) return "B's seal was refused";
  world.git(b, {"fetch", "-q"});
  world.git(b, {"reset", "-q", "--hard", "origin/main"});
  const std::string of_b = b_pushes ? world.commit(b, "b's") : world.main();
  if (b_pushes) {
    const Finished pushed = world.push(b, second);
    if (pushed.exit_code != 0) return cat("B could not push: ", pushed.err);
  }
  barrier.let_go();
  const auto end = zombie.wait(Millis(60'000));
  if (!end || end->code != 13) {
    return cat("A ended with ", end && end->code ? *end->code : -1, ": ", zombie.err());
  }
  if (world.main() != of_b) return "main is not what B left";
  if (world.fence_line("token") != second.token) return "the fence is not B's";
  return {};
}

class Zombie : public testing::TestWithParam<Play> {};

// EVIDENCE-OF: G5
TEST_P(Zombie, IsRefusedByTheServer) {
  const auto [transport, where] = GetParam();
  GitWorld world(transport);
  const std::string a = world.clone("a");
  const std::string b = world.clone("b");
  const Barrier barrier(world.dir().file("barrier"));
  if (where == Where::Client) {
    world.hook(a, "pre-push", barrier.script());
  } else {
    // Nothing is locked yet while this one runs: B gets on.
    world.server_hook("update",
                      cat("case $1 in refs/heads/*) ;; *) exit 0 ;; esac\n", barrier.script()));
  }
  // B pushes too, or has only sealed when A goes on.
  const int first = where == Where::Client ? 0 : 1;
  const int count = plays(1);
  for (int i = 0; i < count; ++i) {
    const std::string wrong = play(world, a, b, barrier, (first + i) % 2 == 0);
    ASSERT_EQ(wrong, "") << "play " << i;
  }
  std::printf("%d plays over %s, held up at the %s: 0 stale writes\n", count,
              std::string(word(transport)).c_str(), where == Where::Client ? "client" : "server");
}

std::vector<Play> all_plays() {
  std::vector<Play> out;
  for (const Transport transport : kTransports) {
    out.push_back({transport, Where::Client});
    out.push_back({transport, Where::Server});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Transports, Zombie, testing::ValuesIn(all_plays()), [](const auto& one) {
  return cat(word(one.param.transport), one.param.where == Where::Client ? "Client" : "Server");
});

class Pushes : public testing::TestWithParam<Transport> {};

// Two processes of one run, two branches, at the same time: each sees the other move the fence.
TEST_P(Pushes, OfOneHolderToTwoBranchesBothLand) {
  GitWorld world(GetParam());
  const std::string a = world.clone("a");
  const std::string b = world.clone("b");
  const Grant grant = world.take("one");
  const Barrier barrier(world.dir().file("barrier"));
  world.hook(a, "pre-push", barrier.script());
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  for (int i = 0; i < plays(1); ++i) {
    const std::string of_a = world.commit(a, cat("a", i));
    const std::string of_b = world.commit(b, cat("b", i));
    barrier.arm();
    Child first(world.push_command(a, grant));
    ASSERT_TRUE(wait_until([&] { return barrier.arrived(); }, Millis(30'000))) << first.err();
    const Finished second = world.push(b, grant, {"origin", "main:side"});
    EXPECT_EQ(second.exit_code, 0) << second.err;
    barrier.let_go();
    const auto end = first.wait(Millis(60'000));
    ASSERT_TRUE(end);
    EXPECT_EQ(end->code, 0) << first.err();
    EXPECT_EQ(world.main(), of_a);
    EXPECT_EQ(world.at("refs/heads/side"), of_b);
  }
  EXPECT_EQ(world.fence_line("token"), grant.token);
}

INSTANTIATE_TEST_SUITE_P(Transports, Pushes, testing::ValuesIn(kTransports),
                         [](const auto& one) { return std::string(word(one.param)); });

}  // namespace
}  // namespace stint::test
