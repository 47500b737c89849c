// The zombie at the HTTP guard, frozen after every byte of its request, and at random; and many
// writers at once. `make test` plays a slice; STINT_PLAYS=10000 plays as many.
// EVIDENCE-OF: G5
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <iostream>

#include "base/random.h"
#include "base/text.h"
#include "tests/guard_http/world.h"
#include "tests/support/slice.h"

namespace stint::test {
namespace {

// When a zombie goes on.
enum class Moment { BeforeTheSeal, DuringTheSeal, AfterTheWrite, Never };
constexpr std::array<Moment, 4> kMoments = {Moment::BeforeTheSeal, Moment::DuringTheSeal,
                                            Moment::AfterTheWrite, Moment::Never};

struct Tally {
  int plays = 0;
  int landed = 0;   // writes of zombies, before the seal of their successor
  int refused = 0;  // of zombies
  int waited = 0;   // seals that had to be asked for again
};

// A counter at the upstream: each write is the one before it and one more. An update that is lost,
// or that comes after its successor's seal, breaks the row.
class Counter {
 public:
  Counter() {
    world_.request.drain = Millis(20);
    world_.start();
  }

  static std::string text(const ProxyWorld& world, std::uint64_t token, const std::string& body,
                          bool chunked) {
    if (!chunked) return world.put(token, body);
    return cat("PUT /doc HTTP/1.1\r\n", world.headers(token), "Transfer-Encoding: chunked\r\n\r\n",
               "1\r\n", body.substr(0, 1), "\r\n",
               body.size() > 1 ? cat(body.size() - 1, "\r\n", body.substr(1), "\r\n") : "",
               "0\r\n\r\n");
  }

  // The zombie's request as a text of its own, so that the caller can cut it anywhere.
  std::string begin(bool chunked) {
    zombie_ = world_.issue();
    EXPECT_TRUE(seal(zombie_, {}));
    // Always nine digits: every request has the same length.
    return text(world_, zombie_, number(world_.upstream.landed().size() + 1), chunked);
  }

  struct Freeze {
    std::size_t cut = 0;  // after so many bytes
    Moment moment = Moment::Never;
    bool seen = true;  // not before the upstream has seen what it can of the request
  };

  void play(const std::string& request, const Freeze& freeze, Tally& tally) {
    const std::size_t cut = freeze.cut;
    const Moment moment = freeze.moment;
    const std::size_t before = world_.upstream.landed().size();
    const int heads = world_.upstream.heads();
    Client client(world_.port());
    ASSERT_TRUE(client.send(std::string_view(request).substr(0, cut)));
    if (freeze.seen && cut == request.size()) {
      ASSERT_TRUE(wait_until([&] { return world_.upstream.heads() > heads; }));
    }
    bool went_on = false;
    const auto go_on = [&] {
      if (std::exchange(went_on, true)) return;
      if (moment == Moment::Never) {
        client.hang_up();
      } else {
        client.send(std::string_view(request).substr(cut));
      }
    };
    if (moment == Moment::BeforeTheSeal) go_on();
    const auto next = world_.issue();
    std::future<void> meanwhile;
    if (moment == Moment::DuringTheSeal) meanwhile = std::async(std::launch::async, go_on);
    // A zombie that was let in holds the seal back, and the seal says so; then the zombie goes on.
    ASSERT_TRUE(seal(next, [&] {
      ++tally.waited;
      if (!meanwhile.valid()) go_on();
    }));
    const std::size_t count = world_.upstream.landed().size();
    ASSERT_LE(count, before + 1);
    tally.landed += static_cast<int>(count - before);
    const Reply written = world_.send(next, number(count + 1));
    ASSERT_EQ(written.status, 200) << written.body;
    if (meanwhile.valid()) meanwhile.get();
    go_on();
    if (moment != Moment::Never) tally.refused += client.read().status == 412 ? 1 : 0;
    ++tally.plays;
  }

  // The upstream saw 1, 2, 3 ... and nothing else.
  void check() {
    const auto bodies = world_.upstream.bodies();
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      ASSERT_EQ(without_chunks(bodies[i]), number(i + 1)) << i;
    }
    EXPECT_TRUE(std::ranges::is_sorted(world_.upstream.landed()));
  }

 private:
  // The upstream keeps a chunked body as it came, but for the last chunk.
  static std::string without_chunks(const std::string& body) {
    if (body.find("\r\n") == std::string::npos) return body;
    std::string out;
    for (std::size_t at = 0; at < body.size();) {
      const std::size_t from = body.find("\r\n", at) + 2;
      const auto size = std::stoul(body.substr(at, from - at), nullptr, 16);
      out += body.substr(from, size);
      at = from + size + 2;
    }
    return out;
  }
  static std::string number(std::size_t n) { return cat(100'000'000 + n); }

  bool seal(std::uint64_t token, const std::function<void()>& refused) {
    const std::string ask = cat("POST ", guard::http::kSealPath, " HTTP/1.1\r\n",
                                world_.headers(token), "Content-Length: 2\r\n\r\n{}");
    return wait_until([&] {
      const Reply reply = world_.ask(ask);
      if (reply.status == 200) return true;
      EXPECT_EQ(reply.status, 503) << reply.body;
      if (refused) refused();
      return false;
    });
  }

  ProxyWorld world_;
  std::uint64_t zombie_ = 0;
};

void print(const char* what, const Tally& tally) {
  std::cout << what << ": " << tally.plays << " plays, " << tally.landed
            << " zombies landed before the seal, " << tally.refused << " refused, " << tally.waited
            << " seals waited, 0 lost\n";
}

TEST(HttpRandomPlay, AZombieFrozenAfterAnyByteNeverLandsAfterTheSeal) {
  // Every byte when many plays are asked for; else fewer of the head than of the body.
  const bool all = plays(0) > 0;
  constexpr std::size_t kTail = 24;
  const auto step = [&](std::size_t left) -> std::size_t {
    if (all) return 1;
    return left > kTail ? 31 : 3;
  };
  Tally tally;
  for (const bool chunked : {false, true}) {
    for (const Moment moment : kMoments) {
      Counter counter;
      std::string request = counter.begin(chunked);
      for (std::size_t cut = 0; cut <= request.size(); cut += step(request.size() - cut)) {
        counter.play(request, {cut, moment, true}, tally);
        ASSERT_FALSE(HasFatalFailure());
        request = counter.begin(chunked);
      }
      counter.check();
    }
  }
  print("frozen after each byte", tally);
  EXPECT_GT(tally.landed, 0);
  EXPECT_GT(tally.refused, 0);
}

TEST(HttpRandomPlay, NoUpdateIsLost) {
  constexpr int kInOneWorld = 100;
  const int all = plays(60);
  Tally tally;
  SeededRandom chance(20261115);
  while (tally.plays < all) {
    Counter counter;
    for (int i = 0; i < kInOneWorld && tally.plays < all; ++i) {
      const std::string request = counter.begin(chance.below(2) == 0);
      // Half of them in the body or at its end, where the request has been let in.
      const std::size_t cut = chance.below(2) == 0 ? chance.below(request.size() + 1)
                                                   : request.size() - chance.below(12);
      counter.play(request, {cut, kMoments.at(chance.below(kMoments.size())), chance.below(4) != 0},
                   tally);
      ASSERT_FALSE(HasFatalFailure()) << "play " << tally.plays;
    }
    counter.check();
  }
  print("at random", tally);
}

// 8 writers with tokens of their own, 2 more that share the first and the last.
TEST(HttpRandomPlay, ManyWritersNeverLandInTheWrongOrder) {
  constexpr std::size_t kTokens = 8;
  constexpr int kInOneWorld = 50;
  const int rounds = plays(20);
  int accepted = 0;
  int refused = 0;
  std::unique_ptr<ProxyWorld> world;
  for (int round = 0; round < rounds; ++round) {
    if (round % kInOneWorld == 0) {
      world = std::make_unique<ProxyWorld>();
      world->request.drain = Millis(60'000);
      world->start();
    }
    std::mutex issuing;
    std::vector<std::atomic<std::uint64_t>> tokens(kTokens);
    std::vector<int> statuses(kTokens + 2);
    std::vector<std::thread> writers;
    for (std::size_t i = 0; i < statuses.size(); ++i) {
      writers.emplace_back([&, i] {
        // The two beside wait for the token that they share.
        const std::size_t whose = i < kTokens ? i : (i - kTokens) * (kTokens - 1);
        if (i < kTokens) {
          if (i > 0) tokens[i - 1].wait(0);
          const std::lock_guard lock(issuing);
          tokens[i] = world->issue();
          tokens[i].notify_all();
        } else {
          tokens[whose].wait(0);
        }
        statuses[i] = world->send(tokens[whose], cat(tokens[whose].load())).status;
      });
    }
    for (std::thread& one : writers) one.join();
    const auto landed = world->upstream.landed();
    ASSERT_TRUE(std::ranges::is_sorted(landed)) << "round " << round;
    ASSERT_EQ(landed.back(), tokens.back().load()) << "round " << round;
    ASSERT_EQ(statuses[kTokens - 1], 200) << "the newest is never refused";
    ASSERT_EQ(statuses[kTokens + 1], 200) << "nor who shares its token";
    for (const int status : statuses) {
      ASSERT_TRUE(status == 200 || status == 412) << status;
      ++(status == 200 ? accepted : refused);
    }
  }
  std::cout << rounds << " rounds of 10 writers, " << accepted << " accepted, " << refused
            << " refused\n";
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace stint::test
