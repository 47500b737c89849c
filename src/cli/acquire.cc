// stint acquire
#include <array>

#include "api/json.h"
#include "app/environment.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/session.h"
#include "holder/taking.h"

namespace stint::cli {
namespace {

constexpr std::array<Option, 8> kAcquireOptions = {{
    {"--ttl", "D", "how long the grant lasts (default 90s)"},
    {"--wait", "D", "wait this long for it to become free"},
    {"--env", "", "print shell lines that set STINT_RESOURCE, STINT_TOKEN, STINT_CLAIM ..."},
    {"--retake", "", "take a lease again that this machine holds, under a new claim and token"},
    {"--max-hold", "D", "the longest that this grant may be renewed to"},
    {"--at-least", "D", "nobody acquires it before this long after the start"},
    {"--cooldown", "D", "nobody acquires it before this long after an unclean end"},
    {"--note", "TEXT", "what others are told that you are doing"},
}};

constexpr std::string_view kWaits = "--wait D";
constexpr std::string_view kWaitsLonger = "a longer --wait";
constexpr std::array<std::string_view, 3> kAcquireExamples = {
    "token=$(stint acquire blog-repo --ttl 5m) && ... && stint release blog-repo --token $token",
    "eval \"$(stint acquire blog-repo --env)\"",
    "stint acquire blog-repo --wait 30s --json",
};

Result<core::Terms> terms_of(Session& session) {
  auto settings = session.settings();
  if (!settings) return settings.error();
  core::Terms terms;
  auto ttl = parse_duration((*settings)->ttl.value);
  if (!ttl) return invalid(cat((*settings)->ttl.source, ": ", ttl.error().message));
  terms.ttl = *ttl;
  for (auto [option, target] :
       {std::pair{"--max-hold", &terms.max_hold}, std::pair{"--at-least", &terms.at_least},
        std::pair{"--cooldown", &terms.cooldown}}) {
    auto length = session.duration(option, Millis(0));
    if (!length) return length.error();
    *target = *length;
  }
  if (auto ok = core::check_terms(terms); !ok) return ok.error();
  return terms;
}

std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

// What the ancestors hold stays; the lease is the innermost one.
void print_environment(Session& session, const api::Grip& grip, const api::Lease& lease) {
  auto held = app::ancestral_leases(session.environment());
  if (!held) session.warn(cat("what is held outside is not handed on: ", held.error().message));
  app::HeldLines lines;
  for (const holder::Ancestral& one : held ? *held : std::vector<holder::Ancestral>()) {
    if (one.resource != grip.resource) lines.add(one);
  }
  lines.add({grip.resource, lease.generation, lease.token, grip.claim});
  std::vector<std::pair<std::string_view, std::string>> all = {
      {"STINT_RESOURCE", lease.resource},           {"STINT_OWNER", lease.owner.text()},
      {"STINT_TOKEN", cat(lease.token.number())},   {"STINT_CLAIM", grip.claim.hex()},
      {"STINT_GENERATION", lease.generation.hex()}, {"STINT_HELD", lines.held},
      {"STINT_HELD_CLAIMS", lines.claims}};
  // Later commands find it without the flag; a password is never in one.
  if (session.words().has("--store")) {
    if (auto settings = session.settings()) {
      all.emplace_back("STINT_STORE", (*settings)->store_url.absolute_printable());
    }
  }
  for (const auto& [name, value] : all) {
    session.print(cat("export ", name, "=", shell_quoted(value)));
  }
}

int succeed(Session& session, const api::Grip& grip, const api::Lease& lease) {
  if (auto kept = session.claims().keep(grip); !kept) {
    session.warn(cat("the claim could not be kept for later commands: ", kept.error().message));
  }
  // The one before is superseded by this grant.
  if (lease.token.number() > 1)
    session.claims().drop(grip.resource, Token(lease.token.number() - 1));
  session.did(cat(quoted(lease.resource), " is yours, token ", lease.token.number()));
  if (session.json()) {
    session.print(api::to_json(lease, grip.claim));
  } else if (session.words().has("--env")) {
    print_environment(session, grip, lease);
  } else {
    session.print(cat(lease.token.number()));
  }
  return kDone;
}

int retake(Session& session, api::Leases& leases, const api::AcquireRequest& request) {
  auto present = leases.get(request.resource);
  if (!present) return session.fail(present.error());
  api::AcquireRequest bid = request;
  if (present->held) {
    auto grip = session.grip(request.resource, present->token);
    if (!grip && grip.error().code != Code::Lost) return session.fail(grip.error());
    if (grip) bid.retake = grip->claim;
  }
  auto answer = leases.acquire(bid);
  if (!answer) return session.fail(answer.error());
  if (const auto* refused = std::get_if<api::Refused>(&*answer))
    return session.held(*refused, kWaits);
  const auto& granted = std::get<api::Granted>(*answer);
  return succeed(session, {bid.resource, granted.lease.token, bid.claim, bid.owner, std::nullopt},
                 granted.lease);
}

int acquire_command(Session& session) {
  auto resource = session.resource();
  if (!resource) return session.fail(resource.error());
  auto terms = terms_of(session);
  if (!terms) return session.fail(terms.error());
  auto owner = session.owner();
  if (!owner) return session.fail(owner.error());
  auto patience = session.duration("--wait", Millis(0));
  if (!patience) return session.fail(patience.error());
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  const std::string note = session.words().value("--note").value_or("");
  api::Leases& leases = (*opened)->leases();
  if (session.words().has("--retake")) {
    return retake(session, leases,
                  {*resource, *owner, Claim::make(session.random()), *terms, note, std::nullopt});
  }
  holder::TakeRequest bid{
      .choices = {{*resource}}, .owner = *owner, .terms = *terms, .note = note, .held = {}};
  bid.count_refusal = true;
  if (patience->count() > 0) bid.held = {.what = holder::OnHeld::Wait, .patience = *patience};
  auto answer = holder::take(
      leases, session.clock(), session.random(), bid, {}, [&](const api::Refused& refused) {
        session.say(cat("waiting: ", describe_holder(refused.lease, session.clock())));
      });
  if (!answer) return session.fail(answer.error());
  if (const auto* off = std::get_if<holder::WavedOff>(&*answer)) {
    const int code = session.held(off->by, patience->count() > 0 ? kWaitsLonger : kWaits);
    (*opened)->flush();
    return code;
  }
  const auto& taken = std::get<holder::Taken>(*answer);
  return succeed(session, taken.kept.front().grip, taken.grants.front().lease);
}

}  // namespace

const Command kAcquire = {
    .name = "acquire",
    .operands = "RESOURCE",
    .summary = "take a lease and print its token; for scripts that renew and release it themselves",
    .details =
        "Prints the token alone (with --json: the lease and the claim). The claim is kept on this "
        "machine, "
        "so that a later 'stint renew RESOURCE --token N' in the same script finds it. "
        "Nothing renews the lease by itself: prefer 'stint run' where you can.",
    .examples = kAcquireExamples,
    .options = kAcquireOptions,
    .least_operands = 0,
    .most_operands = 1,
    .runs_command = false,
    .run = acquire_command,
};

}  // namespace stint::cli
