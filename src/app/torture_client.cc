// One client process of `stint torture`: guarded files as its targets.
#include "app/torture.h"
#include "base/text.h"
#include "guard/file_guard.h"
#include "os/directory.h"
#include "os/files.h"
#include "os/pause.h"
#include "os/worker.h"
#include "probe/torture.h"

namespace stint::app {
namespace {

constexpr std::size_t kMostTargetFileBytes = 16U << 20U;
constexpr int kMostOpenings = 20;
constexpr Millis kOpenAgain{50};

class GuardedFiles final : public probe::Targets {
 public:
  GuardedFiles(std::string folder, Opened& opened) : folder_(std::move(folder)), opened_(opened) {}

  probe::TargetAnswer seal(const std::string& target, const api::Grip& grip) override {
    return told(guard::seal_file(path(target),
                                 {.pass = pass(grip), .by_order = false, .adopt = std::nullopt},
                                 &opened_.fences()));
  }
  probe::TargetAnswer write(const std::string& target, const std::string& body,
                            const api::Grip& grip) override {
    return told(
        guard::write_file({.path = path(target), .body = body}, pass(grip), &opened_.fences()));
  }
  Result<std::string> read(const std::string& target) override {
    if (!os::exists(path(target))) return std::string();
    return os::read_file(path(target), kMostTargetFileBytes);
  }

 private:
  std::string path(const std::string& target) const { return cat(folder_, "/", target); }
  guard::Pass pass(const api::Grip& grip) {
    return {.resource = grip.resource,
            .token = grip.token,
            .generation = opened_.leases().generation(),
            .claim = grip.claim,
            .owner = *grip.owner};
  }
  // Whatever is not a refusal may have been done: only the guard's own word says that it was not.
  template <class Answer>
  static probe::TargetAnswer told(const Result<Answer>& answer) {
    if (!answer) return {probe::Phase::Info, answer.error().message};
    const auto* refused = std::get_if<guard::Refused>(&*answer);
    if (refused == nullptr) return {probe::Phase::Ok, {}};
    return {probe::Phase::Fail, refused->verdict == core::Verdict::Stale ? "stale" : "refused"};
  }

  const std::string folder_;
  Opened& opened_;
};

}  // namespace

Status torture_here(const OpenOptions& options, const std::string& words, const Clock& clock,
                    Random& random) {
  // folder, client, prefix, resources, ttl
  const auto parts = split(words, '\n');
  const auto resources = parts.size() == 5 ? parse_digits(parts[3]) : std::nullopt;
  const auto ttl = parts.size() == 5 ? parse_digits(parts[4]) : std::nullopt;
  if (!resources || !ttl || *resources == 0 || *resources > 1000 || *ttl > 3'600'000) {
    return invalid(cat(kTortureVariable, " is for torture's own processes"));
  }
  const std::string folder(parts[0]);
  const std::string name(parts[1]);
  const probe::TorturePlan plan{.prefix = std::string(parts[2]),
                                .resources = static_cast<int>(*resources),
                                .ttl = Millis(static_cast<std::int64_t>(*ttl))};
  auto file = os::open_to_append(cat(folder, "/history"));
  if (!file) return file.error();
  // The way there is made to fail now and then, also for who is just coming.
  auto opened = Opened::open(options, clock, random);
  for (int tries = 1; !opened && tries < kMostOpenings; ++tries) {
    os::pause_for(kOpenAgain);
    opened = Opened::open(options, clock, random);
  }
  if (!opened) return opened.error();
  bool unwritten = false;
  probe::History history(name, [&](const std::string& line) {
    unwritten = unwritten || os::write_whole(file->get(), line) != 0;
  });
  GuardedFiles targets(folder, **opened);
  const std::string stop_file = cat(folder, "/stop");
  // Nobody reads the other end of it any more: whoever started this is gone.
  const auto orphaned = [&] {
    return bool{os::wait_readable({os::kReadyDescriptor}, clock.mono()).front()};
  };
  probe::torture_client(plan, name,
                        {.leases = (*opened)->leases(),
                         .targets = targets,
                         .history = history,
                         .clock = clock,
                         .random = random,
                         .pause = [](Nanos length) { os::pause_for(length); },
                         .stop = [&] { return unwritten || os::exists(stop_file) || orphaned(); }});
  if (unwritten) return unavailable("the history cannot be written");
  return {};
}

}  // namespace stint::app
