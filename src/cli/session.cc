#include "cli/session.h"

#include <unistd.h>

#include <cstdio>

#include "api/json.h"
#include "base/text.h"
#include "cli/exit_codes.h"
#include "os/host.h"

namespace stint::cli {

Session::Session(app::Environment environment, Words words)
    : environment_(std::move(environment)), words_(std::move(words)) {}

Session::~Session() = default;

Result<const app::Settings*> Session::settings() {
  if (settings_) return &*settings_;
  auto resolved = app::resolve(environment_, {.store = words_.value("--store"),
                                              .owner = words_.value("--owner"),
                                              .ttl = words_.value("--ttl"),
                                              .jobs_store = jobs_store_});
  if (!resolved) return resolved.error();
  settings_ = std::move(*resolved);
  return &*settings_;
}

Result<app::Opened*> Session::open(bool may_create) {
  if (opened_) return opened_.get();
  auto ours = settings();
  if (!ours) return ours.error();
  auto opened = app::Opened::open({.url = (*ours)->store_url,
                                   .state_directory = (*ours)->state_directory,
                                   .may_create = may_create},
                                  clock_, random_);
  if (!opened) return opened.error();
  opened_ = std::move(*opened);
  return opened_.get();
}

void Session::print(std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

void Session::say(std::string_view line) const {
  if (!quiet()) warn(line);
}

void Session::warn(std::string_view line) const {
  // One write: lines of several processes do not mix.
  const std::string whole = cat("stint: ", line, "\n");
  std::fwrite(whole.data(), 1, whole.size(), stderr);
}

void Session::complain(const std::string& document) const {
  std::fprintf(stderr, "%s\n", document.c_str());
}

int Session::fail(const Error& error, const api::Lease* lease, std::string_view cause) {
  if (json()) {
    complain(api::to_json(error, lease, cause));
  } else {
    warn(error.message);
  }
  return exit_code(error.code);
}

int Session::held(const api::Refused& refused) {
  return fail({Code::Held, describe_holder(refused.lease, clock_)}, &refused.lease);
}

int Session::lost(const api::Lost& lost, Token offered) {
  return fail({Code::Lost, describe_loss(lost, offered)}, &lost.lease, core::word(lost.cause));
}

std::string Session::strong(std::string_view text) const {
  const auto term = environment_.get("TERM");
  const bool plain = words_.has("--no-color") || environment_.get("NO_COLOR") || json() || !term ||
                     *term == "dumb" || ::isatty(STDOUT_FILENO) == 0;
  return plain ? std::string(text) : cat("\033[1m", text, "\033[0m");
}

Result<Owner> Session::owner() {
  auto given = given_owner();
  if (!given) return given.error();
  if (*given) return **given;
  return Owner::parse(cat(os::host_name(), "-", ::getpid(), "-", random_.id_hex().substr(0, 6)));
}

Result<std::optional<Owner>> Session::given_owner() {
  auto ours = settings();
  if (!ours) return ours.error();
  if (!(*ours)->owner) return std::optional<Owner>();
  auto owner = Owner::parse((*ours)->owner->value);
  if (!owner) return std::move(owner.error()).during(cat("reading ", (*ours)->owner->source));
  return std::optional<Owner>(*owner);
}

Result<ResourceName> Session::resource() {
  if (!words_.operands().empty()) return ResourceName::parse(words_.operands().front());
  if (const auto inherited = environment_.get("STINT_RESOURCE"))
    return ResourceName::parse(*inherited);
  return invalid("which resource? Name one (inside a run it is STINT_RESOURCE)");
}

Result<Millis> Session::duration(std::string_view option, std::optional<Millis> fallback) {
  const auto text = words_.value(option);
  if (!text) {
    if (fallback) return *fallback;
    return invalid(cat(option, " is missing"));
  }
  auto parsed = parse_duration(*text);
  if (!parsed) return invalid(cat(option, ": ", parsed.error().message));
  return parsed;
}

Result<Token> Session::token() {
  auto name = resource();
  if (!name) return name.error();
  return token_of(*name);
}

Result<Token> Session::token_of(const ResourceName& resource) {
  if (const auto text = words_.value("--token")) {
    auto token = Token::parse(*text);
    if (!token) return invalid(cat("--token: ", token.error().message));
    return token;
  }
  auto ancestral = app::ancestral_leases(environment_);
  if (!ancestral) return ancestral.error();
  for (const holder::Ancestral& one : *ancestral) {
    if (one.resource == resource) return one.token;
  }
  return invalid("--token N is missing (inside a run of this resource it is known)");
}

app::Claims Session::claims() {
  // REQUIRES: settings() succeeded.
  return {settings_->state_directory, settings_->store_url.identity()};
}

Result<api::Grip> Session::grip(const ResourceName& resource, Token token) {
  auto given = given_owner();
  if (!given) return given.error();
  auto ancestral = app::ancestral_leases(environment_);
  if (!ancestral) return ancestral.error();
  for (const holder::Ancestral& one : *ancestral) {
    if (one.resource != resource || one.token != token) continue;
    return api::Grip{resource, token, one.claim, *given, std::nullopt};
  }
  auto kept = claims().find(resource, token);
  if (!kept) return kept.error();
  if (!*kept) {
    return Error{Code::Lost,
                 cat("this machine has no claim to ", quoted(resource.text()), " with token ",
                     token.number(), ": it was never acquired here, or is released")};
  }
  // An owner that is given must match; one that is not is taken from the claim.
  if (*given) (*kept)->owner = *given;
  return **kept;
}

std::string describe_holder(const api::Lease& lease, const Clock& clock) {
  const std::string what = quoted(lease.resource);
  if (lease.state == core::State::Resting) {
    return cat(what, " is resting",
               lease.remaining ? cat(" for another ", rough_duration(*lease.remaining)) : "",
               ": nobody may acquire it yet; try again later");
  }
  const std::string who = quoted(lease.owner.text());
  if (lease.state == core::State::Reserved) {
    return cat(what, " is reserved for ", who,
               lease.remaining ? cat(" for another ", rough_duration(*lease.remaining)) : "");
  }
  std::string out = cat(what, " is held by ", who, " with token ", lease.token.number());
  if (lease.acquired_at) {
    out += cat(" since ", format_utc(*lease.acquired_at));
  }
  if (lease.remaining) {
    out += cat(", for another ", rough_duration(*lease.remaining), " unless renewed (until ",
               format_utc(clock.wall() + *lease.remaining), ")");
  }
  if (!lease.note.empty()) out += cat("; it is running ", printable(lease.note));
  if (!lease.progress.empty()) out += cat("; its progress: ", printable(lease.progress));
  return out;
}

std::string describe_loss(const api::Lost& lost, Token offered) {
  const api::Lease& now = lost.lease;
  const std::string what = cat(quoted(now.resource), " with token ", offered.number());
  const std::string order = cat(now.by.empty() ? "" : cat(" by ", quoted(now.by)),
                                now.why.empty() ? "" : cat(": ", printable(now.why)));
  const std::string next = now.held ? cat("; it is held by ", quoted(now.owner.text()),
                                          " with token ", now.token.number())
                                    : "";
  switch (lost.cause) {
    case core::Cause::None: return cat(what, " is not held");
    case core::Cause::Expired: return cat(what, " has expired; acquire it anew to go on");
    case core::Cause::Superseded: return cat(what, " was superseded", next);
    case core::Cause::Released: return cat(what, " was released", next);
    case core::Cause::Transferred: return cat(what, " was transferred", order);
    case core::Cause::Revoked: return cat(what, " was revoked", order);
    case core::Cause::Stalled: return cat(what, " was ended for lack of progress");
    case core::Cause::MaxHold: return cat(what, " reached its longest time to be held");
    case core::Cause::Restored:
      return cat(what, " is newer than anything that the store knows: the store went back in time");
    case core::Cause::NotHolder: return cat(what, " is not yours: claim or owner do not match");
    case core::Cause::WrongToken:
      return now.token.issued() ? cat(quoted(now.resource), " stands at token ", now.token.number(),
                                      ", not ", offered.number(), ": look again before you decide")
                                : cat(quoted(now.resource), " was never acquired");
  }
  return what;
}

}  // namespace stint::cli
