// The store in a Durable Object against the bare commit of the same size, on the same workerd; and
// a commit among many records against one among few.
#include <cstdio>

#include "base/check.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/client.h"
#include "tests/support/servers.h"

namespace stint::bench {
namespace {

using store::Step;

Step step(Step::Kind kind, std::string key, std::size_t bytes = 0) {
  Step out;
  out.kind = kind;
  out.key = std::move(key);
  out.value = std::string(bytes, 'x');
  return out;
}

void commit(store::Store& store, const std::vector<Step>& steps) {
  const auto done = store.commit(steps, store::Sync::Durable);
  CHECK(done && std::holds_alternative<store::Committed>(*done), "the commit failed");
}

// What a renewal and an acquisition write, and nothing asked before.
void bare_renewal(store::Store& store) {
  Step touch = step(Step::Kind::Touch, "bare/alive");
  touch.demand = TimerState::Running;
  touch.timer = Step::TimerOp::Extend;
  touch.ttl = Millis(60'000);
  commit(store, {step(Step::Kind::Check, "bare/own"), touch});
}
void bare_acquisition(store::Store& store) {
  Step alive = step(Step::Kind::Set, "bare/alive", 30);
  alive.timer = Step::TimerOp::Start;
  alive.ttl = Millis(60'000);
  commit(store,
         {step(Step::Kind::Set, "bare/own", 300), alive, step(Step::Kind::Set, "bare/hist", 300),
          step(Step::Kind::Check, "meta/store"), step(Step::Kind::Append, "log/", 200)});
}

void fill(store::Store& store, int records) {
  for (int i = 0; i < records;) {
    std::vector<Step> steps;
    for (; i < records && steps.size() < store::Store::kMaxSteps; ++i) {
      steps.push_back(step(Step::Kind::Set, cat("fill/", i * 7919 % 1'000'003), 200));
    }
    commit(store, steps);
  }
}

bool at_most(Took& took, double bound) {
  took.wall.goal = Goal::AtMost;
  took.wall.bound = bound;
  return print(took.wall);
}

int run() {
  if (const std::string why = test::WorkerdServer::missing(); !why.empty()) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return 2;
  }
  test::WorkerdServer server;
  const auto started = server.start();
  CHECK(started.has_value(), started.has_value() ? "" : started.error().message.c_str());
  Client client(server.url());
  Client few(server.url() + "/few");
  Client many(server.url() + "/many");
  fill(few.store(), 1'000);
  fill(many.store(), 100'000);
  const api::Grip held = client.take("held");
  bare_acquisition(client.store());
  const auto renew = [&] { client.renew(held); };
  const auto touch = [&] { bare_renewal(client.store()); };
  int taken = 0;
  const auto acquire = [&] { client.take(cat("r", taken++)); };
  const auto set = [&] { bare_acquisition(client.store()); };
  const auto in_few = [&] { bare_acquisition(few.store()); };
  const auto in_many = [&] { bare_acquisition(many.store()); };
  for (int i = 0; i < 50; ++i) {
    renew();
    touch();
    in_few();
    in_many();
  }
  Took renewing = take_turns({renew, touch, 100, 7}, "do: renew", "bare commit");
  Took acquiring = take_turns({acquire, set, 100, 7}, "do: acquire", "bare commit");
  Took filled = take_turns({in_many, in_few, 100, 7}, "do: among 100,000", "among 1,000");
  print_header();
  const bool renews = at_most(renewing, 1.2);
  const bool acquires = at_most(acquiring, 1.6);
  const bool fills = at_most(filled, 1.3);
  return renews && acquires && fills ? 0 : 1;
}

}  // namespace
}  // namespace stint::bench

int main() { return stint::bench::run(); }
