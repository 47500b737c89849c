#include "tests/fault/server_history.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "base/check.h"
#include "base/text.h"
#include "os/pause.h"
#include "tests/fault/history_client.h"

namespace stint::test {
namespace {

constexpr Millis kOpening(60'000);
constexpr Millis kEnding(60'000);

Board* shared_board() {
  void* memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED, "no shared memory");
  return new (memory) Board();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::string_view rest = text;
  for (auto end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
    out.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace

Traffic::Traffic(const TrafficPlan& plan, OpenStore open)
    : plan_(plan), open_(std::move(open)), board_(shared_board()) {}

Traffic::~Traffic() {
  for (const pid_t pid : processes_) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  ::munmap(board_, sizeof(Board));
}

Status Traffic::begin() {
  for (int i = 0; i < plan_.processes; ++i) {
    const pid_t child = ::fork();
    CHECK(child >= 0, "fork failed");
    if (child == 0) {
      ::_exit(run_clients({.process = i,
                           .plan = plan_,
                           .open = open_,
                           .folder = folder_.path(),
                           .board = *board_}));
    }
    processes_.push_back(child);
  }
  if (!wait_until([&] { return board_->open == plan_.processes; }, kOpening)) {
    return unavailable(
        cat("not all clients could open the store: ", read_text(folder_.file(kComplaints))));
  }
  if (!goes_on()) return unavailable("the clients are granted nothing");
  return {};
}

bool Traffic::goes_on(int more, Millis deadline) const {
  const int before = board_->grants;
  return wait_until([&] { return board_->grants >= before + more; }, deadline);
}

void Traffic::crash() {
  fault();
  write_crash(cat("crash/", faults_));
}

void Traffic::crashed() { write_crash(cat("crashed/", faults_)); }

void Traffic::write_crash(const std::string& op) {
  History history(folder_.file(kHistory));
  HistoryEvent event;
  event.op = op;
  event.phase = Phase::Ok;
  event.verb = verbs::kCrash;
  history.write(event);
}

Status Traffic::await_end() {
  const MonoTime deadline = now() + kEnding;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    ::kill(processes_[i], SIGCONT);
    int status = 0;
    while (::waitpid(processes_[i], &status, WNOHANG) == 0) {
      if (now() > deadline) return unavailable("the clients do not end");
      os::pause_for(Millis(5));
    }
    processes_[i] = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      return unavailable(cat("a client process ended with status ", status));
    }
  }
  return {};
}

CheckOptions Traffic::options() const {
  const Millis step(board_->step_ms.load());
  CheckOptions out;
  out.fires_late_by = step < Millis(0) ? std::nullopt : std::optional<Nanos>(step);
  return out;
}

Verdict Traffic::stop() {
  board_->stop = true;
  const Status ended = await_end();
  std::erase(processes_, 0);
  Verdict out;
  out.complaints = lines_of(read_text(folder_.file(kComplaints)));
  if (!ended) out.complaints.push_back(ended.error().message);
  const auto history = load_history(folder_.file(kHistory));
  CHECK(history.has_value(), "the history cannot be read");
  out.report = check_history(*history, options());
  for (std::string& why : unexplained_tokens(*history, plan_.ttl)) {
    out.complaints.push_back(std::move(why));
  }
  out.unreachable = static_cast<std::size_t>(std::ranges::count_if(*history, [](const auto& event) {
    return event.phase == Phase::Info && event.cause == word(Code::Unavailable);
  }));
  out.grants = board_->grants;
  out.settled = board_->settled;
  out.faults = faults_;
  return out;
}

std::string Verdict::line() const {
  return cat(report.operations, " operations, ", grants, " grants, ", report.unknown - unreachable,
             " unknown outcomes (", settled, " acquires settled), ", unreachable,
             " times unreachable, ", faults, " faults, ",
             report.violations.size() + complaints.size(), " violations");
}

std::string Verdict::text() const {
  std::string out = report.text();
  for (const std::string& complaint : complaints) out += complaint + '\n';
  return out;
}

// ---- Tokens that nobody knows

namespace {

struct Count {
  std::map<Token, bool> known;
  std::uint64_t highest = 0;
  std::uint64_t may_hide = 0;  // tokens that operations may have taken without saying so
};

bool may_take_token(const HistoryEvent& event) {
  return event.verb == verbs::kAcquire || event.verb == verbs::kTransfer ||
         event.verb == verbs::kRevoke;
}

}  // namespace

std::vector<std::string> unexplained_tokens(const std::vector<HistoryEvent>& history, Millis ttl) {
  // The service repeats what is unknown; if its first try was carried out and ran out meanwhile, it
  // is granted anew and one token stays unseen. That takes longer than a ttl.
  constexpr std::uint64_t kRepeats = 2;
  std::map<std::string, HistoryEvent> open;
  std::map<std::string, Count> counts;
  for (const HistoryEvent& event : history) {
    if (!may_take_token(event)) continue;
    if (event.phase == Phase::Invoke) {
      open[event.op] = event;
      continue;
    }
    Count& count = counts[event.resource];
    const auto begun = open.find(event.op);
    const bool slow = begun == open.end() || !event.local || !begun->second.local ||
                      *event.local - *begun->second.local >= ttl;
    if (begun != open.end()) open.erase(begun);
    if (event.phase == Phase::Ok) {
      count.known[event.token] = true;
      count.highest = std::max(count.highest, event.token.number());
    }
    if (event.phase == Phase::Info && event.cause != word(Code::Unavailable)) ++count.may_hide;
    if (slow) count.may_hide += kRepeats;
  }
  for (const auto& [op, event] : open) ++counts[event.resource].may_hide;
  std::vector<std::string> out;
  for (const auto& [resource, count] : counts) {
    const std::uint64_t hidden = count.highest - count.known.size();
    if (hidden <= count.may_hide) continue;
    out.push_back(cat("of ", resource, ' ', hidden, " tokens were told to nobody, and only ",
                      count.may_hide, " operations may have taken one"));
  }
  return out;
}

}  // namespace stint::test
