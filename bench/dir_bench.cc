// The dir: store against the least that could be safe: create, fsync, link, fsync of the directory.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "app/opened.h"
#include "base/check.h"
#include "base/text.h"
#include "bench/bench.h"
#include "os/clock.h"
#include "os/random.h"
#include "store/dir/dir_store.h"
#include "tests/support/process.h"

namespace stint::bench {
namespace {

constexpr int kRounds = 7;
constexpr int kEach = 40;

class Bare {
 public:
  explicit Bare(const std::string& path) : path_(path) {
    CHECK(::mkdir(path.c_str(), 0700) == 0, "mkdir");
    directory_ = os::Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  void commit() {
    const std::string staged = path_ + "/staged";
    const os::Fd file(::open(staged.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    const std::string text(1000, 'x');
    CHECK(::write(file.get(), text.data(), text.size()) == 1000, "write");
    CHECK(::fsync(file.get()) == 0, "fsync");
    CHECK(::link(staged.c_str(), cat(path_, "/", ++last_).c_str()) == 0, "link");
    CHECK(::fsync(directory_.get()) == 0, "fsync");
    CHECK(::unlink(staged.c_str()) == 0, "unlink");
  }

 private:
  std::string path_;
  os::Fd directory_;
  int last_ = 0;
};

struct World {
  test::TempDir dir;
  os::SystemClock clock;
  os::SystemRandom random;

  std::string path() const { return dir.file("store"); }
  void fill(int records) {
    store::DirOptions options;
    options.path = path();
    options.readable = false;
    auto opened = store::DirStore::open(options, clock);
    CHECK(opened, "the store cannot be opened");
    constexpr int kSteps = 60;
    for (int i = 0; i < records; i += kSteps) {
      std::vector<store::Step> steps;
      for (int j = i; j < std::min(i + kSteps, records); ++j) {
        store::Step& step = steps.emplace_back();
        step.kind = store::Step::Kind::Set;
        step.key = cat("own/resource-", (j * 7919L) % records);
        step.value = std::string(200, 'v');
      }
      CHECK((*opened)->commit(steps, store::Sync::Relaxed), "commit");
    }
  }
  std::unique_ptr<app::Opened> open() {
    auto url = app::parse_store_url(cat("dir:", path()));
    CHECK(url, "url");
    auto made =
        app::Opened::open({.url = *url, .state_directory = dir.file("state")}, clock, random);
    CHECK(made, "the store cannot be opened");
    return std::move(*made);
  }
};

api::Grip acquire(World& world, api::Leases& leases, const std::string& name) {
  const auto resource = ResourceName::parse(name).value();
  const auto owner = Owner::parse("bench").value();
  const Claim claim = Claim::make(world.random);
  auto answer = leases.acquire({.resource = resource,
                                .owner = owner,
                                .claim = claim,
                                .terms = {.ttl = Millis(600'000)},
                                .note = {},
                                .retake = std::nullopt});
  CHECK(answer && std::holds_alternative<api::Granted>(*answer), "not granted");
  const auto& granted = std::get<api::Granted>(*answer);
  return {resource, granted.lease.token, claim, owner, granted.hint};
}

struct Lines {
  Comparison taking;
  Comparison renewing;
  Comparison opening;
};

// Acquires, renews and openings in turn with bare links, on a store of that many records.
Lines lines(int records) {
  World world;
  world.fill(records);
  Bare bare(world.dir.file("bare"));
  const std::string bare_name = "create+fsync+link+fsync(dir), ms";
  Lines out{{cat("dir: acquire, ", records, " records"), "ms", bare_name, {}, {}, Goal::AtMost, 3},
            {cat("dir: renew, ", records, " records"), "ms", bare_name, {}, {}, Goal::AtMost, 3},
            {cat("dir: open, ", records, " records"), "ms", bare_name, {}, {}, Goal::AtMost, 1}};
  const auto opened = world.open();
  int next = 0;
  // One of each in turn, and the median of a round: other work on the disk meets all alike.
  const auto median = [](std::vector<double>& seconds) {
    return spread_of(std::move(seconds)).median * 1000;
  };
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> bares;
    std::vector<double> acquires;
    std::vector<double> renewals;
    std::vector<double> openings;
    for (int i = 0; i < kEach; ++i) {
      std::optional<api::Grip> grip;
      bares.push_back(seconds_of([&] { bare.commit(); }));
      acquires.push_back(
          seconds_of([&] { grip = acquire(world, opened->leases(), cat("r-", next++)); }));
      renewals.push_back(seconds_of(
          [&] { CHECK(opened->leases().renew(*grip, Millis(600'000)), "not renewed"); }));
      openings.push_back(seconds_of([&] { world.open(); }));
    }
    out.taking.our_values.push_back(median(acquires));
    out.renewing.our_values.push_back(median(renewals));
    out.opening.our_values.push_back(median(openings));
    const double bare_ms = median(bares);
    for (Comparison* line : {&out.taking, &out.renewing, &out.opening}) {
      line->their_values.push_back(bare_ms);
    }
  }
  return out;
}

int run() {
  print_header();
  const Lines few = lines(10);
  const Lines many = lines(100'000);
  bool met = true;
  for (const Lines* one : {&few, &many}) {
    met &= print(one->taking);
    met &= print(one->renewing);
    met &= print(one->opening);
  }
  // Each against the bare commits of its own round: the disk is not equally fast all the time.
  Comparison flat{
      "dir: acquire, 100000 records against 10", "of bare", "of bare", {}, {}, Goal::AtMost, 1.5};
  for (int i = 0; i < kRounds; ++i) {
    const auto at = static_cast<std::size_t>(i);
    flat.our_values.push_back(many.taking.our_values[at] / many.taking.their_values[at]);
    flat.their_values.push_back(few.taking.our_values[at] / few.taking.their_values[at]);
  }
  met &= print(flat);
  return met ? 0 : 1;
}

}  // namespace
}  // namespace stint::bench

int main() { return stint::bench::run(); }
