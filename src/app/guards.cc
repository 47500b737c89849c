#include "app/guards.h"

#include "app/postgres_guard.h"
#include "app/proxy.h"
#include "base/text.h"
#include "guard/directory_guard.h"
#include "guard/file_guard.h"
#include "guard/git_guard.h"
#include "guard/path_check.h"
#include "guard/words.h"

namespace stint::app {

guard::Guards guards() {
  guard::Guards table;
  table[guard::TargetKind::File] = {
      .settle_words = [](const guard::Target& one) { return guard::file_target(one.place); },
      .seal = [](const guard::Target& one, const guard::SealRequest& request,
                 api::Fences* fences) { return guard::seal_file(one.place, request, fences); },
      .check = guard::check_path,
      .may_stand = guard::may_stand_at};
  table[guard::TargetKind::Directory] = {
      .settle_words = [](const guard::Target& one) { return guard::directory_target(one.place); },
      .seal = [](const guard::Target& one, const guard::SealRequest& request,
                 api::Fences* fences) { return guard::seal_directory(one.place, request, fences); },
      .check = guard::check_path,
      .may_stand = guard::may_stand_at};
  table[guard::TargetKind::Admit] = guard::store_guard();
  table[guard::TargetKind::Postgres] = postgres_guard();
  table[guard::TargetKind::Proxy] = proxy_guard();
  table[guard::TargetKind::Git] = guard::git_guard();
  return table;
}

Status record_refusal(api::Events& events, const Clock& clock, const guard::Refused& refused,
                      const guard::Pass& pass) {
  api::Event event;
  event.at = clock.wall();
  event.kind = refused.warned ? "write_would_be_refused" : "write_refused";
  event.resource = pass.resource.text();
  event.token = refused.offered.number();
  event.owner = pass.owner.text();
  event.details.emplace_back("target", refused.target);
  event.details.emplace_back("cause", std::string(word(guard::code_of(refused.verdict))));
  if (refused.fence) {
    event.details.emplace_back("fence", static_cast<std::int64_t>(refused.fence->token.number()));
  }
  if (!refused.newest_owner.empty()) {
    event.details.emplace_back("newest_owner", refused.newest_owner.text());
  }
  // What was let through and what was not are counted apart, and each cause by itself.
  return events.record_refusal(
      event, cat(event.kind, ' ', word(guard::code_of(refused.verdict)), ' ', refused.target));
}

SealReport seal_target(const guard::Guards& guards, const std::string& words,
                       const guard::SealRequest& request, api::Fences& fences, api::Events& events,
                       const Clock& clock) {
  using Outcome = SealReport::Outcome;
  const auto failed = [&](const Error& error, bool surely) {
    const bool unknown = error.code == Code::UnknownOutcome;
    return SealReport{.target = words,
                      .outcome = unknown ? Outcome::Unknown : Outcome::NotReached,
                      .error = error,
                      .surely_failed = surely};
  };
  // Remembered words are absolute: where they are read makes no difference.
  auto target = guard::parse_target(words, "/");
  if (!target) return failed(target.error(), true);
  auto answer = guard::seal(guards, *target, request, &fences);
  const bool surely = guard::surely_failed(guards, *target, request.pass, answer);
  if (!answer) return failed(answer.error(), surely);
  if (const auto* sealed = std::get_if<guard::Sealed>(&*answer)) {
    return {.target = words, .outcome = Outcome::Sealed, .error = {}, .was_none = sealed->was_none};
  }
  const auto& refused = std::get<guard::Refused>(*answer);
  const bool newer = refused.verdict == core::Verdict::Stale;
  if (request.by_order && newer) return {.target = words, .outcome = Outcome::Newer, .error = {}};
  Error error = guard::error_of(refused, request.pass);
  if (auto recorded = record_refusal(events, clock, refused, request.pass); !recorded) {
    error.message += cat(" (This could not be recorded: ", recorded.error().message, ")");
  }
  return {.target = words,
          .outcome = Outcome::Refused,
          .error = std::move(error),
          .surely_failed = surely};
}

bool strike(const guard::SealRequest& request, SealReport& report, api::Fences& fences) {
  if (!report.surely_failed) return false;
  if (!guard::take_back(fences, request, report.target)) return false;
  report.error.message += cat(report.error.message.ends_with('.') ? "" : ".",
                              " It had not been sealed yet, and is no longer remembered.");
  return true;
}

Result<std::vector<SealReport>> seal_by_order(const guard::Guards& guards,
                                              const ResourceName& resource, Token token,
                                              const Generation& generation, api::Fences& fences,
                                              api::Events& events, const Clock& clock) {
  auto word = fences.word(resource);
  if (!word) return word.error();
  const guard::SealRequest request{.pass = {.resource = resource,
                                            .token = token,
                                            .generation = generation,
                                            .claim = {},
                                            .owner = {},
                                            .key = ""},
                                   .by_order = true,
                                   .adopt = {}};
  std::vector<SealReport> out;
  std::vector<std::string> standing;
  for (const std::string& target : word->sealed) {
    out.push_back(seal_target(guards, target, request, fences, events, clock));
    if (out.back().shut()) standing.push_back(target);
  }
  guard::tell_standing(fences, request, standing);
  return out;
}

}  // namespace stint::app
