#include "app/doctor.h"

#include <thread>

#include "base/text.h"
#include "client/doctor.h"
#include "os/pause.h"
#include "os/program.h"
#include "service/records.h"
#include "store/shared_store.h"

namespace stint::app {
namespace {

constexpr Millis kContestLimit{60'000};

Result<probe::Tally> parse_tally(const std::string& text) {
  const auto words = split(trim(text), ' ');
  if (words.size() == 2) {
    const auto acknowledged = parse_digits(words[0]);
    const auto unknown = parse_digits(words[1]);
    if (acknowledged && unknown) return probe::Tally{*acknowledged, *unknown};
  }
  return Error{Code::Failed, "a contender ended without a tally"};
}

// All at once, each a process of its own: what sandboxes and machines would be.
Result<probe::Tally> contest_of_processes(const OpenOptions& options,
                                          const Environment& environment,
                                          const probe::Contest& contest) {
  auto variables = environment.all();
  variables["STINT_STORE"] = options.url.whole;
  variables.erase("STINT_STORE_FILE");
  variables[kContendVariable] = cat(contest.key, " ", contest.contenders, " ", contest.increments);
  os::ProgramCall call{
      .argv = {os::own_program(), "doctor"}, .environment = {}, .limit = kContestLimit};
  for (const auto& [name, value] : variables) call.environment.push_back(cat(name, "=", value));
  const auto count = static_cast<std::size_t>(contest.contenders);
  std::vector<Result<probe::Tally>> tallies(count, Error{});
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&call, &tallies, i] {
      const auto end = os::run_program(call);
      tallies[i] = end ? parse_tally(end->out) : Error{Code::Failed, end.error().message};
    });
  }
  for (std::thread& thread : threads) thread.join();
  return sum_of(tallies);
}

// A store of one process at a time is opened once, and contended for within this one.
bool one_process(const OpenOptions& options) { return options.url.scheme == "log"; }

class OnlyOpening {
 public:
  OnlyOpening(const OpenOptions& options, const Clock& clock) : options_(options), clock_(clock) {}

  Result<std::unique_ptr<store::Store>> open() {
    std::shared_ptr<store::Store> store = store_.lock();
    if (!store) {
      auto opened = open_known_store(options_, clock_);
      if (!opened) return opened.error();
      store = std::move(*opened);
      store_ = store;
    }
    return std::unique_ptr<store::Store>(std::make_unique<store::SharedStore>(store));
  }

  Result<probe::Tally> contest(const probe::Contest& contest) {
    auto store = open();
    if (!store) return store.error();
    const auto count = static_cast<std::size_t>(contest.contenders);
    std::vector<Result<probe::Tally>> tallies(count, Error{});
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        tallies[i] = probe::contend(**store, contest, [](Nanos length) { os::pause_for(length); });
      });
    }
    for (std::thread& thread : threads) thread.join();
    return sum_of(tallies);
  }

 private:
  const OpenOptions& options_;
  const Clock& clock_;
  std::weak_ptr<store::Store> store_;  // closed with the last opening
};

// Which life the store is in, and who would notice if it went back in time.
void tell_generation(const OpenOptions& options, const Clock& clock, Random& random,
                     const std::function<void(const store::Finding&)>& tell) {
  auto opened = Opened::open(options, clock, random);
  if (!opened) {
    tell({store::Finding::Level::Fail, "generation", opened.error().message});
    return;
  }
  tell(generation_finding((*opened)->leases().generation().hex(), memory_of(options)));
}

}  // namespace

Result<probe::Tally> sum_of(const std::vector<Result<probe::Tally>>& tallies) {
  probe::Tally sum;
  for (const auto& tally : tallies) {
    if (!tally) return tally.error();
    sum.acknowledged += tally->acknowledged;
    sum.unknown += tally->unknown;
  }
  return sum;
}

Memory memory_of(const OpenOptions& options) {
  const auto anchors = anchor_file(options);
  if (!anchors) return Memory::None;
  const auto last = anchors->recall();
  return last && *last ? Memory::Kept : Memory::Empty;
}

store::Finding generation_finding(const std::string& generation, Memory memory) {
  using Level = store::Finding::Level;
  if (memory == Memory::None) {
    return {Level::Warn, "generation",
            cat(generation, "; nothing here remembers it: pin it with ?generation=", generation)};
  }
  if (memory == Memory::Empty) {
    return {Level::Ok, "generation",
            cat(generation,
                ", not remembered on this machine yet: the first grant through it is; a client can "
                "pin it with ?generation=",
                generation)};
  }
  return {Level::Ok, "generation",
          cat(generation,
              ", remembered on this machine; a client elsewhere can pin it with ?generation=",
              generation)};
}

Status examine_store(const OpenOptions& options, const Environment& environment, const Clock& clock,
                     Random& random, const std::function<void(const store::Finding&)>& tell) {
  if (is_server(options.url)) {
    return examine_through_server(options, clock, random, [&](const client::ToldFinding& told) {
      // A word that this version does not know is not taken for a good one.
      const store::Finding::Level level = told.level == "ok"     ? store::Finding::Level::Ok
                                          : told.level == "warn" ? store::Finding::Level::Warn
                                                                 : store::Finding::Level::Fail;
      tell({level, told.check, told.text});
    });
  }
  // Before anything is written. What cannot be opened is told by the examination.
  if (auto store = open_store(options, clock)) {
    if (auto known = check_known(**store, options); !known) {
      tell({store::Finding::Level::Fail, "generation",
            cat(known.error().message, ". Nothing else was tried")});
      return {};
    }
  }
  OnlyOpening only(options, clock);
  const bool alone = one_process(options);
  const probe::Practice practice{
      .open = [&] { return alone ? only.open() : open_known_store(options, clock); },
      .contest =
          [&](const probe::Contest& contest) {
            return alone ? only.contest(contest)
                         : contest_of_processes(options, environment, contest);
          },
      .wait = [](int fd, MonoTime until) { return bool{os::wait_readable({fd}, until).front()}; },
      .pause = [](Nanos length) { os::pause_for(length); },
      .clock = clock,
      .random = random,
      .tell = tell,
      .contenders = alone ? "threads" : "processes"};
  if (auto done = probe::examine(practice); !done) return done;
  tell_generation(options, clock, random, tell);
  return {};
}

Result<std::string> contend_here(const OpenOptions& options, const std::string& contest,
                                 const Clock& clock) {
  const auto words = split(contest, ' ');
  const auto contenders = words.size() == 3 ? parse_digits(words[1]) : std::nullopt;
  const auto increments = words.size() == 3 ? parse_digits(words[2]) : std::nullopt;
  if (!contenders || !increments || *contenders > 1000 || *increments > 100'000) {
    return invalid(cat(kContendVariable, " is for doctor's own processes"));
  }
  auto store = open_known_store(options, clock);
  if (!store) return store.error();
  auto tally = probe::contend(**store,
                              {.key = std::string(words[0]),
                               .contenders = static_cast<int>(*contenders),
                               .increments = static_cast<int>(*increments)},
                              [](Nanos length) { os::pause_for(length); });
  if (!tally) return tally.error();
  return cat(tally->acknowledged, " ", tally->unknown);
}

}  // namespace stint::app
