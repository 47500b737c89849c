// What is looked at: leases, history, events.
#include <algorithm>
#include <array>

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
constexpr std::string_view kTargetForgotten = "target_forgotten";

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

// What programs at the other end see and the server does not: a run's end as its holder saw it,
// a guard's refusal, a scheduler's trouble. All other kinds are written in the commit of what they
// tell of, and nobody else can have seen it.
constexpr std::array<std::string_view, 13> kToldByClients = {
    "clock_differs",  "config_differs", "run_measured",          "run_refused",   "run_stalled",
    "run_stopped",    "skipped_held",   "store_clock_stepped",   "target_absent", "target_adopted",
    kTargetForgotten, "write_refused",  "write_would_be_refused"};

// "note" and "note_...": of other programs.
bool told_by_clients(std::string_view kind) {
  if (kind == "note" || kind.starts_with("note_")) return true;
  return std::ranges::find(kToldByClients, kind) != kToldByClients.end();
}

// What clients tell of: a kind of theirs, and names like those of leases.
Status check_told(const api::Event& event) {
  constexpr std::size_t kMostKind = 64;
  const bool plain = std::ranges::all_of(event.kind, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (event.kind.empty() || event.kind.size() > kMostKind || !plain) {
    return invalid(cat("the kind of an event is 1 to ", kMostKind, " small letters, digits and _"));
  }
  if (!told_by_clients(event.kind)) {
    return invalid(cat(quoted(event.kind),
                       " is no kind of event that a client has to tell of; for what others want on "
                       "record there is 'note' and 'note_...'"));
  }
  if (!event.resource.empty()) {
    if (auto name = ResourceName::parse(event.resource); !name) return name.error();
  }
  if (event.owner.empty()) return {};
  auto owner = Owner::parse(event.owner);
  return owner ? Status() : Status(owner.error());
}

// Nobody writes into the ledger under another's name, nor about what is out of reach.
Status sign(api::Event& event, const Caller& caller) {
  if (!caller.key) return {};
  if (event.resource.empty() || !caller.reaches(event.resource)) {
    return out_of_reach(caller, event.resource);
  }
  if (event.kind == kTargetForgotten && !caller.may(api::rights(api::Right::Operate))) {
    return Error{Code::Denied, "to have a target forgotten needs a key that allows 'operate'"};
  }
  auto owner = caller.owner(event.owner);
  if (!owner) return owner.error();
  event.owner = owner->text();
  const std::string mine = caller.name();
  std::erase_if(event.details, [](const api::Event::Detail& one) { return one.first == "key"; });
  for (auto& [name, value] : event.details) {
    if (name != "by") continue;
    const auto* by = std::get_if<std::string>(&value);
    const bool own = by != nullptr && (*by == mine || by->starts_with(mine + "/"));
    if (!own) value = by == nullptr || by->empty() ? mine : cat(mine, "/", *by);
  }
  event.details.emplace_back("key", mine);
  return {};
}

// A client's clock is taken as far as it is plausible: the ledger is read by its times.
WallTime plausible(WallTime told, WallTime now) {
  constexpr Millis kFarOff = std::chrono::minutes(5);
  return told < now - kFarOff || told > now + kFarOff ? now : told;
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

// Each store has its own width, with leading zeros: one that was cut off stands behind all others.
Status check_event_number(std::string_view text) {
  constexpr std::size_t kLeastDigits = 16;
  constexpr std::size_t kMostDigits = 32;
  const bool digits = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  const bool whole = text.size() >= kLeastDigits && text.size() <= kMostDigits;
  if (text.empty() || (digits && whole)) return {};
  return invalid(
      "where to go on ('after', Last-Event-ID) is the number of an event, as it was told");
}

Result<bool> is_newest(std::string_view text) {
  if (text.empty() || text == "false") return false;
  if (text == "true") return true;
  return invalid("'newest' is true or false");
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
  const std::string after = query_text(request, "after");
  if (auto fine = check_event_number(after); !fine) return fault_answer(fine.error());
  auto newest = is_newest(query_text(request, "newest"));
  if (!newest) return fault_answer(newest.error());
  auto events = request.events().list(
      {.after = after, .prefix = *prefix, .limit = *limit, .newest = *newest});
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
  if (auto fine = sign(*event, request.caller); !fine) return fault_answer(fine.error());
  event->at = plausible(event->at, request.clock.wall());
  auto done = target.empty() ? request.events().record(*event)
                             : request.events().record_refusal(*event, target);
  if (!done) return fault_answer(done.error());
  request.metrics.event(*event);
  return ok("{\"recorded\":true}");
}

Answer store_facts(Request& request) {
  const auto& trouble = request.serve.backend.trouble;
  const auto fields =
      std::vector<api::JsonField>{{"generation", request.leases().generation().hex()},
                                  {"smallest_ttl_ms", request.leases().smallest_ttl().count()},
                                  {"caveat", request.serve.caveat},
                                  {"trouble", trouble ? trouble() : std::string()},
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

}  // namespace stint::server
