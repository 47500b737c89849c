// stint work
#include <array>
#include <cerrno>
#include <cstring>

#include "app/work_files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/queue.h"
#include "cli/run_seals.h"
#include "cli/session.h"
#include "core/holder_policy.h"
#include "os/crew.h"
#include "os/program.h"
#include "queue/worker.h"

namespace stint::cli {
namespace {

constexpr std::size_t kMostJobs = 256;

constexpr std::array<Option, 10> kWorkOptions = {{
    {"--jobs", "N", "so many workers side by side, each a process of its own (default 1)"},
    {"--with", "RESOURCE", "hold this lease for each item, so that guards have a token to compare"},
    {"--reports-progress", "",
     "the command calls 'stint progress': an item whose worker is gone and that reported none may "
     "be run again"},
    {"--ttl", "D", "how long a claim lasts between renewals (default: the item's own)"},
    {"--grace", "D", "between SIGTERM and SIGKILL when a claim is lost"},
    {"--until-empty", "", "stop when there is nothing to claim"},
    {"--idle", "D", "stop when there was nothing to claim for this long"},
    {"--most", "N", "stop after so many items; with --jobs each worker after so many"},
    kSealOption,
    kNoSealOption,
}};
constexpr std::array<std::string_view, 3> kWorkExamples = {
    "stint work builds -- ./build.sh",
    "stint work builds --jobs 4 --reports-progress -- ./agent.sh",
    "stint work posts --with blog-repo -- sh -c 'stint push < /dev/null'"};

Result<std::size_t> count_of(const Words& words, std::string_view option, std::size_t fallback,
                             std::size_t most) {
  const auto text = words.value(option);
  if (!text) return fallback;
  const auto number = parse_digits(*text);
  if (!number || *number == 0 || *number > most) {
    return invalid(cat(option, " is a number from 1 to ", most));
  }
  return static_cast<std::size_t>(*number);
}

Status parse_times(Session& session, queue::WorkRequest& request) {
  const Words& words = session.words();
  if (words.has("--ttl")) {
    auto ttl = session.duration("--ttl", std::nullopt);
    if (!ttl) return ttl.error();
    if (*ttl < core::kShortestRunTtl) {
      return invalid(
          cat("a ttl of ", format_duration(*ttl), " is too short for work; 1s is the least"));
    }
    request.ttl = *ttl;
  }
  if (words.has("--grace")) {
    auto grace = session.duration("--grace", std::nullopt);
    if (!grace) return grace.error();
    request.grace = *grace;
  }
  if (words.has("--idle")) {
    auto idle = session.duration("--idle", std::nullopt);
    if (!idle) return idle.error();
    request.give_up = *idle;
  }
  return {};
}

Result<queue::WorkRequest> parse_work(Session& session) {
  const Words& words = session.words();
  auto name = core::QueueName::parse(words.operands().front());
  if (!name) return name.error();
  auto owner = session.owner();
  if (!owner) return owner.error();
  queue::WorkRequest request{.queue = *name,
                             .owner = *owner,
                             .ttl = {},
                             .reports = words.has("--reports-progress"),
                             .with = std::nullopt,
                             .terms = {},
                             .grace = std::nullopt,
                             .command = words.command(),
                             .until_empty = words.has("--until-empty"),
                             .give_up = std::nullopt,
                             .most = 0};
  if (auto ok = parse_times(session, request); !ok) return ok.error();
  if (const auto text = words.value("--with")) {
    auto with = ResourceName::parse(*text);
    if (!with) return with.error();
    request.with = *with;
  } else if (words.has("--seal")) {
    return invalid("--seal needs --with RESOURCE: a target is guarded by a lease of its own");
  }
  auto most = count_of(words, "--most", 0, 1'000'000'000);
  if (!most) return most.error();
  request.most = *most;
  return request;
}

// The same command once more, for one worker.
std::vector<std::string> crew_words(const Words& words) {
  std::vector<std::string> out = {os::own_program(), "work", words.operands().front()};
  for (const std::string_view option :
       {"--with", "--ttl", "--grace", "--idle", "--most", "--store", "--owner"}) {
    if (const auto value = words.value(option)) {
      out.emplace_back(option);
      out.push_back(*value);
    }
  }
  for (const std::string& target : words.values("--seal")) {
    out.insert(out.end(), {"--seal", target});
  }
  for (const std::string_view flag :
       {"--reports-progress", "--until-empty", "--no-seal", "-q", "-v", "--json"}) {
    if (words.has(flag)) out.emplace_back(flag);
  }
  out.emplace_back("--");
  out.insert(out.end(), words.command().begin(), words.command().end());
  return out;
}

int run_crew(Session& session, std::size_t jobs, os::Signals& signals) {
  std::vector<std::string> environment;
  for (const auto& [name, value] : session.environment().all()) {
    environment.push_back(cat(name, '=', value));
  }
  auto end = os::run_crew(crew_words(session.words()), environment, jobs, signals,
                          [&](const std::string& line) { session.say(line); });
  if (!end) return session.fail(end.error());
  return end->worst;
}

// The limits of a claim that is kept by a supervisor: two renewals must fit before the deadline.
Status check_ttl(api::Queue& queue, queue::WorkRequest& request) {
  auto config = queue.config(request.queue);
  if (!config) return config.error();
  const Millis ttl = request.ttl.count() > 0 ? request.ttl : config->limits.claim_ttl;
  if (ttl < core::kShortestRunTtl) {
    return invalid(cat("the claims of ", quoted(request.queue.text()), " last ",
                       format_duration(ttl), ", which is too short for work: give a --ttl"));
  }
  request.terms.ttl = ttl;
  return core::check_settings({.ttl = ttl,
                               .grace = request.grace.value_or(core::default_grace(ttl)),
                               .margin = core::default_margin(ttl)});
}

int tell_end(Session& session, const queue::WorkEnd& end) {
  if (end.exec_error != 0) {
    session.fail(
        {Code::Failed, cat("cannot execute ", quoted(session.words().command().front()), ": ",
                           std::strerror(end.exec_error), "; the item was given back")});
    return end.exec_error == ENOENT ? kNotFound : kNotExecutable;
  }
  if (session.words().has("-v")) {
    session.say(
        cat(end.completed, " completed, ", end.failed, " failed or put off, ", end.lost, " lost"));
  }
  return kDone;
}

int work_command(Session& session) {
  auto signals = os::Signals::make();
  if (!signals) return session.fail(signals.error());
  auto declared = declared_queues(session);
  if (!declared) return session.fail(declared.error());
  auto request = parse_work(session);
  if (!request) return session.fail(request.error());
  auto jobs = count_of(session.words(), "--jobs", 1, kMostJobs);
  if (!jobs) return session.fail(jobs.error());
  auto queue = open_declared_queue(session, request->queue, *declared);
  if (!queue) return session.fail(queue.error());
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  if (auto ok = check_ttl(**queue, *request); !ok) return session.fail(ok.error());
  MayTake may;
  if (request->with) may.together.push_back(*request->with);
  auto seals = plan_seals(session, may, session.words().values("--seal"));
  if (!seals) return session.fail(seals.error());
  if (*jobs > 1) return run_crew(session, *jobs, *signals);
  holder::RunRequest told;
  told.owner = request->owner;
  if (request->with) told.resources.push_back(*request->with);
  auto ancestral = app::ancestral_leases(session.environment());
  if (!ancestral) return session.fail(ancestral.error());
  told.ancestral = std::move(*ancestral);
  app::WorkFiles files(session.environment(), **session.settings(), session.clock(),
                       session.random());
  const queue::WorkHooks hooks{
      .payload_file = [&](const api::ClaimedItem& item) { return files.payload_file(item); },
      .environment =
          [&](const api::ClaimedItem& item, const holder::Taken& with, const std::string& path,
              MonoTime deadline) {
            if (session.words().has("-v")) {
              session.say(
                  cat(item.item.id.text(), " is ours, epoch ", item.item.item.epoch.number()));
            }
            return files.environment(told, item, with, path, (*opened)->leases().generation(),
                                     deadline);
          },
      .seals = [&](const holder::Taken& with) -> Result<std::vector<holder::SealStep>> {
        return seal_steps(
            seal_world(session, **opened), *seals,
            under_leases(with, *request->with, request->owner, (*opened)->leases().generation()));
      },
      .deadline_moved = [&](MonoTime deadline) { files.deadline(deadline); },
      .say = [&](const std::string& line) { session.report(line); },
      .item_over = [&] { (*opened)->flush(); },
      .temporary = files.own_files()};
  auto end = queue::work(**queue, (*opened)->leases(), session.clock(), session.random(), *signals,
                         *request, hooks);
  if (!end) return session.fail(end.error());
  return tell_end(session, *end);
}

}  // namespace

const Command kWork = {
    .name = "work",
    .operands = "QUEUE [options]",
    .summary = "claim items of a queue and run a command for each, under its claim",
    .details =
        "For each item: claims it, marks it started, runs the command with the payload on its "
        "standard input, keeps the claim alive meanwhile, and stops the whole process tree when "
        "the "
        "claim is lost. Exit code 0 completes the item, 75 puts it off without using up an "
        "attempt, "
        "anything else fails it; a command that calls 'stint queue complete' itself has spoken. "
        "Waits for items when there are none, and looks after those whose workers are gone.\n\n"
        "The command finds STINT_ITEM, STINT_QUEUE, STINT_EPOCH, STINT_ATTEMPT, "
        "STINT_PAYLOAD_FILE, "
        "STINT_CHECKPOINT_FILE (what the worker before had saved; empty: nothing) and "
        "STINT_PREVIOUS_PROGRESS in its environment; with --with also what 'stint run' gives.\n\n"
        "With --with it seals the targets of that lease before each item is started, as 'stint "
        "run' does. A target that refuses (13), is not reached (69) or leaves it unknown (14) "
        "ends the worker; the item is given back.\n\n"
        "SIGTERM: no more is claimed, the item at hand is finished. A second one is passed on to "
        "the "
        "command.",
    .examples = kWorkExamples,
    .options = kWorkOptions,
    .least_operands = 1,
    .most_operands = 1,
    .runs_command = true,
    .run = work_command,
};

}  // namespace stint::cli
