// stint run
#include "holder/run.h"

#include <array>

#include "app/environment.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/run_work.h"
#include "cli/session.h"
#include "core/holder_policy.h"

namespace stint::cli {
namespace {

constexpr std::size_t kMostResources = 16;

constexpr std::array<Option, 17> kRunOptions = {{
    {"--ttl", "D", "how long a grant or renewal lasts (default 90s); renewed every third of it"},
    {"--on-held", "WHAT", "when another holds it: skip (default), wait[=30s], retry[=5s], fail"},
    {"--or", "OTHER", "if held, take this one instead; the first free one wins", true},
    {"--held-exit", "N", "exit code when waved off (default 0)"},
    {"--grace", "D", "between SIGTERM and SIGKILL (default: the smaller of 10s and ttl/6)"},
    {"--restart", "", "when the lease is lost: acquire it anew and start the command again"},
    {"--progress-timeout", "D", "end a run that shows no progress for this long"},
    {"--progress-on", "WHAT", "what counts as progress besides 'stint progress': output"},
    {"--on-lost", "CMD",
     "run this shell command when the lease was lost (STINT_LOST_CAUSE says why)"},
    {"--max-hold", "D", "the longest that this grant may be renewed to"},
    {"--at-least", "D", "nobody acquires it before this long after the start"},
    {"--cooldown", "D", "nobody acquires it before this long after an unclean end"},
    {"--note", "TEXT", "what others are told that you are doing (default: the command's name)"},
    kSealOption,
    kNoSealOption,
    {"--no-store-env", "", "do not tell the command where the store is"},
    {"--unsafe-tree", "", "run it also where what it starts cannot be ended for certain"},
}};

constexpr std::array<std::string_view, 5> kRunExamples = {
    "stint run blog-repo -- ./publish.sh",
    "stint run site/a/publish --on-held wait=10m -- make publish",
    "stint run gpu-0 --or gpu-1 --or gpu-2 -- ./train",
    "stint run a b --ttl 5m --progress-timeout 20m -- ./agent",
    "stint run nightly --held-exit 75 -- ./backup   # let the caller see a skip",
};

Result<holder::HeldPolicy> held_policy(const std::optional<std::string>& text) {
  if (!text) return holder::HeldPolicy{};
  auto policy = holder::parse_held_policy(*text);
  if (!policy) return invalid(cat("--on-held: ", policy.error().message));
  return policy;
}

Result<int> held_exit(const Words& words) {
  const auto text = words.value("--held-exit");
  if (!text) return kDone;
  const auto number = parse_digits(*text);
  if (!number || *number > 255) return invalid("--held-exit is a number from 0 to 255");
  return static_cast<int>(*number);
}

Status parse_names(const Words& words, holder::RunRequest& request) {
  for (const std::string& text : words.operands()) {
    auto name = ResourceName::parse(text);
    if (!name) return name.error();
    for (const ResourceName& before : request.resources) {
      if (before == *name) return invalid(cat(quoted(text), " is named twice"));
    }
    request.resources.push_back(*name);
  }
  for (const std::string& text : words.values("--or")) {
    auto name = ResourceName::parse(text);
    if (!name) return name.error();
    request.others.push_back(*name);
  }
  if (request.resources.size() + request.others.size() > kMostResources) {
    return invalid(cat("at most ", kMostResources, " resources in one run"));
  }
  return {};
}

Status parse_times(Session& session, holder::RunRequest& request) {
  auto settings = session.settings();
  if (!settings) return settings.error();
  auto ttl = parse_duration((*settings)->ttl.value);
  if (!ttl) return invalid(cat((*settings)->ttl.source, ": ", ttl.error().message));
  if (*ttl < core::kShortestRunTtl) {
    return invalid(
        cat("a ttl of ", format_duration(*ttl), " is too short for run; 1s is the least"));
  }
  request.terms.ttl = *ttl;
  request.settings = {.ttl = *ttl, .grace = {}, .margin = core::default_margin(*ttl)};
  auto grace = session.duration("--grace", core::default_grace(*ttl));
  if (!grace) return grace.error();
  request.settings.grace = *grace;
  for (auto [option, target] : {std::pair{"--max-hold", &request.terms.max_hold},
                                std::pair{"--at-least", &request.terms.at_least},
                                std::pair{"--cooldown", &request.terms.cooldown}}) {
    auto length = session.duration(option, Millis(0));
    if (!length) return length.error();
    *target = *length;
  }
  if (auto ok = core::check_terms(request.terms); !ok) return ok;
  request.settings.max_hold = request.terms.max_hold;
  if (session.words().has("--progress-timeout")) {
    auto timeout = session.duration("--progress-timeout", std::nullopt);
    if (!timeout) return timeout.error();
    request.progress_timeout = *timeout;
  }
  return core::check_settings(request.settings);
}

Status parse_progress(const Words& words, holder::RunRequest& request) {
  const auto what = words.value("--progress-on");
  if (!what) return {};
  if (*what != "output")
    return invalid(cat("--progress-on: ", quoted(*what), " is not known; output is"));
  if (!request.progress_timeout) return invalid("--progress-on needs --progress-timeout");
  request.progress_on_output = true;
  return {};
}

std::string default_note(const std::string& command) {
  return printable(command.substr(command.find_last_of('/') + 1));
}

Result<holder::RunRequest> parse_run(Session& session) {
  const Words& words = session.words();
  holder::RunRequest request;
  if (auto ok = parse_names(words, request); !ok) return ok.error();
  if (auto ok = parse_times(session, request); !ok) return ok.error();
  if (auto ok = parse_progress(words, request); !ok) return ok.error();
  auto held = held_policy(words.value("--on-held"));
  if (!held) return held.error();
  request.held = *held;
  auto ancestral = app::ancestral_leases(session.environment());
  if (!ancestral) return ancestral.error();
  request.ancestral = std::move(*ancestral);
  if (const auto outer = session.environment().get("STINT_STORE"); outer) {
    auto settings = session.settings();
    if (!settings) return settings.error();
    const auto url = app::parse_store_url(*outer);
    request.elsewhere = url && url->identity() != (*settings)->store_url.identity();
  }
  auto owner = session.owner();
  if (!owner) return owner.error();
  request.owner = *owner;
  request.command = words.command();
  request.restart = words.has("--restart");
  request.unsafe_tree = words.has("--unsafe-tree");
  request.on_lost = words.value("--on-lost").value_or("");
  request.note = words.value("--note").value_or(default_note(request.command.front()));
  if (request.note.size() > api::kMostNoteBytes || !is_utf8(request.note) ||
      has_control(request.note)) {
    return invalid(cat("--note is at most ", api::kMostNoteBytes, " bytes of UTF-8 in one line"));
  }
  return request;
}

int wave_off(Session& session, const holder::RunRequest& request, const holder::WavedOff& off,
             int code) {
  if (request.held.what == holder::OnHeld::Fail) return session.held(off.by, "--on-held wait");
  const std::string all =
      request.others.empty() ? "" : cat("none of ", request.others.size() + 1, " is free; ");
  session.skipped(
      cat("skipped: ", all, describe_holder(off.by.lease, session.clock()),
          request.held.what == holder::OnHeld::Skip ? "; --on-held wait waits for its end" : ""),
      off.by.lease);
  return code;
}

int run_command(Session& session) {
  // Before the first thread: they all inherit the mask.
  auto signals = os::Signals::make();
  if (!signals) return session.fail(signals.error());
  Work work;
  auto request = parse_run(session);
  if (!request) return session.fail(request.error());
  work.request = std::move(*request);
  auto code = held_exit(session.words());
  if (!code) return session.fail(code.error());
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  auto seals = plan_seals(session, {work.request.resources, work.request.others},
                          session.words().values("--seal"));
  if (!seals) return session.fail(seals.error());
  work.seals = std::move(*seals);
  work.tell_store = !session.words().has("--no-store-env");
  auto answer = do_work(session, *signals, **opened, work);
  if (!answer) return session.fail(answer.error());
  if (answer->waved_off) return wave_off(session, work.request, *answer->waved_off, *code);
  if (answer->interrupted) return kSignalled + *answer->interrupted;
  if (answer->end.how == holder::RunEnd::How::Exited && answer->end.lost) {
    return report_loss(session, answer->end);
  }
  return exit_of(session, work.request, answer->end);
}

}  // namespace

const Command kRun = {
    .name = "run",
    .operands = "RESOURCE... [options]",
    .summary = "run a command while holding a lease, and stop it when the lease is lost",
    .details =
        "Takes the lease on every RESOURCE (all or nothing), runs the command, renews the leases "
        "while it "
        "runs, and releases them when the command and everything that it started have ended. If "
        "another "
        "holds one, the run is waved off and exits 0: a skip is no failure.\n\n"
        "When a lease cannot be renewed before its deadline, the whole process tree is stopped "
        "(SIGTERM, "
        "then SIGKILL) before anybody else can get it, and run exits 75. When it is revoked or "
        "transferred, "
        "the tree is stopped at once, within a second; the next holder need not wait for that "
        "(--cooldown "
        "makes it). "
        "What the command leaves running in the background belongs to the work and is ended with "
        "it.\n\n"
        "--seal raises the fence of a target to this run's token before the command starts, so "
        "that "
        "nothing older lands there any more: seal, then read, then write. Refused: 13, not "
        "reached: "
        "69, unknown: 14; in each case nothing is started. The targets are remembered, sealed "
        "again "
        "by every later run of the resource, and by transfer and revoke. Each resource that is "
        "taken seals its own; of several, --seal belongs to the first named, and --seal R=TARGET "
        "says otherwise. See 'stint help seal'.\n\n"
        "The command finds its lease in the environment: see 'stint help environment'.",
    .examples = kRunExamples,
    .options = kRunOptions,
    .least_operands = 1,
    .most_operands = 1000,
    .runs_command = true,
    .run = run_command,
};

}  // namespace stint::cli
