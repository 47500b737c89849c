// A fenced push against the plain one: the same commits to the same server, from clones alike.
#include "base/check.h"
#include "base/text.h"
#include "bench/bench.h"
#include "tests/guard_git/git_world.h"

namespace stint::bench {
namespace {

constexpr int kRounds = 7;
constexpr int kEach = 12;

// A clone with commits that are pushed one after the other.
class Pusher {
 public:
  Pusher(test::GitWorld& world, const std::string& name) : world_(world), name_(world.clone(name)) {
    for (int i = 0; i <= kRounds * kEach; ++i) oids_.push_back(world.commit(name_, cat(i)));
  }
  std::string next() { return oids_.at(at_++); }
  const std::string& name() const { return name_; }

 private:
  test::GitWorld& world_;
  const std::string name_;
  std::vector<std::string> oids_;
  std::size_t at_ = 0;
};

bool compare(test::Transport transport, const std::string& where, double bound) {
  test::GitWorld world(transport);
  const test::Grant grant = world.take("bench");
  Pusher fenced(world, "fenced");
  Pusher plain(world, "plain");
  const auto push_fenced = [&] {
    const auto done =
        world.push(fenced.name(), grant, {"origin", cat(fenced.next(), ":fenced"), "-q"});
    CHECK(done.exit_code == 0, "the fenced push failed");
  };
  const auto push_plain = [&] {
    const auto done =
        world.git(plain.name(), {"push", "-q", "origin", cat(plain.next(), ":refs/heads/plain")});
    CHECK(done.exit_code == 0, "the plain push failed");
  };
  push_fenced();  // seals
  push_plain();
  Comparison table{.name = cat("git push, ", where),
                   .ours = "fenced, ms",
                   .theirs = "plain, ms",
                   .our_values = {},
                   .their_values = {},
                   .goal = Goal::AtMost,
                   .bound = bound};
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> ours;
    std::vector<double> theirs;
    for (int i = 0; i < kEach; ++i) {
      ours.push_back(1000 * seconds_of(push_fenced));
      theirs.push_back(1000 * seconds_of(push_plain));
    }
    table.add(spread_of(ours).median, spread_of(theirs).median);
  }
  return print(table);
}

}  // namespace
}  // namespace stint::bench

int main() {
  using stint::test::Transport;
  stint::bench::print_header();
  bool met = stint::bench::compare(Transport::Path, "local path", 1.25);
  met = stint::bench::compare(Transport::Daemon, "git daemon", 1.15) && met;
  return met ? 0 : 1;
}
