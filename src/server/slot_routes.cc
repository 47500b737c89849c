// Jobs and their slots; `stint once`.
#include "api/json.h"
#include "api/slots_json.h"
#include "base/json_text.h"
#include "base/text.h"
#include "server/routes.h"

namespace stint::server {
namespace {

constexpr std::size_t kMostSlots = 10'000;
constexpr std::size_t kMostAsks = 200;

Status reach_job(const Request& request, const std::string& job) {
  if (job.empty()) return invalid("'job' is missing");
  if (!request.caller.reaches(job)) return out_of_reach(request.caller, job);
  return {};
}

Result<std::string> asked_job(const Request& request) {
  std::string job = query_text(request, "job");
  if (auto fine = reach_job(request, job); !fine) return fine.error();
  return job;
}

Status nothing_else(JsonFields& in) {
  in.refuse_others();
  return in.done();
}

// Names of schedulers and of who ordered something.
Status check_name(std::string_view what, const std::string& text) {
  if (text.size() <= Owner::kMaxBytes && is_utf8(text) && !has_control(text)) return {};
  return invalid(cat(quoted(what), " is at most ", Owner::kMaxBytes, " bytes in one line"));
}

Result<core::JobRule> reachable_rule(const Request& request, const JsonValue& told) {
  auto rule = api::parse_rule(told, request.serve.backend.find_zone);
  if (!rule) return rule.error();
  if (auto fine = reach_job(request, rule->name); !fine) return fine.error();
  return rule;
}

// 'rule' as a scheduler has it; or 'job', by the rule that the store knows.
Result<core::JobRule> read_rule(const Request& request, JsonFields& in) {
  const JsonValue* told = in.find("rule");
  const std::string job = in.text("job");
  if (auto fine = in.done(); !fine) return fine.error();
  if ((told == nullptr) == job.empty()) return invalid("'job' or 'rule': one of them");
  if (told != nullptr) return reachable_rule(request, *told);
  if (auto fine = reach_job(request, job); !fine) return fine.error();
  auto known = request.slots().history(job, 1);
  if (!known) return known.error();
  if (!known->job) return invalid(cat("the store knows no job ", quoted(job)));
  return api::rule_of(job, *known->job, request.serve.backend.find_zone);
}

Result<api::Grip> read_slot_grip(const Request& request, JsonFields& in) {
  for (const char* name : {"resource", "token", "claim"}) in.require(name);
  const std::string name = in.text("resource");
  const Token token = in.token("token");
  const std::string claim_text = in.text("claim");
  if (auto fine = in.done(); !fine) return fine.error();
  auto resource = ResourceName::parse(name);
  if (!resource) return resource.error();
  if (!request.caller.reaches(name)) return out_of_reach(request.caller, name);
  auto claim = Claim::parse(claim_text);
  if (!claim) return std::move(claim.error()).during("reading 'claim'");
  return api::Grip{*resource, token, *claim, std::nullopt, std::nullopt};
}

Result<api::SlotProof> read_proof(const Request& request, JsonFields& in) {
  for (const char* name : {"job", "at_ms", "owner"}) in.require(name);
  const std::string job = in.text("job");
  const auto at = in.moment("at_ms");
  const std::int64_t attempt = in.maybe_number("attempt").value_or(1);
  const std::string scheduler = in.text("scheduler");
  const std::string label = in.text("owner");
  constexpr std::int64_t kMostAttempts = 1'000'000;
  if (attempt < 1 || attempt > kMostAttempts) in.fail("'attempt' is no number of an attempt");
  if (auto fine = in.done(); !fine) return fine.error();
  if (auto fine = reach_job(request, job); !fine) return fine.error();
  if (auto fine = check_name("scheduler", scheduler); !fine) return fine.error();
  auto grip = read_slot_grip(request, in);
  if (!grip) return grip.error();
  auto owner = request.caller.owner(label);
  if (!owner) return owner.error();
  return api::SlotProof{.job = job,
                        .at = *at,
                        .attempt = static_cast<int>(attempt),
                        .scheduler = scheduler,
                        .owner = *owner,
                        .grip = std::move(*grip)};
}

Answer gone() {
  return error_answer(status_of(Code::Lost),
                      {Code::Lost,
                       "it is another's or has ended, or the lease is lost: nothing "
                       "was changed"});
}

Answer step_answer(const Result<api::StepAnswer>& step) {
  if (!step) return fault_answer(step.error());
  return *step == api::StepAnswer::Done ? ok("{\"done\":true}") : gone();
}

Answer end_answer(Request& request, const Result<api::EndAnswer>& end) {
  if (!end) return fault_answer(end.error());
  if (end->step == api::StepAnswer::Gone) return gone();
  request.metrics.slot_ended(end->state);
  return ok(api::to_json(*end));
}

using SlotVerb = Result<api::StepAnswer> (api::Slots::*)(const api::SlotProof&);

Answer step(Request& request, SlotVerb verb) {
  JsonFields in(request.body);
  auto proof = read_proof(request, in);
  if (!proof) return fault_answer(proof.error());
  if (auto fine = nothing_else(in); !fine) return fault_answer(fine.error());
  return step_answer((request.slots().*verb)(*proof));
}

// The next few, in milliseconds as text.
std::vector<std::string> next_times(const core::JobRule& rule, WallTime now) {
  constexpr std::size_t kTold = 5;
  std::vector<std::string> out;
  auto after = core::whole_seconds(now);
  while (out.size() < kTold) {
    const auto next = core::next_time(rule.expression, rule.zone, after, core::Bound::Exclusive);
    if (!next) break;
    after = next->instant;
    out.push_back(cat(to_ms(core::wall_of(after))));
  }
  return out;
}

std::string job_row(const Request& request, const api::NamedJob& one, WallTime now) {
  std::string out = cat("{\"job\":", json_quoted(one.name));
  std::string whole = api::to_json(one.job);
  out += cat(",", whole.substr(1, whole.size() - 2));
  if (!one.job.paused) out += ",\"paused\":false";
  const auto rule = api::rule_of(one.name, one.job, request.serve.backend.find_zone);
  const std::vector<std::string> next = rule ? next_times(*rule, now) : std::vector<std::string>();
  std::string list;
  for (const std::string& at : next) list += cat(list.empty() ? "" : ",", at);
  return cat(out, ",\"next_at_ms\":", next.empty() ? "null" : next.front(), ",\"next_ms\":[", list,
             "]}");
}

Answer change(Request& request,
              Status (api::Slots::*what)(const core::JobRule&, const std::string&),
              std::string_view done) {
  JsonFields in(request.body);
  auto rule = read_rule(request, in);
  if (!rule) return fault_answer(rule.error());
  std::string by = in.text("by");
  if (auto fine = nothing_else(in); !fine) return fault_answer(fine.error());
  if (auto fine = check_name("by", by); !fine) return fault_answer(fine.error());
  if (request.caller.key) {
    auto owner = request.caller.owner(by.empty() ? "operator" : by);
    if (!owner) return fault_answer(owner.error());
    by = owner->text();
  }
  if (auto changed = (request.slots().*what)(*rule, by); !changed) {
    return fault_answer(changed.error());
  }
  return ok(std::string(done));
}

Answer added_answer(const Result<api::SlotAdded>& added) {
  if (!added) return fault_answer(added.error());
  return ok(api::to_json(*added));
}

}  // namespace

Answer list_jobs(Request& request) {
  auto all = request.slots().jobs();
  if (!all) return fault_answer(all.error());
  auto now = request.slots().now();
  if (!now) return fault_answer(now.error());
  std::string rows;
  for (const api::NamedJob& one : *all) {
    if (!request.caller.reaches(one.name)) continue;
    rows += cat(rows.empty() ? "" : ",", job_row(request, one, *now));
  }
  return ok(cat("{\"jobs\":[", rows, "]}"));
}

Answer list_open_jobs(Request& request) {
  auto all = request.slots().open_jobs();
  if (!all) return fault_answer(all.error());
  std::erase_if(*all, [&](const std::string& name) { return !request.caller.reaches(name); });
  return ok(cat("{\"jobs\":", api::to_json(*all), "}"));
}

Answer job_clock(Request& request) {
  auto now = request.slots().now();
  if (!now) return fault_answer(now.error());
  return ok(cat("{\"now_ms\":", to_ms(*now),
                ",\"own_clock\":", request.slots().own_clock() ? "true" : "false", "}"));
}

Answer list_slots(Request& request) {
  auto job = asked_job(request);
  if (!job) return fault_answer(job.error());
  auto limit = query_limit(request, 50, kMostSlots);
  if (!limit) return fault_answer(limit.error());
  auto slots = request.serve.backend.list_slots(*job, *limit);
  if (!slots) return fault_answer(slots.error());
  return ok(cat("{\"slots\":", api::to_json(*slots), "}"));
}

Answer job_history(Request& request) {
  auto job = asked_job(request);
  if (!job) return fault_answer(job.error());
  auto limit = query_limit(request, 50, 100'000);
  if (!limit) return fault_answer(limit.error());
  auto history = request.slots().history(*job, *limit);
  if (!history) return fault_answer(history.error());
  return ok(api::to_json(*history));
}

Answer decide_jobs(Request& request) {
  JsonFields in(request.body);
  in.require("scheduler");
  const std::string scheduler = in.text("scheduler");
  const JsonValue* list = in.find("asks");
  if (auto fine = nothing_else(in); !fine) return fault_answer(fine.error());
  if (auto fine = check_name("scheduler", scheduler); !fine) return fault_answer(fine.error());
  if (list == nullptr || list->if_list() == nullptr || list->if_list()->empty() ||
      list->if_list()->size() > kMostAsks) {
    return fault_answer(invalid(cat("'asks' is a list of 1 to ", kMostAsks)));
  }
  std::vector<core::JobRule> rules;
  std::vector<bool> held_back;
  rules.reserve(list->if_list()->size());
  for (const JsonValue& one : *list->if_list()) {
    JsonFields ask(one);
    const JsonValue* told = ask.find("rule");
    held_back.push_back(ask.flag("held_back"));
    if (told == nullptr) ask.fail("'rule' is missing");
    if (auto fine = nothing_else(ask); !fine) return fault_answer(fine.error());
    auto rule = reachable_rule(request, *told);
    if (!rule) return fault_answer(rule.error());
    rules.push_back(std::move(*rule));
  }
  std::vector<api::DecideAsk> asks;
  for (std::size_t i = 0; i < rules.size(); ++i) asks.push_back({&rules[i], held_back[i]});
  std::string out;
  for (const auto& one : request.slots().decide(asks, scheduler)) {
    if (one) {
      for (const core::EndedSlot& ended : one->ended) request.metrics.slot_ended(ended.state);
    }
    out += cat(out.empty() ? "" : ",", one ? api::to_json(*one) : api::to_json(one.error()));
  }
  return ok(cat("{\"results\":[", out, "]}"));
}

Answer keep_job(Request& request) {
  JsonFields in(request.body);
  const std::string job = in.text("job");
  if (auto fine = nothing_else(in); !fine) return fault_answer(fine.error());
  if (auto fine = reach_job(request, job); !fine) return fault_answer(fine.error());
  if (auto kept = request.slots().keep(job); !kept) return fault_answer(kept.error());
  return ok("{\"done\":true}");
}

Answer claim_slot(Request& request) { return step(request, &api::Slots::claim); }
Answer start_slot(Request& request) { return step(request, &api::Slots::start); }
Answer running_slot(Request& request) { return step(request, &api::Slots::running); }
Answer hand_back_slot(Request& request) { return step(request, &api::Slots::hand_back); }

Answer end_slot(Request& request) {
  JsonFields in(request.body);
  auto proof = read_proof(request, in);
  if (!proof) return fault_answer(proof.error());
  const core::SlotEnd end = api::read_slot_end(in);
  const JsonValue* told = in.find("rule");
  if (told == nullptr) in.fail("'rule' is missing");
  if (auto fine = nothing_else(in); !fine) return fault_answer(fine.error());
  auto rule = reachable_rule(request, *told);
  if (!rule) return fault_answer(rule.error());
  return end_answer(request, request.slots().end(*proof, end, *rule));
}

Answer skip_slot(Request& request) {
  auto skip = api::parse_skip(request.body);
  if (!skip) return fault_answer(skip.error());
  if (auto fine = reach_job(request, skip->job); !fine) return fault_answer(fine.error());
  if (auto fine = check_name("scheduler", skip->scheduler); !fine) {
    return fault_answer(fine.error());
  }
  if (skip->by) {
    // It goes into the ledger: nobody writes there about what is out of reach.
    auto name = ResourceName::parse(skip->by->resource);
    if (!name) return fault_answer(std::move(name.error()).during("reading 'by'"));
    if (!request.caller.reaches(name->text())) {
      return fault_answer(out_of_reach(request.caller, name->text()));
    }
  }
  return end_answer(request, request.slots().skip(*skip));
}

Answer add_slot(Request& request) {
  JsonFields in(request.body);
  const JsonValue* told = in.find("rule");
  const JsonValue* meant = in.find("slot");
  const std::string scheduler = in.text("scheduler");
  if (told == nullptr) in.fail("'rule' is missing");
  if (auto fine = nothing_else(in); !fine) return fault_answer(fine.error());
  if (auto fine = check_name("scheduler", scheduler); !fine) return fault_answer(fine.error());
  auto rule = reachable_rule(request, *told);
  if (!rule) return fault_answer(rule.error());
  std::optional<core::Slot> slot;
  if (meant != nullptr) {
    auto parsed = api::parse_slot(*meant);
    if (!parsed) return fault_answer(parsed.error());
    slot = *parsed;
  }
  return added_answer(request.slots().add(*rule, slot, scheduler));
}

Answer trigger_job(Request& request) {
  JsonFields in(request.body);
  auto rule = read_rule(request, in);
  if (!rule) return fault_answer(rule.error());
  if (auto fine = nothing_else(in); !fine) return fault_answer(fine.error());
  return added_answer(request.slots().add(*rule, std::nullopt, ""));
}

Answer pause_job(Request& request) {
  return change(request, &api::Slots::pause, "{\"paused\":true}");
}
Answer resume_job(Request& request) {
  return change(request, &api::Slots::resume, "{\"paused\":false}");
}

// ---- stint once

namespace {

Result<std::string> reachable_once(const Request& request, std::string key) {
  if (key.empty()) return invalid("'key' is missing");
  const std::string resource = api::once_resource(key);
  if (!request.caller.reaches(resource)) return out_of_reach(request.caller, resource);
  return key;
}

struct OnceGrip {
  std::string key;
  api::Grip grip;
};

Result<OnceGrip> read_once_grip(const Request& request, JsonFields& in) {
  auto key = reachable_once(request, in.text("key"));
  if (!key) return key.error();
  auto grip = read_slot_grip(request, in);
  if (!grip) return grip.error();
  if (grip->resource.text() != api::once_resource(*key)) {
    return invalid("'resource' is not the key's own");
  }
  return OnceGrip{std::move(*key), std::move(*grip)};
}

}  // namespace

Answer get_once(Request& request) {
  auto key = reachable_once(request, query_text(request, "key"));
  if (!key) return fault_answer(key.error());
  auto record = request.slots().once(*key);
  if (!record) return fault_answer(record.error());
  return ok(api::to_json(*record));
}

Answer start_once(Request& request) {
  JsonFields in(request.body);
  auto shown = read_once_grip(request, in);
  if (!shown) return fault_answer(shown.error());
  in.require("owner");
  const std::string label = in.text("owner");
  if (auto fine = nothing_else(in); !fine) return fault_answer(fine.error());
  auto owner = request.caller.owner(label);
  if (!owner) return fault_answer(owner.error());
  return step_answer(request.slots().once_start(shown->key, shown->grip, *owner));
}

Answer end_once(Request& request) {
  JsonFields in(request.body);
  auto shown = read_once_grip(request, in);
  if (!shown) return fault_answer(shown.error());
  in.require("exit_code");
  const std::int64_t code = in.number("exit_code");
  if (code < -1000 || code > 1000) in.fail("'exit_code' is no exit code");
  if (auto fine = nothing_else(in); !fine) return fault_answer(fine.error());
  return step_answer(request.slots().once_end(shown->key, shown->grip, static_cast<int>(code)));
}

}  // namespace stint::server
