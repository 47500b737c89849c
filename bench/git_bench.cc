// A fenced push against the plain one: the same commits to the same server, from clones alike. And
// git alone with a second ref in the same atomic push: the least that a fence costs.
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

// git alone, with one more small object and ref.
class TwoRefs {
 public:
  TwoRefs(test::GitWorld& world, const std::string& name) : world_(world), pusher_(world, name) {}
  void make_object() {
    test::write_text(world_.dir().file("object"), cat("object ", ++count_));
    object_ =
        trim(world_.git(pusher_.name(), {"hash-object", "-w", world_.dir().file("object")}).out);
  }
  void push() {
    const auto done = world_.git(
        pusher_.name(),
        {"push", "--porcelain", "--atomic", cat("--force-with-lease=", kRef, ":", before_),
         "origin", cat(object_, ":", kRef), cat(pusher_.next(), ":refs/heads/two")});
    CHECK(done.exit_code == 0, done.err.c_str());
    before_ = object_;
  }

 private:
  static constexpr const char* kRef = "refs/stint/two";
  test::GitWorld& world_;
  Pusher pusher_;
  int count_ = 0;
  std::string object_;
  std::string before_;
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
  TwoRefs two(world, "two");
  const auto push_two = [&] { two.push(); };
  push_fenced();  // seals
  push_plain();
  two.make_object();
  push_two();
  Comparison table{.name = cat("git push, ", where),
                   .ours = "fenced, ms",
                   .theirs = "plain, ms",
                   .our_values = {},
                   .their_values = {},
                   .goal = Goal::AtMost,
                   .bound = bound};
  Comparison least = table;
  least.name = cat("git push of two refs in one step, without stint, ", where);
  least.ours = "ms";
  least.goal = Goal::None;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> ours;
    std::vector<double> theirs;
    std::vector<double> twos;
    for (int i = 0; i < kEach; ++i) {
      ours.push_back(1000 * seconds_of(push_fenced));
      theirs.push_back(1000 * seconds_of(push_plain));
      two.make_object();
      twos.push_back(1000 * seconds_of(push_two));
    }
    table.add(spread_of(ours).median, spread_of(theirs).median);
    least.add(spread_of(twos).median, spread_of(theirs).median);
  }
  print(least);
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
