// `stint serve` against Redis and etcd, each doing acquire and release of leases that survive a
// power cut: one load generator, 64 connections, every connection its own lease. Rounds in turn.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "base/check.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/load.h"
#include "os/random.h"
#include "tests/support/servers.h"

namespace stint::bench {
namespace {

constexpr std::size_t kConnections = 64;
constexpr Millis kTime{1500};
constexpr int kRounds = 5;

std::string base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 3) {
    const auto byte = [&](std::size_t at) -> unsigned {
      return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
    };
    const unsigned word = byte(i) << 16U | byte(i + 1) << 8U | byte(i + 2);
    out += kDigits[word >> 18U];
    out += kDigits[word >> 12U & 63U];
    out += i + 1 < text.size() ? kDigits[word >> 6U & 63U] : '=';
    out += i + 2 < text.size() ? kDigits[word & 63U] : '=';
  }
  return out;
}

std::string post(std::string_view path, std::string_view headers, std::string_view body) {
  return cat("POST ", path, " HTTP/1.1\r\nHost: localhost\r\n", headers,
             "Content-Length: ", body.size(), "\r\n\r\n", body);
}

std::string_view between(std::string_view text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  CHECK(at != text.npos, "the answer is not what it should be");
  const std::string_view rest = text.substr(at + from.size());
  return rest.substr(0, rest.find(to));
}

// Acquire, release, acquire ...; or, `renewals` at a time, renew without end.
class StintTalk final : public Talk {
 public:
  StintTalk(std::string name, std::string key, std::size_t renewals)
      : name_(std::move(name)),
        renewals_(renewals),
        header_(cat("Authorization: Bearer ", key, "\r\n")) {}

  std::string next(std::string_view answer) override {
    CHECK(answer.empty() || (http_ok(answer) && answer.find("\"error\"") == answer.npos),
          std::string(answer.substr(0, 300)).c_str());
    if (renewals_ > 0) return renewal(answer);
    if (!held_) {
      held_ = true;
      return acquire(name_, "");
    }
    held_ = false;
    const std::string_view body = http_body(answer);
    return post("/v1/release", header_, cat("{", grip(name_, body), "}"));
  }
  std::size_t whole(std::string_view in) const override { return whole_http(in); }
  bool at_rest() const override { return !held_; }

 private:
  std::string acquire(const std::string& name, std::string_view) {
    claim_ = random_.id_hex();
    return post("/v1/acquire", header_,
                cat("{\"resource\":\"", name, "\",\"owner\":\"bench\",\"claim\":\"", claim_,
                    "\",\"ttl_ms\":600000}"));
  }
  std::string grip(const std::string& name, std::string_view body) const {
    return cat("\"resource\":\"", name, "\",\"token\":", between(body, "\"token\":", ","),
               ",\"claim\":\"", claim_, "\",\"hint\":{", between(body, "\"hint\":{", "}"), "}");
  }
  // The first ones are taken, then all of them are renewed again and again.
  std::string renewal(std::string_view answer) {
    if (grips_.size() < renewals_) {
      if (!answer.empty())
        grips_.push_back(grip(cat(name_, "/", grips_.size()), http_body(answer)));
      if (grips_.size() < renewals_) return acquire(cat(name_, "/", grips_.size()), "");
    }
    if (renewals_ == 1) {
      return post("/v1/renew", header_, cat("{", grips_.front(), ",\"ttl_ms\":600000}"));
    }
    std::string all;
    for (const std::string& one : grips_) all += cat(all.empty() ? "{" : ",{", one, "}");
    return post("/v1/renew", header_, cat("{\"ttl_ms\":600000,\"leases\":[", all, "]}"));
  }

  const std::string name_;
  const std::size_t renewals_;
  const std::string header_;
  std::string claim_;
  bool held_ = false;
  std::vector<std::string> grips_;
  os::SystemRandom random_;
};

std::string command(const std::vector<std::string>& words) {
  std::string out = cat("*", words.size(), "\r\n");
  for (const std::string& word : words) out += cat("$", word.size(), "\r\n", word, "\r\n");
  return out;
}

class RedisTalk final : public Talk {
 public:
  explicit RedisTalk(std::string name) : name_(std::move(name)), value_(random_.id_hex()) {}
  std::string next(std::string_view answer) override {
    CHECK(answer.empty() || answer == "+OK\r\n" || answer == ":1\r\n", "Redis refused");
    held_ = !held_;
    if (held_) return command({"SET", name_, value_, "NX", "PX", "600000"});
    return command(
        {"EVAL",
         "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end "
         "return 0",
         "1", name_, value_});
  }
  std::size_t whole(std::string_view in) const override {
    return in.ends_with("\r\n") ? in.size() : 0;
  }
  bool at_rest() const override { return !held_; }

 private:
  const std::string name_;
  os::SystemRandom random_;
  const std::string value_;
  bool held_ = false;
};

class EtcdTalk final : public Talk {
 public:
  explicit EtcdTalk(std::string name) : key_(base64(name)) {}
  std::string next(std::string_view answer) override {
    CHECK(answer.empty() || (http_ok(answer) && answer.find("succeeded") != answer.npos),
          "etcd refused");
    held_ = !held_;
    const std::string compare =
        held_
            ? cat("{\"target\":\"CREATE\",\"key\":\"", key_, "\",\"create_revision\":\"0\"}")
            : cat("{\"target\":\"VALUE\",\"key\":\"", key_, "\",\"value\":\"", base64("me"), "\"}");
    const std::string then =
        held_ ? cat("{\"request_put\":{\"key\":\"", key_, "\",\"value\":\"", base64("me"), "\"}}")
              : cat("{\"request_delete_range\":{\"key\":\"", key_, "\"}}");
    return post("/v3/kv/txn", "Content-Type: application/json\r\n",
                cat("{\"compare\":[", compare, "],\"success\":[", then, "]}"));
  }
  std::size_t whole(std::string_view in) const override { return whole_http(in); }
  bool at_rest() const override { return !held_; }

 private:
  const std::string key_;
  bool held_ = false;
};

// The real program, with a key.
class Serve {
 public:
  Serve(const std::string& stint, const std::string& threads, std::string_view kind) {
    const std::string store = cat(kind, ":", dir_.file("store"));
    const auto made =
        test::run({.argv = {stint, "key", "create", "bench", "--allow", "acquire,read", "-q"},
                   .env = {{"STINT_STORE", store}, {"XDG_STATE_HOME", dir_.path()}}});
    CHECK(made.exit_code == 0, made.err.c_str());
    key = made.out.substr(0, made.out.find('\n'));
    child_.emplace(test::Command{
        .argv = {stint, "serve", "--listen", "127.0.0.1:0", "--store-threads", threads},
        .env = {{"STINT_STORE", store}, {"XDG_STATE_HOME", dir_.path()}},
        .die_with_parent = true});
    CHECK(test::wait_until([&] { return child_->err().find("listening on") != std::string::npos; },
                           Millis(30'000)),
          "the server does not start");
    const std::string said = child_->err();
    const std::size_t at = said.find("127.0.0.1:") + 10;
    std::uint16_t number = 0;
    std::from_chars(said.data() + at, said.data() + said.size(), number);
    port = number;
  }
  std::uint16_t port = 0;
  std::string key;

 private:
  test::TempDir dir_;
  std::optional<test::Child> child_;
};

Comparison line(std::string name, std::string theirs, Goal goal, double bound) {
  Comparison out;
  out.name = std::move(name);
  out.ours = "calls/s";
  out.theirs = std::move(theirs);
  out.goal = goal;
  out.bound = bound;
  return out;
}

// What one kind of store is held to.
struct Bounds {
  double redis;
  double etcd;
};

// One server and its five lines of the table.
class Contender {
 public:
  Contender(const std::string& stint, const std::string& threads, const std::string& kind,
            const Bounds& bounds)
      : serve_(stint, threads, kind),
        pairs_(line(cat("serve ", kind, ": acquire/release, 64 connections"),
                    "Redis always, SET NX + Lua", Goal::AtLeast, bounds.redis)),
        against_etcd_(line(cat("serve ", kind, ": acquire/release, 64 connections"),
                           "etcd transactions", Goal::AtLeast, bounds.etcd)),
        renewals_(
            line(cat("serve ", kind, ": renewals one by one"), "its own pairs", Goal::AtLeast, 1)),
        batches_(
            line(cat("serve ", kind, ": renewals by 100"), "its own pairs", Goal::AtLeast, 10)),
        late_(line(cat("serve ", kind, ": p99 of a renewal, us"), "Redis always' p99", Goal::AtMost,
                   1)) {
    late_.ours = "us";
  }

  double run_pairs() {
    pairs_result_ = run(0);
    return pairs_result_.per_second;
  }
  void run_rest(const LoadResult& redis, const LoadResult& etcd) {
    const LoadResult one = run(1);
    const LoadResult many = run(100);
    const double pairs = pairs_result_.per_second;
    pairs_.add(pairs, redis.per_second);
    against_etcd_.add(pairs, etcd.per_second);
    renewals_.add(one.per_second, pairs);
    batches_.add(many.per_second * 100, pairs);
    late_.add(one.p99_us, redis.p99_us);
  }
  bool tell() const {
    bool fine = print(pairs_);
    fine &= print(against_etcd_);
    fine &= print(renewals_);
    fine &= print(batches_);
    fine &= print(late_);
    return fine;
  }

 private:
  LoadResult run(std::size_t renewals) {
    ++round_;
    return run_load(serve_.port, kConnections, kTime, [&](std::size_t i) {
      // Pairs: the same names in every round; renewals: new ones.
      const std::string name = renewals == 0 ? cat("pair/", i) : cat("renew/", round_, "/", i);
      return std::make_unique<StintTalk>(name, serve_.key, renewals);
    });
  }

  Serve serve_;
  int round_ = 0;
  LoadResult pairs_result_;
  Comparison pairs_;
  Comparison against_etcd_;
  Comparison renewals_;
  Comparison batches_;
  Comparison late_;
};

int compare(const std::string& stint, const std::string& threads) {
  test::RedisServer redis;
  CHECK(redis.start(), "Redis does not start");
  test::EtcdCluster etcd(1);
  CHECK(etcd.start(), "etcd does not start");
  const std::uint16_t etcd_port = static_cast<std::uint16_t>(
      std::atoi(etcd.hosts().substr(etcd.hosts().rfind(':') + 1).c_str()));
  std::vector<std::unique_ptr<Contender>> contenders;
  contenders.push_back(
      std::make_unique<Contender>(stint, threads, "sqlite", Bounds{.redis = 0.6, .etcd = 4}));
  contenders.push_back(
      std::make_unique<Contender>(stint, threads, "log", Bounds{.redis = 1, .etcd = 8}));
  for (int i = 0; i < kRounds; ++i) {
    const LoadResult theirs = run_load(redis.port(), kConnections, kTime, [](std::size_t n) {
      return std::make_unique<RedisTalk>(cat("bench/", n));
    });
    for (const auto& one : contenders) one->run_pairs();
    const LoadResult slow = run_load(etcd_port, kConnections, kTime, [](std::size_t n) {
      return std::make_unique<EtcdTalk>(cat("bench/", n));
    });
    for (const auto& one : contenders) one->run_rest(theirs, slow);
  }
  print_header();
  bool fine = true;
  for (const auto& one : contenders) fine &= one->tell();
  return fine ? 0 : 1;
}

// One side of a round, with what it cost.
void tell_load(const std::string& name, const std::function<double()>& run) {
  const double server = seconds_of_servers();
  const std::clock_t client = std::clock();
  const double a_second = run();
  const double calls = a_second * static_cast<double>(kTime.count()) / 1e3;
  std::printf("%s %.0f calls/s, processor time a call: server %.1f us, client %.1f us\n",
              name.c_str(), a_second, (seconds_of_servers() - server) * 1e6 / calls,
              static_cast<double>(std::clock() - client) * 1e6 / CLOCKS_PER_SEC / calls);
}

// For a profile: the pairs of one kind of store, again and again, in turn with those of Redis.
int drive(const std::string& stint, const std::string& threads, const std::string& kind,
          int rounds) {
  test::RedisServer redis;
  CHECK(redis.start(), "Redis does not start");
  Contender one(stint, threads, kind, Bounds{.redis = 1, .etcd = 8});
  std::vector<double> ratios;
  for (int i = 0; i < rounds; ++i) {
    double theirs = 0;
    double ours = 0;
    tell_load("redis", [&] {
      theirs = run_load(redis.port(), kConnections, kTime, [](std::size_t n) {
                 return std::make_unique<RedisTalk>(cat("bench/", n));
               }).per_second;
      return theirs;
    });
    tell_load(kind, [&] { return ours = one.run_pairs(); });
    ratios.push_back(ours / theirs);
  }
  std::sort(ratios.begin(), ratios.end());
  std::printf("%s of redis: %.2f [%.2f..%.2f]\n", kind.c_str(), ratios[ratios.size() / 2],
              ratios.front(), ratios.back());
  return 0;
}

}  // namespace
}  // namespace stint::bench

// server_bench STINT [THREADS [KIND ROUNDS]]
int main(int count, char** words) {
  if (count > 4) return stint::bench::drive(words[1], words[2], words[3], std::atoi(words[4]));
  return stint::bench::compare(count > 1 ? words[1] : "build/stint", count > 2 ? words[2] : "32");
}
