// stint doctor: whether a store can carry leases, and an operator's word on a restored one.
#include "app/doctor.h"

#include <array>
#include <functional>

#include "api/json.h"
#include "app/here.h"
#include "app/opened.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/session.h"
#include "os/host.h"

namespace stint::cli {
namespace {

using store::Finding;

Result<app::OpenOptions> store_options(Session& session) {
  auto settings = session.settings();
  if (!settings) return settings.error();
  return app::OpenOptions{.url = (*settings)->store_url,
                          .state_directory = (*settings)->state_directory,
                          .may_create = true,
                          .key = (*settings)->key};
}

int accept(Session& session) {
  const auto why = session.words().value("--why");
  if (!why || why->empty())
    return session.fail(invalid("--why TEXT is missing: the reason is kept on record"));
  Token past;
  if (const auto text = session.words().value("--past")) {
    auto token = Token::parse(*text);
    if (!token) return session.fail(invalid(cat("--past: ", token.error().message)));
    past = *token;
    // Tokens end at 2^53: what is left must last.
    if (past.number() > Token::kMax / 2) {
      return session.fail(invalid(cat("--past is at most ", Token::kMax / 2,
                                      ": beyond it few tokens are left to be given")));
    }
  }
  auto options = store_options(session);
  if (!options) return session.fail(options.error());
  auto accepted =
      app::accept_restored(*options, session.clock(), session.random(),
                           {*why, session.words().value("--by").value_or(os::user_name()), past});
  if (!accepted) return session.fail(accepted.error());
  session.did(cat("accepted as generation ", accepted->generation.hex()));
  if (session.json()) {
    session.print(api::to_json(std::vector<api::JsonField>{
        {"generation", accepted->generation.hex()},
        {"floor", static_cast<std::int64_t>(accepted->floor.number())}}));
  } else {
    session.say(cat("accepted as generation ", accepted->generation.hex(),
                    "; every new token is above ", accepted->floor.number()));
  }
  return kDone;
}

int contend(Session& session, const std::string& contest) {
  auto options = store_options(session);
  if (!options) return session.fail(options.error());
  auto tally = app::contend_here(*options, contest, session.clock());
  if (!tally) return session.fail(tally.error());
  session.print(*tally);
  return kDone;
}

// Tells findings line by line, or gathers them for --json.
class Telling {
 public:
  explicit Telling(Session& session) : session_(session) {}

  void operator()(const Finding& finding) {
    safe_ = safe_ && finding.level != Finding::Level::Fail;
    const std::string level(probe::word(finding.level));
    if (session_.json()) {
      rows_.push_back({{"check", finding.check}, {"level", level}, {"text", finding.text}});
      return;
    }
    const std::string shown = finding.level == Finding::Level::Ok ? level : session_.strong(level);
    session_.print(
        cat(shown, std::string(5 - level.size(), ' '), finding.check,
            std::string(std::max<std::size_t>(12, finding.check.size()) - finding.check.size() + 1,
                        ' '),
            printable(finding.text)));
    std::fflush(stdout);
  }
  bool safe() const { return safe_; }
  void end() {
    if (session_.json()) session_.print(api::to_json(rows_));
  }

 private:
  Session& session_;
  std::vector<std::vector<api::JsonField>> rows_;
  bool safe_ = true;
};

int examine(Session& session) {
  auto options = store_options(session);
  if (!options) return session.fail(options.error());
  Telling telling(session);
  session.say(cat("examining ", options->url.printable, "; this takes a few seconds"));
  const auto done = app::examine_store(*options, session.environment(), session.clock(),
                                       session.random(), std::ref(telling));
  if (!done) return session.fail(done.error());
  telling.end();
  if (telling.safe()) session.say("this store can carry leases");
  if (!telling.safe()) {
    session.warn("this store is NOT safe for leases: see the lines that say fail");
  }
  return telling.safe() ? kDone : kFailed;
}

int examine_sandbox(Session& session) {
  auto settings = session.settings();
  if (!settings) return session.fail(settings.error());
  Telling telling(session);
  app::examine_here((*settings)->state_directory, std::ref(telling));
  telling.end();
  return telling.safe() ? kDone : kFailed;
}

int doctor_command(Session& session) {
  if (const auto contest = session.environment().get(app::kContendVariable)) {
    return contend(session, *contest);
  }
  if (session.words().has("--accept-restored")) return accept(session);
  for (const char* option : {"--why", "--by", "--past"}) {
    if (session.words().has(option)) {
      return session.fail(invalid(cat(option, " goes with --accept-restored")));
    }
  }
  return session.words().has("--here") ? examine_sandbox(session) : examine(session);
}

constexpr std::array<Option, 5> kDoctorOptions = {{
    {"--here", "", "no store: what this sandbox offers to runs and to stores on files"},
    {"--accept-restored", "", "an operator's word: use this restored or copied store"},
    {"--why", "TEXT", "the reason, for the record"},
    {"--by", "WHO", "who says so (default: the user's name)"},
    {"--past", "N", "raise the floor at least to this token"},
}};
constexpr std::array<std::string_view, 4> kDoctorExamples = {
    "stint doctor", "stint doctor --here",
    "stint doctor --store postgres://agents@db.example/stint",
    "stint doctor --accept-restored --why 'restored the backup of Monday'"};

}  // namespace

const Command kDoctor = {
    .name = "doctor",
    .operands = "[--here | --accept-restored --why TEXT]",
    .summary = "try whether a store can carry leases; accept a restored one",
    .details =
        "Tries the store with records of its own, which it removes again: whether a commit is "
        "whole, atomic under eight processes at once and seen by everybody, whether the clock is "
        "even and timers fire neither early nor late, how fast waiters wake and commits are. Each "
        "line says ok, warn or fail; the exit code is 0 only if no line says fail. Behind a "
        "server's "
        "address the server does it, with threads (needs 'admin', or 'operate' without a "
        "prefix).\n\n"
        "--here looks at no store, but at the sandbox: whether /proc, a cgroup, pidfds and a "
        "subreaper are to be had (what a run ends its tree with), which clock it has, and whether "
        "locks hold on the file systems of the state directory and of this folder. warn: something "
        "weaker is used instead. fail: a run cannot see its tree.\n\n"
        "A store that went back in time is refused wherever anybody remembers it. When a person "
        "has looked at it and wants it used, --accept-restored gives it a new generation that "
        "descends from the old one, and raises the floor above every token that can have been "
        "issued before.",
    .examples = kDoctorExamples,
    .options = kDoctorOptions,
    .least_operands = 0,
    .most_operands = 0,
    .runs_command = false,
    .run = doctor_command,
};

}  // namespace stint::cli
