#include "cli/run_seals.h"

#include <algorithm>
#include <memory>
#include <set>

#include "app/guards.h"
#include "base/text.h"
#include "guard/words.h"
#include "os/files.h"

namespace stint::cli {
namespace {

guard::Pass pass_of(const holder::Kept& kept, const Owner& owner, const Generation& generation) {
  return {.resource = kept.grip.resource,
          .token = kept.grip.token,
          .generation = generation,
          .claim = kept.grip.claim,
          .owner = owner,
          .key = ""};
}

// The lease that the given targets belong to: the first that was named; with --or the one that was
// free.
const holder::Kept& leading(const holder::RunRequest& request, const holder::Taken& taken) {
  for (const holder::Kept& kept : taken.kept) {
    if (kept.grip.resource == request.resources.front()) return kept;
  }
  return taken.kept.front();
}

Error not_started(Error error) {
  error.message += " The command was not started.";
  return error;
}

// Before the first of them is sealed: transfer and revoke must find all that may be.
holder::SealStep remember_step(app::Opened& opened, guard::Pass pass,
                               std::vector<std::string> words) {
  return [&opened, pass = std::move(pass), words = std::move(words)]() -> Status {
    auto verdict = opened.fences().remember(guard::offer_of(pass, ""), words);
    if (!verdict) return not_started(std::move(verdict.error()).during("remembering the targets"));
    if (!guard::is_refusal(*verdict)) return {};
    return not_started(
        {guard::code_of(*verdict), cat("the store does not take token ", pass.token.number(),
                                       " of ", quoted(pass.resource.text()), " for the newest.")});
  };
}

// `first`: nobody had remembered the target before. `standing` gets what was sealed.
holder::SealStep seal_step(Session& session, app::Opened& opened, guard::Pass pass,
                           std::string words, bool first,
                           std::shared_ptr<std::vector<std::string>> standing) {
  return [&session, &opened, pass = std::move(pass), words = std::move(words), first,
          standing = std::move(standing)]() -> Status {
    const guard::SealRequest request{.pass = pass, .by_order = false, .adopt = {}};
    app::SealReport report = app::seal_target(app::guards(), words, request, opened.fences(),
                                              opened.events(), session.clock());
    if (report.outcome == app::SealReport::Outcome::Sealed) {
      if (session.words().has("-v")) session.say(cat("sealed ", quoted(words)));
      standing->push_back(words);
      return {};
    }
    const bool given_up = first && app::give_up_refused(request, report, opened.fences());
    Error error = report.error;
    // A target that cannot be used is, for whoever wants to start, one that is not reached.
    const bool away = report.outcome == app::SealReport::Outcome::NotReached;
    if (away) error.code = Code::Unavailable;
    if (away || (error.code == Code::Foreign && !given_up)) {
      // No ready command: what is forgotten is no longer sealed, and another may rely on it.
      error.message +=
          cat(error.message.ends_with('.') ? "" : ".", " It is remembered, and every run under ",
              quoted(pass.resource.text()),
              " seals it first; if it is gone for good or was mistyped, an operator decides "
              "(docs/guides/guards.md).");
    }
    return not_started(std::move(error).during(cat("sealing ", quoted(words))));
  };
}

// After the seals: of those that are sealed now and were not before.
holder::SealStep tell_step(app::Opened& opened, guard::Pass pass,
                           std::shared_ptr<std::vector<std::string>> standing,
                           const api::Granted& granted) {
  return [&opened, pass = std::move(pass), standing = std::move(standing), sealed = granted.sealed,
          sealing = granted.sealing]() -> Status {
    std::erase_if(*standing, [&](const std::string& words) {
      return std::ranges::find(sealed, words) != sealed.end() &&
             std::ranges::find(sealing, words) == sealing.end();
    });
    guard::tell_standing(opened.fences(), {.pass = pass, .by_order = false, .adopt = {}},
                         *standing);
    return {};
  };
}

}  // namespace

Result<std::vector<guard::Target>> seal_targets(Session& session, const holder::RunRequest& request,
                                                std::vector<std::string> texts) {
  std::vector<guard::Target> out;
  auto settings = session.settings();
  if (!settings) return settings.error();
  const auto configured = (*settings)->seal.find(request.resources.front().text());
  if (configured != (*settings)->seal.end() && !session.words().has("--no-seal")) {
    texts.insert(texts.end(), configured->second.begin(), configured->second.end());
  }
  if (texts.empty()) return out;
  const guard::Guards guards = app::guards();
  const std::string here = os::absolute(".");
  for (const std::string& text : texts) {
    auto target = guard::find_target(guards, text, here);
    if (!target) return target.error();
    const bool again = std::ranges::any_of(
        out, [&](const guard::Target& before) { return before.words == target->words; });
    if (!again) out.push_back(std::move(*target));
  }
  return out;
}

Result<std::vector<holder::SealStep>> seal_steps(Session& session, app::Opened& opened,
                                                 const holder::RunRequest& request,
                                                 const std::vector<guard::Target>& targets,
                                                 const holder::Taken& taken) {
  std::vector<holder::SealStep> steps;
  const Generation& generation = opened.leases().generation();
  std::set<std::string> given;
  for (const guard::Target& target : targets) given.insert(target.words);
  for (std::size_t i = 0; i < taken.kept.size(); ++i) {
    const holder::Kept& kept = taken.kept[i];
    // A lease that is lent was granted to somebody else, who sealed what was known.
    const api::Granted granted = i < taken.grants.size() ? taken.grants[i] : api::Granted();
    const guard::Pass pass =
        pass_of(kept, request.owner, holder::generation_of(taken, kept, generation));
    const bool leads = !given.empty() && &kept == &leading(request, taken);
    const auto standing = std::make_shared<std::vector<std::string>>();
    if (leads) {
      steps.push_back(remember_step(opened, pass, {given.begin(), given.end()}));
      for (const std::string& words : given) {
        const bool first = i < taken.grants.size() &&
                           std::ranges::find(granted.sealed, words) == granted.sealed.end();
        steps.push_back(seal_step(session, opened, pass, words, first, standing));
      }
    }
    for (const std::string& words : granted.sealed) {
      if (session.words().has("--no-seal") || (leads && given.contains(words))) continue;
      steps.push_back(seal_step(session, opened, pass, words, false, standing));
    }
    if (leads || !granted.sealed.empty())
      steps.push_back(tell_step(opened, pass, standing, granted));
  }
  return steps;
}

}  // namespace stint::cli
