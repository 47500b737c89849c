#include "cli/run_work.h"

#include <cerrno>
#include <cstring>

#include "api/words.h"
#include "app/run_files.h"
#include "base/text.h"
#include "cli/exit_codes.h"

namespace stint::cli {
namespace {

std::string_view what_came_of_it(const holder::RunEnd& end) {
  if (!end.started) return "nothing was started: ";
  return end.how == holder::RunEnd::How::Exited ? "before the work had ended by itself: "
                                                : "the work was stopped: ";
}

// What is told of it: the words, and the cause.
struct Loss {
  std::string words;
  std::string_view cause;
};

Loss loss_of(const holder::RunEnd& end) {
  const std::string_view what = what_came_of_it(end);
  if (end.lost)
    return {cat(what, api::describe_loss(*end.lost, end.lost_token)), core::word(end.lost->cause)};
  if (end.how == holder::RunEnd::How::Stalled)
    return {cat(what, "it showed no progress"), "stalled"};
  if (end.max_hold) {
    return {cat(what, "it reached its longest time to be held (--max-hold)"), "max_hold"};
  }
  return {cat(what, "the lease could not be renewed before the deadline"), "deadline"};
}

void tell_grants(const Session& session, const holder::Taken& taken) {
  for (const holder::Kept& kept : taken.kept) {
    session.say(cat(quoted(kept.grip.resource.text()),
                    kept.borrowed ? " is held by an outer run" : " is ours", ", token ",
                    kept.grip.token.number()));
  }
}

app::Environment without(const app::Environment& ours, const std::vector<std::string>& names) {
  auto values = ours.all();
  for (const std::string& name : names) values.erase(name);
  return app::Environment(std::move(values));
}

void add(std::vector<std::string>& environment,
         const std::vector<std::pair<std::string, std::string>>& more) {
  for (const auto& [name, value] : more) {
    const std::string prefix = name + "=";
    std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(prefix); });
    environment.push_back(prefix + value);
  }
}

void tell_start(Session& session, const app::Opened& opened, const holder::Taken& taken) {
  if (!session.words().has("-v")) return;
  tell_grants(session, taken);
  if (const std::string caveat = opened.caveat(); !caveat.empty()) {
    session.say(cat("this store may lose an acknowledged grant: ", caveat));
  }
}

}  // namespace

int report_loss(Session& session, const holder::RunEnd& end) {
  const Loss loss = loss_of(end);
  session.fail({Code::Lost, loss.words}, end.lost ? &end.lost->lease : nullptr, loss.cause);
  return kWorkStopped;
}

int exit_of(Session& session, const holder::RunRequest& request, const holder::RunEnd& end) {
  switch (end.how) {
    case holder::RunEnd::How::Exited: break;
    case holder::RunEnd::How::NotExecuted:
      session.fail({Code::Failed, cat("cannot execute ", quoted(request.command.front()), ": ",
                                      std::strerror(end.exec_error))});
      return end.exec_error == ENOENT ? kNotFound : kNotExecutable;
    case holder::RunEnd::How::Lost:
    case holder::RunEnd::How::Overdue:
    case holder::RunEnd::How::Stalled: return report_loss(session, end);
    case holder::RunEnd::How::Unguarded: return kFailed;
  }
  if (end.child) return end.child->code();
  return session.fail({Code::UnknownOutcome, "the command ran, and nobody saw how it ended"});
}

Result<holder::RunAnswer> do_work(Session& session, os::Signals& signals, app::Opened& opened,
                                  const Work& work) {
  const app::Environment ours = without(session.environment(), work.hidden);
  app::RunFiles files(ours, **session.settings(), session.clock(), session.random());
  const holder::RunRequest& request = work.request;
  const holder::RunHooks hooks{
      .seals = [&](const holder::Taken& taken) -> Result<std::vector<holder::SealStep>> {
        auto steps = seal_steps(seal_world(session, opened), work.seals,
                                under_leases(taken, request.resources.front(), request.owner,
                                             opened.leases().generation()));
        if (work.first) steps.insert(steps.begin(), [&] { return work.first(taken); });
        if (work.last) steps.emplace_back([&] { return work.last(taken); });
        return steps;
      },
      .environment = [&](const holder::Taken& taken,
                         MonoTime deadline) -> Result<std::vector<std::string>> {
        tell_start(session, opened, taken);
        auto environment = files.environment(request, taken, opened.leases().generation(), deadline,
                                             work.tell_store);
        if (environment) add(*environment, work.env);
        return environment;
      },
      .started =
          [&] {
            if (!files.trouble().empty()) {
              session.warn(cat("the work gets no STINT_DEADLINE_FILE or no STINT_STORE_FILE: ",
                               files.trouble()));
            }
            if (work.started) work.started();
          },
      .ended = work.ended,
      .restarting =
          [&](const holder::RunEnd& end) {
            session.report(cat(loss_of(end).words, "; acquiring anew"));
          },
      .deadline_moved = [&](MonoTime deadline) { files.deadline(deadline); },
      .say = [&](const std::string& line) { session.say(line); },
      .waiting =
          [&](const api::Refused& refused) {
            session.say(cat("waiting: ", describe_holder(refused.lease, session.clock())));
          },
      .temporary = files.own_files()};
  return holder::run(opened.leases(), opened.events(), session.clock(), session.random(), signals,
                     request, hooks);
}

}  // namespace stint::cli
