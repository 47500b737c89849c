// One process of the queue's play (play_test.cc): eight workers that do what workers do, and what
// they should not: come back too late, give up, say nothing.
//
//   queue_player put URL N            puts N items
//   queue_player work URL JOURNAL SEED WORKERS    until JOURNAL.stop is there
//   queue_player left URL             how many are waiting or claimed
//   queue_player dump URL             every item: id state epoch parent follow-ups why
//   queue_player stale URL            the ledger's lines of refused verbs: id epoch count
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "app/opened.h"
#include "base/mutex.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/files.h"
#include "os/pause.h"
#include "os/random.h"

namespace stint {
namespace {

constexpr Millis kTtl{1000};
const core::QueueName kQueue = core::QueueName::parse("play").value();

// So many follow-ups has an item, whoever completes it.
std::size_t follow_ups(const std::string& payload) {
  return payload == "two" ? 2 : payload == "one" ? 1 : 0;
}

api::PutRequest item(int i) {
  const std::string payload = i % 4 == 0 ? "two" : i % 4 == 1 ? "one" : "none";
  core::ItemLimits limits;
  limits.claim_ttl = kTtl;
  limits.max_attempts = 20;
  limits.backoff = Millis(10);
  limits.requeue = i % 3 == 0 ? core::Requeue::IfNoProgress : core::Requeue::Always;
  return {.queue = kQueue,
          .payload = payload,
          .priority = i % 2,
          .delay = {},
          .unique = {},
          .labels = {cat(follow_ups(payload))},
          .by = "play",
          .limits = limits,
          .create = true};
}

class Journal {
 public:
  explicit Journal(const std::string& path)
      : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
  // One write: whole, also when the process is killed right after it.
  void note(const std::string& line) const {
    const std::string whole = line + "\n";
    if (::write(fd_, whole.data(), whole.size()) < 0) std::abort();
  }

 private:
  int fd_;
};

class Player {
 public:
  Player(api::Queue& queue, app::Opened& opened, Mutex& telling, const Journal& journal,
         std::uint64_t seed, int number)
      : queue_(queue),
        opened_(opened),
        telling_(telling),
        journal_(journal),
        random_(seed * 100 + static_cast<std::uint64_t>(number)),
        owner_(Owner::parse(cat("worker-", number)).value()) {}

  void run(const std::string& stop) {
    while (!os::exists(stop)) {
      auto claimed = queue_.claim(
          {.queue = kQueue, .owner = owner_, .claim = Claim::make(chance_), .ttl = kTtl});
      if (!claimed || std::holds_alternative<api::EmptyQueue>(*claimed)) {
        os::pause_for(Millis(20));
        continue;
      }
      play(std::get<api::ClaimedItem>(*claimed));
    }
  }

 private:
  void play(const api::ClaimedItem& claimed) {
    const api::ItemRef ref{claimed.item.id, claimed.item.item.epoch};
    const std::uint64_t dice = random_.below(100);
    if (dice < 3) return;  // says nothing: its claim runs out, not started
    const auto started = queue_.start(ref, dice % 2 == 0);
    if (!good(started)) return tell("start", ref, started);
    if (dice < 6) return;  // started, and gone
    if (dice < 12) tell("checkpoint", ref, queue_.checkpoint(ref, cat("at ", dice), "data"));
    if (dice < 15) return tell("fail", ref, queue_.fail(ref, "dice", {}));
    if (dice < 18) return tell("release", ref, queue_.release(ref));
    if (dice < 24) tell("renew", ref, queue_.renew(ref, kTtl));
    if (dice >= 94) os::pause_for(kTtl + Millis(400));  // too late, or nearly
    api::Completion end{.ref = ref, .result = cat("by ", owner_.text()), .then = {}};
    for (std::size_t i = 0; i < follow_ups(claimed.item.payload.value_or("")); ++i) {
      end.then.push_back({kQueue, "none"});
    }
    tell("done", ref, queue_.complete(end));
  }

  static bool good(const Result<api::ItemAnswer>& answer) {
    return answer && std::holds_alternative<api::ItemDone>(*answer);
  }
  void tell(const std::string& what, const api::ItemRef& ref,
            const Result<api::ItemAnswer>& answer) const {
    const std::string name = cat(ref.id.text(), " ", ref.epoch.number());
    if (good(answer)) return journal_.note(cat(what, " ", name));
    if (answer) {
      const auto cause = std::get<api::ItemLost>(*answer).cause;
      // In the ledger first: a process that is killed here has told nothing that is not there. One
      // at a time, since a flush writes what others have counted, too.
      const MutexLock lock(telling_);
      opened_.flush();
      return journal_.note(cat("stale ", name, " ", what, " ", core::word(cause)));
    }
    journal_.note(cat("fault ", name, " ", what, " ", word(answer.error().code)));
  }

  api::Queue& queue_;
  app::Opened& opened_;
  Mutex& telling_;
  const Journal& journal_;
  SeededRandom random_;
  os::SystemRandom chance_;
  const Owner owner_;
};

int work(api::Queue& queue, app::Opened& opened, const std::vector<std::string>& words) {
  const Journal journal(words[3]);
  const auto seed = parse_digits(words[4]).value_or(1);
  const auto workers = static_cast<int>(parse_digits(words[5]).value_or(8));
  Mutex telling;
  std::vector<std::thread> threads;
  for (int i = 0; i < workers; ++i) {
    threads.emplace_back(
        [&, i] { Player(queue, opened, telling, journal, seed, i).run(words[3] + ".stop"); });
  }
  for (std::thread& thread : threads) thread.join();
  opened.flush();
  return 0;
}

int dump(api::Queue& queue) {
  auto items = queue.list({.queue = kQueue, .state = std::nullopt, .limit = 1'000'000});
  if (!items) return 1;
  for (const api::QueueItem& one : *items) {
    std::printf("%s %s %llu %s %s %s\n", one.id.text().c_str(),
                std::string(core::word(one.item.state)).c_str(),
                static_cast<unsigned long long>(one.item.epoch.number()),
                one.parent.empty() ? "-" : one.parent.c_str(),
                one.labels.empty() ? "0" : one.labels.front().c_str(),
                one.item.why.empty() ? "-" : one.item.why.c_str());
  }
  return 0;
}

int stale(api::Events& events) {
  constexpr std::size_t kKept = 100'000;  // by default
  auto found = events.list({.after = {}, .prefix = "play-", .limit = kKept});
  if (!found) return 1;
  if (found->size() == kKept) return 3;  // the oldest may be gone
  for (const api::Event& event : *found) {
    if (event.kind != "item_refused_stale") continue;
    std::int64_t count = 1;
    for (const auto& [name, value] : event.details) {
      if (name == "count") count = std::get<std::int64_t>(value);
    }
    std::printf("%s %llu %lld\n", event.resource.c_str(),
                static_cast<unsigned long long>(event.token), static_cast<long long>(count));
  }
  return 0;
}

int main_of(const std::vector<std::string>& words) {
  auto url = app::parse_store_url(words[2]);
  if (!url) return 2;
  os::SystemClock clock;
  os::SystemRandom random;
  auto opened =
      app::Opened::open({.url = *url, .state_directory = "", .may_create = true}, clock, random);
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    return 1;
  }
  auto made = (*opened)->queue();
  if (!made) return 1;
  api::Queue& queue = **made;
  if (words[1] == "put") {
    const auto count = static_cast<int>(parse_digits(words[3]).value_or(0));
    for (int i = 0; i < count; ++i) {
      if (!queue.put(item(i))) return 1;
    }
    return 0;
  }
  if (words[1] == "left") {
    auto counts = queue.count(kQueue);
    if (!counts) return 1;
    std::printf("%zu\n", counts->waiting + counts->claimed);
    return 0;
  }
  if (words[1] == "stale") return stale((*opened)->events());
  return words[1] == "dump" ? dump(queue) : work(queue, **opened, words);
}

}  // namespace
}  // namespace stint

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() < 3) return 2;
  return stint::main_of(words);
}
