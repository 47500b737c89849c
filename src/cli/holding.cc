// stint renew, release, check, progress: the verbs of a holder outside of `run`.
#include <algorithm>
#include <array>

#include "api/json.h"
#include "api/queue_json.h"
#include "api/words.h"
#include "app/pass.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/queue.h"
#include "cli/session.h"

namespace stint::cli {
namespace {

constexpr Option kToken = {"--token", "N", "the token that acquire printed (inside a run: known)"};

// This machine cannot show the claim, so nothing is asked for; but the store may know why it is
// gone.
int unclaimed(Session& session, const ResourceName& resource, Token token, const Error& error) {
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  auto answer = (*opened)->leases().check(
      {resource, token, Claim::make(session.random()), std::nullopt, std::nullopt});
  const auto* lost = answer ? std::get_if<api::Lost>(&*answer) : nullptr;
  const bool told = lost != nullptr && lost->cause != core::Cause::NotHolder;
  return told ? session.lost(*lost, token) : session.fail(error);
}

// Opens the store, finds the claim, does one verb, tells the answer.
template <class Verb>
int with_grip(Session& session, Verb verb) {
  auto resource = session.resource();
  if (!resource) return session.fail(resource.error());
  auto token = session.token();
  if (!token) return session.fail(token.error());
  if (auto settings = session.settings(); !settings) return session.fail(settings.error());
  auto grip = session.grip(*resource, *token);
  if (!grip && grip.error().code == Code::Lost)
    return unclaimed(session, *resource, *token, grip.error());
  if (!grip) return session.fail(grip.error());
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  auto answer = verb((*opened)->leases(), *grip);
  if (!answer) return session.fail(answer.error());
  if (auto* lost = std::get_if<api::Lost>(&*answer)) {
    // The claim shows that it was issued.   G12
    if (lost->cause == core::Cause::NeverIssued) lost->cause = core::Cause::Restored;
    // Another has it: this claim will never be good again.
    if (lost->lease.token > *token) session.claims().drop(*resource, *token);
    const auto known = app::known_of(session.environment(), *resource);
    if (lost->cause == core::Cause::Restored && known && *known && (*known)->generation &&
        *(*known)->generation != (*opened)->leases().generation()) {
      return session.fail({Code::Lost, cat(quoted(resource->text()),
                                           " of this environment is another store's than this one: "
                                           "name its store (--store, STINT_STORE)")});
    }
    return session.lost(*lost, *token);
  }
  if (session.json()) session.print(api::to_json(std::get<api::Held>(*answer).lease));
  return kDone;
}

int renew_command(Session& session) {
  std::optional<Millis> ttl;
  if (session.words().has("--ttl")) {
    auto given = session.duration("--ttl", std::nullopt);
    if (!given) return session.fail(given.error());
    ttl = *given;
  }
  return with_grip(session,
                   [&](api::Leases& leases, const api::Grip& grip) -> Result<api::HoldAnswer> {
                     if (ttl) return leases.renew(grip, *ttl);
                     // As long as it was granted for.
                     auto present = leases.get(grip.resource);
                     if (!present) return present.error();
                     return leases.renew(grip, std::max(present->ttl, leases.smallest_ttl()));
                   });
}

int release_command(Session& session) {
  const bool fence = session.words().has("--fence");
  return with_grip(session, [&](api::Leases& leases, const api::Grip& grip) {
    return leases.release(grip, fence);
  });
}

int check_command(Session& session) {
  return with_grip(session,
                   [](api::Leases& leases, const api::Grip& grip) { return leases.check(grip); });
}

int item_progress(Session& session, const std::string& marker) {
  auto id = core::ItemId::parse(*session.environment().get("STINT_ITEM"));
  if (!id) return session.fail(id.error());
  auto epoch = Token::parse(session.environment().get("STINT_EPOCH").value_or(""));
  if (!epoch) return session.fail(invalid(cat("STINT_EPOCH: ", epoch.error().message)));
  auto queue = open_queue(session);
  if (!queue) return session.fail(queue.error());
  auto answer = (*queue)->checkpoint({*id, *epoch}, marker, std::nullopt);
  if (!answer) return session.fail(answer.error());
  if (const auto* lost = std::get_if<api::ItemLost>(&*answer)) {
    return session.fail({Code::Lost, api::describe_loss(*lost, *id, *epoch)});
  }
  if (session.json()) session.print(api::to_json(std::get<api::ItemDone>(*answer)));
  return kDone;
}

int progress_command(Session& session) {
  const std::string marker = session.words().operands().front();
  const auto given = session.words().value("--resource");
  // Inside 'stint work' it is the item that moves.
  if (!given && session.environment().get("STINT_ITEM")) return item_progress(session, marker);
  const auto inherited = given ? given : session.environment().get("STINT_RESOURCE");
  if (!inherited)
    return session.fail(invalid("which resource? Use --resource (inside a run it is known)"));
  auto resource = ResourceName::parse(*inherited);
  if (!resource) return session.fail(resource.error());
  auto token = session.token_of(*resource);
  if (!token) return session.fail(token.error());
  if (auto settings = session.settings(); !settings) return session.fail(settings.error());
  auto grip = session.grip(*resource, *token);
  if (!grip) return session.fail(grip.error());
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  auto answer = (*opened)->leases().progress(*grip, marker);
  if (!answer) return session.fail(answer.error());
  if (const auto* lost = std::get_if<api::Lost>(&*answer)) return session.lost(*lost, *token);
  if (session.json()) session.print(api::to_json(std::get<api::Held>(*answer).lease));
  return kDone;
}

constexpr std::array<Option, 2> kRenewOptions = {{
    kToken,
    {"--ttl", "D", "from now (default: as long as it was granted for); never shortens"},
}};
constexpr std::array<Option, 2> kReleaseOptions = {{
    kToken,
    {"--fence", "", "also move the token: a straggler's write with the old one no longer counts"},
}};
constexpr std::array<Option, 1> kCheckOptions = {{kToken}};
constexpr std::array<Option, 2> kProgressOptions = {{
    kToken,
    {"--resource", "R", "default: STINT_RESOURCE"},
}};
constexpr std::array<std::string_view, 1> kRenewExamples = {
    "stint renew blog-repo --token 7 --ttl 5m"};
constexpr std::array<std::string_view, 1> kReleaseExamples = {"stint release blog-repo --token 7"};
constexpr std::array<std::string_view, 1> kCheckExamples = {
    "stint check blog-repo --token 7 || exit   # still the holder?"};
constexpr std::array<std::string_view, 1> kProgressExamples = {"stint progress 'page 40 of 200'"};

}  // namespace

const Command kRenew = {
    .name = "renew",
    .operands = "RESOURCE --token N",
    .summary = "prolong a lease that this machine holds",
    .details =
        "Only while it has not run out: a renewal never creates, revives or shortens a lease. "
        "Exit 12 if it is lost.",
    .examples = kRenewExamples,
    .options = kRenewOptions,
    .least_operands = 0,
    .most_operands = 1,
    .runs_command = false,
    .run = renew_command,
};

const Command kRelease = {
    .name = "release",
    .operands = "RESOURCE --token N",
    .summary = "end a lease now",
    .details = "0 also the second time, and after it ran out while nobody took over.",
    .examples = kReleaseExamples,
    .options = kReleaseOptions,
    .least_operands = 0,
    .most_operands = 1,
    .runs_command = false,
    .run = release_command,
};

const Command kCheck = {
    .name = "check",
    .operands = "RESOURCE --token N",
    .summary = "say whether this token still holds the lease (0), or not (12)",
    .details =
        "A check and a later write are two steps: between them the lease can be lost. "
        "Only a guard at the target closes that gap.",
    .examples = kCheckExamples,
    .options = kCheckOptions,
    .least_operands = 0,
    .most_operands = 1,
    .runs_command = false,
    .run = check_command,
};

const Command kProgress = {
    .name = "progress",
    .operands = "MARKER",
    .summary = "report how far the work is; the successor gets the last marker",
    .details =
        "Progress is a sign of its own: heartbeats go on without it and prove nothing. "
        "'stint run --progress-timeout D' ends a run that reports none. "
        "The next holder finds the last marker in STINT_PREVIOUS_PROGRESS.",
    .examples = kProgressExamples,
    .options = kProgressOptions,
    .least_operands = 1,
    .most_operands = 1,
    .runs_command = false,
    .run = progress_command,
};

}  // namespace stint::cli
