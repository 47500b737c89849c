#include "cli/session.h"

#include <unistd.h>

#include <cstdio>

#include "api/json.h"
#include "api/words.h"
#include "app/pass.h"
#include "base/text.h"
#include "cli/exit_codes.h"
#include "cli/table.h"
#include "os/host.h"

namespace stint::cli {

Session::Session(app::Environment environment, Words words)
    : environment_(std::move(environment)), words_(std::move(words)) {}

Session::~Session() { app::Opened::leave(std::move(opened_)); }

Result<const app::Settings*> Session::settings() {
  if (settings_) return &*settings_;
  auto resolved = app::resolve(environment_, {.store = words_.value("--store"),
                                              .owner = words_.value("--owner"),
                                              .ttl = words_.value("--ttl"),
                                              .jobs_store = jobs_store_,
                                              .config = words_.value("--config")});
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
                                   .may_create = may_create,
                                   .key = (*ours)->key},
                                  clock_, random_);
  if (!opened) return opened.error();
  opened_ = std::move(*opened);
  return opened_.get();
}

void Session::print(std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

void Session::print_table(const Table& table) {
  bool header = true;
  for (const std::string& line : table.lines()) {
    print(header ? strong(line) : line);
    header = false;
  }
}

void Session::say(std::string_view line) const {
  if (!quiet() && !json()) warn(line);
}

void Session::report(std::string_view line) const {
  if (quiet()) return;
  json() ? complain(api::to_json(std::vector<api::JsonField>{{"message", std::string(line)}}))
         : warn(line);
}

void Session::warn(std::string_view line) const {
  if (json()) {
    return complain(api::to_json(std::vector<api::JsonField>{{"warning", std::string(line)}}));
  }
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

int Session::nothing(std::string_view what) {
  if (json()) {
    complain(api::error_json("nothing", what));
  } else {
    say(what);
  }
  return kNothing;
}

int Session::done(const std::vector<api::JsonField>& fields, std::string_view words) {
  did(std::string(words));
  json() ? print(api::to_json(fields)) : say(words);
  return kDone;
}

int Session::unwritten() {
  return fail({Code::Failed, cat("the result could not be written to standard output",
                                 did_.empty() ? "" : ". It is done all the same: ", did_)});
}

int Session::held(const api::Refused& refused, std::string_view option) {
  return fail({Code::Held, cat(describe_holder(refused.lease, clock_), "; wait for its end",
                               option.empty() ? "" : " (", option, option.empty() ? "" : ")",
                               ", or try again later")},
              &refused.lease);
}

void Session::skipped(std::string_view line, const api::Lease& lease) const {
  if (quiet()) return;
  json() ? complain(api::skip_json(line, lease)) : warn(line);
}

int Session::lost(const api::Lost& lost, Token offered) {
  return fail({Code::Lost, api::describe_loss(lost, offered)}, &lost.lease, core::word(lost.cause));
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
  // What is none by default may be given as none.
  const bool may_be_none = fallback && fallback->count() == 0;
  auto parsed = may_be_none ? parse_duration_or_none(*text) : parse_duration(*text);
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
  auto known = app::known_of(environment_, resource);
  if (!known) return known.error();
  if (*known) return (*known)->token;
  return invalid("--token N is missing (inside a run of this resource it is known)");
}

app::Claims Session::claims() {
  // REQUIRES: settings() succeeded.
  return {settings_->state_directory, settings_->store_url.identity()};
}

Result<api::Grip> Session::grip(const ResourceName& resource, Token token) {
  auto given = given_owner();
  if (!given) return given.error();
  auto known = app::known_of(environment_, resource);
  if (!known) return known.error();
  if (*known && (*known)->token == token && (*known)->claim) {
    return api::Grip{resource, token, *(*known)->claim, *given, std::nullopt};
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
  return api::describe_holder(lease, clock.wall());
}

}  // namespace stint::cli
