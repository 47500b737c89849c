// The clients of tests/fault/history_client.h on a machine of their own (tests/machines).
//
//   machines_player play URL FOLDER PROCESS THREADS RESOURCES TTL_MS
//   machines_player check HISTORY TTL_MS STEP_MS    STEP_MS below zero: timers fire as late as they
//   like
//
// A line of the history is printed and then confirmed by "ok" on the input: the one file that all
// machines share is elsewhere, and an operation begins only when its first line stands there. So
// the order of its lines is that of real time, whatever any machine's clock says. "stop" ends it.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "app/opened.h"
#include "base/mutex.h"
#include "base/text.h"
#include "os/clock.h"
#include "tests/fault/history_client.h"

namespace stint::test {
namespace {

int number(const char* text) { return std::atoi(text); }

// Thread safety: safe from any thread; one line at a time is on its way.
class Line {
 public:
  void send(const std::string& line) {
    const MutexLock lock(mutex_);
    const std::string whole = "history " + line;
    std::size_t from = 0;
    while (from < whole.size()) {
      const ssize_t wrote = ::write(STDOUT_FILENO, whole.data() + from, whole.size() - from);
      if (wrote <= 0) std::_Exit(1);
      from += static_cast<std::size_t>(wrote);
    }
    char confirmed = 0;
    if (::read(confirmations_[0], &confirmed, 1) != 1) std::_Exit(1);
  }
  // On a thread of its own, until the input ends.
  void listen(Board& board) {
    for (std::string line; std::getline(std::cin, line);) {
      if (line == "stop") board.stop = true;
      if (line == "ok" && ::write(confirmations_[1], "x", 1) != 1) std::_Exit(1);
    }
    std::_Exit(1);  // Nobody records any more.
  }
  bool open() { return ::pipe(confirmations_) == 0; }

 private:
  Mutex mutex_;
  int confirmations_[2] = {-1, -1};  // constant after open()
};

int play(char** words) {
  const auto url = app::parse_store_url(words[0]);
  if (!url) return std::fprintf(stderr, "%s\n", url.error().message.c_str()), 2;
  const TrafficPlan plan{.processes = 1,
                         .threads = number(words[3]),
                         .resources = number(words[4]),
                         .ttl = Millis(number(words[5]))};
  const os::SystemClock clock;
  const OpenStore open = [&](int) {
    return app::open_store({.url = *url, .state_directory = "", .may_create = true}, clock);
  };
  static Line line;
  static Board board;
  if (!line.open()) return 1;
  std::thread([] { line.listen(board); }).detach();
  const std::string who = cat(words[2], '-', ::getpid());
  probe::History history(who, [](const std::string& text) { line.send(text); });
  const int code = run_clients({.process = number(words[2]),
                                .plan = plan,
                                .open = open,
                                .folder = words[1],
                                .board = board,
                                .history = &history});
  std::printf("grants %d settled %d step %lld\n", board.grants.load(), board.settled.load(),
              static_cast<long long>(board.step_ms.load()));
  std::fflush(stdout);
  std::_Exit(code);  // The thread that listens has no other end.
}

int check(char** words) {
  const auto history = load_history(words[0]);
  if (!history) return std::fprintf(stderr, "%s\n", history.error().message.c_str()), 2;
  const Millis step(number(words[2]));
  CheckOptions options;
  options.fires_late_by = step < Millis(0) ? std::nullopt : std::optional<Nanos>(step);
  Verdict verdict;
  verdict.report = check_history(*history, options);
  verdict.complaints = unexplained_tokens(*history, Millis(number(words[1])));
  verdict.unreachable =
      static_cast<std::size_t>(std::ranges::count_if(*history, [](const auto& event) {
        return event.phase == Phase::Info && event.cause == word(Code::Unavailable);
      }));
  verdict.grants = static_cast<int>(std::ranges::count_if(*history, [](const auto& event) {
    return event.phase == Phase::Ok && event.verb == verbs::kAcquire;
  }));
  verdict.faults = static_cast<int>(std::ranges::count_if(
      *history, [](const auto& event) { return event.verb == verbs::kCrash; }));
  std::printf("%s\n", verdict.line().c_str());
  if (!verdict.clean()) std::printf("%s\n", verdict.text().c_str());
  return verdict.clean() ? 0 : 1;
}

}  // namespace
}  // namespace stint::test

int main(int argc, char** argv) {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "play" && argc == 8) return stint::test::play(argv + 2);
  if (verb == "check" && argc == 5) return stint::test::check(argv + 2);
  std::fprintf(stderr, "machines_player play|check ...\n");
  return 2;
}
