// What is looked at: leases, history, events; and the keys.
#include <algorithm>

#include "api/json.h"
#include "base/json_text.h"
#include "base/text.h"
#include "report/runs.h"
#include "server/routes.h"

namespace stint::server {
namespace {

constexpr std::size_t kMostLeases = 1000;
constexpr std::size_t kMostEvents = 1000;
constexpr std::size_t kMostHistory = 1000;

// The prefix that a list may show. A key with prefixes sees only what is behind them: who asks for
// everything and has one prefix gets that one.
Result<std::string> visible_prefix(const Request& request) {
  std::string asked = query_text(request, "prefix");
  const Caller& caller = request.caller;
  if (caller.reaches(asked)) return asked;
  std::vector<std::string> within;
  for (const std::string& prefix : caller.key->prefixes) {
    if (prefix.starts_with(asked)) within.push_back(prefix);
  }
  if (within.size() == 1) return within.front();
  return within.empty()
             ? out_of_reach(caller, asked)
             : Error{Code::Denied, "this key has several prefixes: name one of them in 'prefix'"};
}

// What clients tell of: a kind like those of our own, and names like those of leases.
Status check_told(const api::Event& event) {
  constexpr std::size_t kMostKind = 64;
  const bool plain = std::ranges::all_of(event.kind, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (event.kind.empty() || event.kind.size() > kMostKind || !plain) {
    return invalid(cat("the kind of an event is 1 to ", kMostKind, " small letters, digits and _"));
  }
  if (!event.resource.empty()) {
    if (auto name = ResourceName::parse(event.resource); !name) return name.error();
  }
  if (event.owner.empty()) return {};
  auto owner = Owner::parse(event.owner);
  return owner ? Status() : Status(owner.error());
}

// Nobody gives away more than they have: neither rights nor reach nor time.
Status check_within(const api::NewKey& wanted, const Caller& maker, WallTime now) {
  if (!maker.key) return {};
  if ((wanted.rights & ~maker.key->rights) != 0) {
    return Error{Code::Denied, "a key cannot allow what the key that makes it may not do"};
  }
  if (!maker.key->prefixes.empty() && wanted.prefixes.empty()) {
    return Error{Code::Denied, cat("the key ", quoted(maker.name()),
                                   " has prefixes: what it makes needs 'prefixes' within them")};
  }
  for (const std::string& prefix : wanted.prefixes) {
    if (!maker.reaches(prefix)) return out_of_reach(maker, prefix);
  }
  const auto& end = maker.key->expires_at;
  if (end && (!wanted.lasts || *wanted.lasts > *end - now)) {
    return Error{Code::Denied, cat("the key ", quoted(maker.name()), " ends at ", format_utc(*end),
                                   ": what it makes needs an 'expires_in_ms' that ends no later")};
  }
  return {};
}

}  // namespace

Error out_of_reach(const Caller& caller, std::string_view resource) {
  std::string prefixes;
  for (const std::string& one : caller.key->prefixes) {
    prefixes += cat(prefixes.empty() ? "" : ", ", quoted(one));
  }
  return {Code::Denied, cat("the key ", quoted(caller.name()), " does not reach ", quoted(resource),
                            ": only what begins with ", prefixes)};
}

Result<ResourceName> read_resource(Request& request, JsonFields& fields) {
  fields.require("resource");
  const std::string name = fields.text("resource");
  if (auto ok = fields.done(); !ok) return ok.error();
  auto resource = ResourceName::parse(name);
  if (!resource) return resource.error();
  if (!request.caller.reaches(name)) return out_of_reach(request.caller, name);
  return resource;
}

std::string query_text(const Request& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? std::string() : found->second;
}

Result<ResourceName> query_resource(Request& request) {
  const std::string name = query_text(request, "resource");
  if (name.empty()) return invalid("'resource' is missing in the query");
  auto resource = ResourceName::parse(name);
  if (!resource) return resource.error();
  if (!request.caller.reaches(name)) return out_of_reach(request.caller, name);
  return resource;
}

Result<std::size_t> query_limit(const Request& request, std::size_t otherwise, std::size_t most) {
  const std::string text = query_text(request, "limit");
  if (text.empty()) return otherwise;
  const auto number = parse_digits(text);
  if (!number || *number == 0 || *number > most) return invalid(cat("'limit' is 1 to ", most));
  return static_cast<std::size_t>(*number);
}

Answer get_lease(Request& request) {
  auto resource = query_resource(request);
  if (!resource) return fault_answer(resource.error());
  auto lease = request.leases().get(*resource);
  if (!lease) return fault_answer(lease.error());
  return ok(api::to_json(*lease));
}

Answer list_leases(Request& request) {
  auto limit = query_limit(request, 100, kMostLeases);
  if (!limit) return fault_answer(limit.error());
  auto prefix = visible_prefix(request);
  if (!prefix) return fault_answer(prefix.error());
  auto leases = request.leases().list(
      {.prefix = *prefix, .after = query_text(request, "after"), .limit = *limit});
  if (!leases) return fault_answer(leases.error());
  std::string out = cat("{\"leases\":", api::to_json(*leases));
  if (leases->size() == *limit) {
    out += cat(",\"next\":", json_quoted(leases->back().resource));
  }
  return ok(out + "}");
}

Answer history(Request& request) {
  auto resource = query_resource(request);
  if (!resource) return fault_answer(resource.error());
  auto limit = query_limit(request, 100, kMostHistory);
  if (!limit) return fault_answer(limit.error());
  auto past = request.leases().history(*resource, *limit);
  if (!past) return fault_answer(past.error());
  return ok(cat("{\"history\":", api::to_json(*past), "}"));
}

Answer list_events(Request& request) {
  auto limit = query_limit(request, 100, kMostEvents);
  if (!limit) return fault_answer(limit.error());
  auto prefix = visible_prefix(request);
  if (!prefix) return fault_answer(prefix.error());
  auto events = request.events().list({.after = query_text(request, "after"),
                                       .prefix = *prefix,
                                       .limit = *limit,
                                       .newest = query_text(request, "newest") == "true"});
  if (!events) return fault_answer(events.error());
  std::string out = "{\"events\":[";
  for (const api::Event& event : *events) {
    out += cat(&event == events->data() ? "" : ",", api::to_json(event));
  }
  return ok(out + "]}");
}

Answer record_event(Request& request) {
  JsonFields in(request.body);
  const JsonValue* told = in.find("event");
  const std::string target = in.text("target");
  in.refuse_others();
  if (told == nullptr) in.fail("'event' is missing");
  if (auto fine = in.done(); !fine) return fault_answer(fine.error());
  auto event = api::parse_event(*told);
  if (!event) return fault_answer(event.error());
  if (auto fine = check_told(*event); !fine) return fault_answer(fine.error());
  if (request.caller.key) {
    // Nobody writes into the ledger under another's name, nor about what is out of reach.
    if (event->resource.empty() || !request.caller.reaches(event->resource)) {
      return fault_answer(out_of_reach(request.caller, event->resource));
    }
    auto owner = request.caller.owner(event->owner);
    if (!owner) return fault_answer(owner.error());
    event->owner = owner->text();
    event->details.emplace_back("key", request.caller.name());
  }
  auto done = target.empty() ? request.events().record(*event)
                             : request.events().record_refusal(*event, target);
  if (!done) return fault_answer(done.error());
  request.metrics.event(event->kind);
  return ok("{\"recorded\":true}");
}

Answer store_facts(Request& request) {
  const auto fields =
      std::vector<api::JsonField>{{"generation", request.leases().generation().hex()},
                                  {"smallest_ttl_ms", request.leases().smallest_ttl().count()},
                                  {"caveat", request.serve.caveat},
                                  {"version", request.serve.version},
                                  {"key", request.caller.name()},
                                  {"demo", request.serve.demo}};
  std::string out = api::to_json(fields);
  if (!request.caller.key) return ok(out);
  // What the key may, so that who asks need not try.
  out.pop_back();
  return ok(cat(out, ",\"allow\":", api::to_json(api::words(request.caller.key->rights)),
                ",\"prefixes\":", api::to_json(request.caller.key->prefixes), "}"));
}

Answer tune_resource(Request& request) {
  constexpr std::size_t kBars = 12;
  auto resource = query_resource(request);
  if (!resource) return fault_answer(resource.error());
  auto past = request.leases().history(*resource, kMostHistory);
  if (!past) return fault_answer(past.error());
  auto lease = request.leases().get(*resource);
  if (!lease) return fault_answer(lease.error());
  report::TuneInput input;
  if (lease->ttl.count() > 0) input.ttl = lease->ttl;
  report::add_grants(*past, input);
  if (auto fine = report::add_measures(request.events(), resource->text(), kMostEvents, input);
      !fine) {
    return fault_answer(fine.error());
  }
  std::string out = api::to_json(report::tune_fields(resource->text(), input, report::tune(input)));
  std::vector<std::vector<api::JsonField>> bars;
  for (const report::Bin& bin : report::histogram(input.runs, kBars)) {
    bars.push_back({{"from_ms", bin.from.count()},
                    {"to_ms", bin.to.count()},
                    {"count", static_cast<std::int64_t>(bin.count)}});
  }
  out.pop_back();
  return ok(cat(out, ",\"bins\":", api::to_json(bars), "}"));
}

Answer list_keys(Request& request) {
  auto keys = request.serve.backend.keys->list();
  if (!keys) return fault_answer(keys.error());
  std::string out = "{\"keys\":[";
  for (const api::Key& key : *keys) out += cat(&key == keys->data() ? "" : ",", api::to_json(key));
  return ok(out + "]}");
}

Answer create_key(Request& request) {
  JsonFields in(request.body);
  in.require("name");
  in.require("allow");
  api::NewKey wanted{.name = in.text("name"),
                     .rights = 0,
                     .prefixes = in.texts("prefixes"),
                     .lasts = in.maybe_millis("expires_in_ms")};
  for (const std::string& word : in.texts("allow")) {
    auto right = api::parse_rights(word);
    if (!right) return fault_answer(right.error());
    wanted.rights = static_cast<api::Rights>(wanted.rights | *right);
  }
  in.refuse_others();
  if (auto fine = in.done(); !fine) return fault_answer(fine.error());
  if (auto fine = check_within(wanted, request.caller, request.clock.wall()); !fine) {
    return fault_answer(fine.error());
  }
  auto made = request.serve.backend.keys->create(wanted, request.caller.name());
  if (!made) return fault_answer(made.error());
  std::string out = api::to_json(made->key);
  request.kept = out;  // a secret is told once, and never kept
  out.pop_back();
  return ok(cat(out, ",\"secret\":\"", made->secret, "\"}"));
}

Answer revoke_key(Request& request) {
  JsonFields in(request.body);
  in.require("key");
  const std::string which = in.text("key");
  in.refuse_others();
  if (auto fine = in.done(); !fine) return fault_answer(fine.error());
  auto key = request.serve.backend.keys->revoke(which, request.caller.name());
  if (!key) return fault_answer(key.error());
  return ok(api::to_json(*key));
}

}  // namespace stint::server
