#include "app/examiner.h"

#include <algorithm>
#include <vector>

#include "app/doctor.h"
#include "base/text.h"
#include "os/pause.h"
#include "os/thread.h"
#include "store/seam.h"

namespace stint::app {
namespace {

// So long an examination that was cut short may remove what it wrote.
constexpr Millis kClearing{5000};

// A store that answers only as long as it is let: an examination of a slow store ends, too.
class LetStore final : public store::Store {
 public:
  LetStore(std::shared_ptr<store::Store> behind, std::function<Status(bool clears)> let)
      : behind_(std::move(behind)), let_(std::move(let)) {}

  const store::Capabilities& capabilities() const override { return behind_->capabilities(); }
  const store::Opening& opening() const override { return behind_->opening(); }
  Result<store::Reading> read(const std::vector<std::string>& keys) override {
    if (auto may = let_(false); !may) return may.error();
    return behind_->read(keys);
  }
  Result<store::Reading> scan(const ScanRange& range) override {
    if (auto may = let_(true); !may) return may.error();
    return behind_->scan(range);
  }
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override {
    const bool clears = std::ranges::all_of(
        steps, [](const store::Step& step) { return step.kind == store::Step::Kind::Remove; });
    if (auto may = let_(clears); !may) return may.error();
    return behind_->commit(steps, sync);
  }
  Result<std::unique_ptr<Watch>> watch(std::string_view key) override {
    if (auto may = let_(false); !may) return may.error();
    return behind_->watch(key);
  }
  Result<std::vector<store::Finding>> examine() override {
    if (auto may = let_(false); !may) return may.error();
    return behind_->examine();
  }
  Result<std::uint64_t> appended(const std::string& prefix) override {
    if (auto may = let_(false); !may) return may.error();
    return behind_->appended(prefix);
  }
  Result<std::uint64_t> revision() override {
    if (auto may = let_(false); !may) return may.error();
    return behind_->revision();
  }

 private:
  const std::shared_ptr<store::Store> behind_;
  const std::function<Status(bool clears)> let_;
};

}  // namespace

Examiner::Examiner(World world, const Clock& clock, Random& random)
    : world_(std::move(world)), clock_(clock), random_(random) {}

Examiner::~Examiner() {
  over_ = true;
  std::thread last;
  {
    const MutexLock lock(mutex_);
    last = std::move(thread_);
  }
  if (last.joinable()) last.join();
}

server::Examined Examiner::ask() {
  const MutexLock lock(mutex_);
  const bool fresh = ever_ && clock_.mono() - done_at_ < world_.fresh;
  if (seen_.running || fresh || over_) return seen_;
  if (thread_.joinable()) thread_.join();  // it has said its last word already
  ever_ = true;
  until_ = clock_.mono() + world_.limit;
  cut_at_ = MonoTime{};
  seen_ = {.running = true, .began_at = clock_.wall()};
  if (auto started = os::start_thread("stint-examiner", "look at the store", [this] { examine(); });
      started) {
    thread_ = std::move(*started);
  } else {
    seen_.running = false;
    seen_.ended_at = seen_.began_at;
    seen_.fault = started.error().message;
    done_at_ = clock_.mono();
  }
  return seen_;
}

server::Examined Examiner::told() {
  const MutexLock lock(mutex_);
  return seen_;
}

void Examiner::tell(const store::Finding& finding) {
  const MutexLock lock(mutex_);
  seen_.findings.push_back({finding.check, std::string(probe::word(finding.level)), finding.text});
}

void Examiner::examine() {
  const probe::Practice practice{
      .open = [this] { return open_limited(); },
      .contest = [this](const probe::Contest& contest) { return contest_of_threads(contest); },
      .wait = [](int fd, MonoTime until) { return bool{os::wait_readable({fd}, until).front()}; },
      .pause = [](Nanos length) { os::pause_for(length); },
      .clock = clock_,
      .random = random_,
      .tell = [this](const store::Finding& finding) { tell(finding); },
      .contenders = "threads"};
  const auto done = probe::examine(practice);
  if (done) tell(world_.generation);
  const MutexLock lock(mutex_);
  if (!done) seen_.fault = done.error().message;
  seen_.running = false;
  seen_.ended_at = clock_.wall();
  done_at_ = clock_.mono();
}

// `clears`: it looks for what it wrote, or removes it.
Status Examiner::let(bool clears) {
  const MonoTime now = clock_.mono();
  const bool over = over_;
  if (!over && now < until_.load()) return {};
  MonoTime cut{};
  if (cut_at_.compare_exchange_strong(cut, now)) cut = now;
  if (clears && now - cut < kClearing) return {};
  if (over) return unavailable("the server is stopping");
  return unavailable(cat("the examination was not done within ", format_duration(world_.limit),
                         ": this store is slow"));
}

Result<std::unique_ptr<store::Store>> Examiner::open_limited() {
  auto store = world_.open();
  if (!store) return store.error();
  return std::unique_ptr<store::Store>(
      std::make_unique<LetStore>(std::move(*store), [this](bool clears) { return let(clears); }));
}

Result<probe::Tally> Examiner::contest_of_threads(const probe::Contest& contest) {
  const auto count = static_cast<std::size_t>(contest.contenders);
  std::vector<Result<probe::Tally>> tallies(count, Error{});
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    auto started = os::start_thread("stint-contender", "contend", [&, i] {
      auto store = open_limited();
      tallies[i] = store ? probe::contend(**store, contest, [](Nanos n) { os::pause_for(n); })
                         : unavailable(cat("a contender cannot open it: ", store.error().message));
    });
    if (started) threads.push_back(std::move(*started));
    if (!started) tallies[i] = started.error();
  }
  for (std::thread& thread : threads) thread.join();
  return sum_of(tallies);
}

Examiner::World examined_store(Opened& opened, const OpenOptions& options, const Clock& clock) {
  OpenOptions again = options;
  again.may_create = false;
  const bool here = options.url.scheme == "memory" || options.url.scheme == "log";
  Examiner::World world;
  world.generation = generation_finding(opened.leases().generation().hex(), memory_of(options));
  world.open = [&opened, again, &clock, here]() -> Result<std::shared_ptr<store::Store>> {
    // What lives in this process alone has no second opening: the first one is shared.
    if (here) return std::shared_ptr<store::Store>(opened.bare(), [](store::Store*) {});
    auto another = open_store(again, clock);
    if (!another) return another.error();
    return std::shared_ptr<store::Store>(std::move(*another));
  };
  return world;
}

}  // namespace stint::app
