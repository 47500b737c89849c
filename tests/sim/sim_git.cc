#include "tests/sim/sim_git.h"

#include <algorithm>

#include "base/check.h"
#include "base/sha1.h"
#include "base/text.h"
#include "os/clock.h"
#include "tests/sim/sim_os.h"

namespace stint::test {
namespace {

SimGit* present_git = nullptr;
constexpr std::uint64_t kLocalNanos = 500'000;
constexpr std::uint64_t kTravelNanos = 20'000'000;
constexpr std::uint64_t kSlowNanos = 5'000'000'000;
constexpr std::uint64_t kLatestNanos = 60'000'000'000;
constexpr std::uint64_t kLongestLockNanos = 20'000'000'000;

os::ProgramEnd done(std::string out) {
  return {.how = os::End::with_code(0), .out = std::move(out), .talk = {}};
}
os::ProgramEnd failed(int code, std::string talk) {
  return {.how = os::End::with_code(code), .out = {}, .talk = std::move(talk)};
}
os::ProgramEnd not_reached() {
  return failed(128, cat("fatal: unable to access '", SimGit::kUrl, "': Could not resolve host\n"));
}
os::ProgramEnd hung_up() { return failed(128, "fatal: the remote end hung up unexpectedly\n"); }

// What follows the options of git itself.
std::vector<std::string> command_of(const std::vector<std::string>& argv) {
  std::size_t i = 1;
  while (i < argv.size() && argv[i].starts_with("-")) i += argv[i] == "-c" ? 2 : 1;
  return {argv.begin() + static_cast<std::ptrdiff_t>(std::min(i, argv.size())), argv.end()};
}

}  // namespace

SimGit::SimGit(Scheduler& scheduler, SimTally& tally, SimHost& nowhere)
    : scheduler_(scheduler), tally_(tally), nowhere_(nowhere) {
  CHECK(present_git == nullptr, "one git server at a time");
  present_git = this;
}
SimGit::~SimGit() { present_git = nullptr; }
SimGit* SimGit::present() { return present_git; }

bool SimGit::chance(unsigned per_thousand, const char* fault) {
  if (per_thousand == 0 || scheduler_.random().below(1000) >= per_thousand) return false;
  tally_.fault(fault);
  scheduler_.note(cat("git ", fault));
  return true;
}

void SimGit::travel() {
  const std::uint64_t longest = chance(troubles_.slow, "git_slow") ? kSlowNanos : kTravelNanos;
  scheduler_.interleave(Nanos(1 + scheduler_.random().below(longest)));
}

// ---- clones: one for each holder and operator; all of its processes share it

std::string SimGit::clone() const {
  const std::string& name = scheduler_.process()->name;
  return name.substr(0, name.find('/'));
}
std::set<std::string>& SimGit::known() { return clones_[clone()]; }

void SimGit::learn(std::string oid) {
  std::set<std::string>& here = known();
  while (!oid.empty() && here.insert(oid).second) oid = objects_.at(oid).parent;
}

bool SimGit::stands_on(std::string tip, const std::string& oid) const {
  while (!tip.empty() && tip != oid) tip = objects_.at(tip).parent;
  return tip == oid;
}

std::string SimGit::at(const std::string& ref) const {
  const auto found = refs_.find(ref);
  return found == refs_.end() ? std::string() : found->second;
}

std::string SimGit::text_at(const std::string& ref) const {
  const std::string oid = at(ref);
  return oid.empty() ? oid : objects_.at(oid).text;
}

Result<SimGit::Tip> SimGit::fetch(const std::string& branch) {
  travel();
  if (chance(troubles_.lose, "git_unreached")) return unavailable("the git server");
  const std::string oid = at(branch);
  travel();
  if (!scheduler_.alive()) return unavailable("killed");
  if (oid.empty()) return Tip{};
  learn(oid);
  return Tip{oid, objects_.at(oid).text};
}

std::string SimGit::commit(const std::string& parent, const std::string& text) {
  const std::string oid = to_hex(sha1(cat("commit ", parent, "\n", text)));
  objects_[oid] = {text, parent};
  known().insert(oid);
  return oid;
}

// ---- the program

Result<os::ProgramEnd> SimGit::run(const os::ProgramCall& call) {
  const Words words = command_of(call.argv);
  scheduler_.interleave(Nanos(1 + scheduler_.random().below(kLocalNanos)));
  if (!scheduler_.alive()) return Error{Code::UnknownOutcome, "killed"};
  if (words.empty()) return failed(1, "usage: git\n");
  const std::string& verb = words.front();
  if (verb == "version") return done("git version 2.39.5\n");
  if (verb == "remote" && words.back() == "-v") {
    return done(cat("origin\t", kUrl, " (fetch)\norigin\t", kUrl, " (push)\n"));
  }
  if (verb == "remote") return done(cat(kUrl, "\n"));
  if (verb == "rev-parse") return rev_parse(words);
  if (verb == "ls-remote" || verb == "fetch") return ask_server(words);
  if (verb == "cat-file") return look_at(words.back());
  if (verb == "hash-object") return keep(call.input);
  if (verb == "merge-base") {
    const bool stands = stands_on(words.back(), words[words.size() - 2]);
    return failed(stands ? 0 : 1, "");
  }
  if (verb == "push") return push(words, call.limit);
  return failed(1, cat("git: '", verb, "' is not a git command\n"));
}

os::ProgramEnd SimGit::rev_parse(const Words& words) {
  const std::string folder = cat("/clones/", clone(), "/.git");
  if (words[1] == "--git-path") return done(cat(folder, "/", words.back(), "\n"));
  if (!known().contains(words.back())) return failed(128, "fatal: Needed a single revision\n");
  return done(cat(folder, "\n", words.back(), "\n"));
}

os::ProgramEnd SimGit::ask_server(const Words& words) {
  travel();
  if (chance(troubles_.lose, "git_unreached")) return not_reached();
  const std::string oid = at(words.back());
  // ls-remote -- URL REF...: all of them at one moment.
  std::string listed;
  for (std::size_t i = 3; words.front() == "ls-remote" && i < words.size(); ++i) {
    if (const std::string one = at(words[i]); !one.empty())
      listed += cat(one, "\t", words[i], "\n");
  }
  travel();
  if (words.front() == "ls-remote") return done(std::move(listed));
  if (oid.empty()) return failed(128, cat("fatal: couldn't find remote ref ", words.back(), "\n"));
  learn(oid);
  return done("");
}

os::ProgramEnd SimGit::look_at(const std::string& oid) {
  if (!known().contains(oid)) return failed(128, "fatal: Not a valid object name\n");
  return done(objects_.at(oid).text);
}

os::ProgramEnd SimGit::keep(const std::string& text) {
  const std::string oid = to_hex(sha1(cat("blob ", text.size(), std::string_view("\0", 1), text)));
  objects_[oid] = {text, ""};
  known().insert(oid);
  return done(cat(oid, "\n"));
}

// ---- a push

Result<os::ProgramEnd> SimGit::push(const Words& words, Millis limit) {
  const MonoTime until = os::system_clock().mono() + limit;
  travel();
  if (!scheduler_.alive()) return Error{Code::UnknownOutcome, "killed"};
  if (chance(troubles_.lose, "git_unreached")) return not_reached();
  auto sent = std::make_shared<Push>();
  std::string expected;
  for (const std::string& word : words) {
    constexpr std::string_view kLease = "--force-with-lease=";
    if (word.starts_with(kLease)) expected = word.substr(kLease.size());
    const std::size_t colon = word.find(':');
    if (word.starts_with("-") || colon == word.npos) continue;
    const std::string ref = word.substr(colon + 1);
    sent->commands.push_back({ref, at(ref), word.substr(0, colon)});
  }
  sent->atomic = std::ranges::find(words, "--atomic") != words.end();
  sent->forced = std::ranges::find(words, "--force") != words.end();
  sent->reasons = look_before(*sent, expected);
  if (std::ranges::any_of(sent->reasons, [](const auto& why) { return !why.empty(); })) {
    return told(*sent, "[rejected]");
  }
  // What stands there already is not sent.
  std::erase_if(sent->commands, [](const Command& one) { return one.was == one.oid; });
  scheduler_.start_once(
      nowhere_, "git server", [this, sent] { receive(sent); }, [] {});
  const bool loses = lost_answers_ > 0;
  if (loses) --lost_answers_;
  const bool lost = loses || chance(troubles_.lose, "git_answer_lost");
  while (scheduler_.alive() && !sent->over && os::system_clock().mono() < until) {
    SimOs::present().wait({sent->news.fd()}, until);
  }
  if (!scheduler_.alive() || !sent->over) return Error{Code::UnknownOutcome, "killed"};
  if (lost || !sent->answered) return hung_up();
  return told(*sent, "[remote rejected]");
}

// Our own git: the fence against what is expected, branches against what stands there.
std::vector<std::string> SimGit::look_before(const Push& push, const std::string& expected) const {
  std::vector<std::string> out;
  bool wrong = false;
  for (const Command& one : push.commands) {
    const bool fence = expected.starts_with(cat(one.ref, ":"));
    std::string why;
    if (push.forced || one.was == one.oid) {
      // Not compared.
    } else if (fence) {
      if (compares_ && one.was != expected.substr(one.ref.size() + 1)) why = "stale info";
    } else if (!one.was.empty() && !stands_on(one.oid, one.was)) {
      why = "fetch first";
    }
    wrong = wrong || !why.empty();
    out.push_back(std::move(why));
  }
  for (std::string& why : out) {
    if (wrong && why.empty()) why = "atomic push failed";
  }
  return out;
}

os::ProgramEnd SimGit::told(const Push& push, std::string_view by) const {
  os::ProgramEnd out = done(cat("To ", kUrl, "\n"));
  for (std::size_t i = 0; i < push.commands.size(); ++i) {
    const Command& one = push.commands[i];
    const std::string& why = push.reasons[i];
    out.out += cat(why.empty() ? " " : "!", "\t", one.oid, ":", one.ref, "\t",
                   why.empty() ? std::string("ok") : cat(by, " (", why, ")"), "\n");
    if (!why.empty()) out.how = os::End::with_code(1);
  }
  out.out += "Done\n";
  if (!out.how.good()) out.talk = cat("error: failed to push some refs to '", kUrl, "'\n");
  return out;
}

// At the server. Whoever sent it may be dead by now.
void SimGit::receive(const std::shared_ptr<Push>& push) {
  travel();
  const bool never = chance(troubles_.lose, "git_push_lost");
  const bool late = !never && chance(troubles_.late, "git_push_late");
  if (late) {
    push->over = true;
    push->news.signal();
    scheduler_.interleave(Nanos(1 + scheduler_.random().below(kLatestNanos)));
  }
  const bool whole = !never && scheduler_.alive() && transact(*push);
  push->answered = whole && !push->over;
  push->over = true;
  push->news.signal();
}

bool SimGit::transact(Push& push) {
  const std::size_t count = push.commands.size();
  const bool locked = scheduler_.now() < locked_until_ || chance(troubles_.locked, "git_locked");
  if (locked) {
    push.reasons.assign(count, "failed to update ref");
    return true;
  }
  if (chance(troubles_.refused, "git_refused")) {
    push.reasons.assign(count, "pre-receive hook declined");
    return true;
  }
  // Each ref for itself where the push is not atomic.
  std::vector<Command> order;
  std::ranges::copy_if(push.commands, std::back_inserter(order),
                       [&](const Command& one) { return !compares_ || at(one.ref) == one.was; });
  const bool all = order.size() == count;
  if (!all && push.atomic) {
    push.reasons.assign(count, "incorrect old value provided");
    return true;
  }
  // In the order of names; what is new comes last.
  std::ranges::sort(order, [](const Command& a, const Command& b) {
    return a.was.empty() != b.was.empty() ? b.was.empty() : a.ref < b.ref;
  });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool betrayed = i > 0 && betrayed_.has_value();
    if (betrayed) lost_answers_ = *std::exchange(betrayed_, std::nullopt);
    if (i > 0 && (betrayed || chance(troubles_.cut, "git_cut"))) {
      if (!betrayed)
        locked_until_ = scheduler_.now() + Nanos(1 + scheduler_.random().below(kLongestLockNanos));
      return false;
    }
    move(order[i]);
  }
  push.reasons.assign(count, all ? "" : "failed to update ref");
  return true;
}

void SimGit::move(const Command& command) {
  refs_[command.ref] = command.oid;
  if (look_) look_(command.ref, objects_.at(command.oid).text);
}

}  // namespace stint::test

// ---- instead of os/program.cc

namespace stint::os {

Result<ProgramEnd> run_program(const ProgramCall& call) {
  test::SimGit* git = test::SimGit::present();
  if (git == nullptr || call.argv.front() != "git") {
    return Error{Code::Failed, "there are no programs in the simulation"};
  }
  return git->run(call);
}

std::string own_program() { return "/usr/bin/stint"; }

}  // namespace stint::os
