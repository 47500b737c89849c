// What is found out by trying: what an outage would do to a job, and whether the store is well.
#include "api/json.h"
#include "api/slots_json.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "server/routes.h"

namespace stint::server {
namespace {

constexpr std::size_t kMostForetold = 1000;

Result<WallTime> query_moment(const Request& request, const std::string& name) {
  constexpr std::uint64_t kYear9999 = 253'402'300'799'999;
  const auto number = parse_digits(query_text(request, name));
  if (!number || *number > kYear9999) {
    return invalid(cat(quoted(name), " is no time in milliseconds since 1970"));
  }
  return wall_from_ms(static_cast<std::int64_t>(*number));
}

Result<api::Outage> query_outage(const Request& request) {
  auto from = query_moment(request, "from_ms");
  if (!from) return from.error();
  auto to = query_moment(request, "to_ms");
  if (!to) return to.error();
  if (*to < *from) return invalid("the outage ends before it begins");
  return api::Outage{*from, *to};
}

std::string slots_of(const api::Foretold& told) {
  std::vector<std::vector<api::JsonField>> rows;
  for (const api::SlotView& view : told.slots) {
    const bool runs = view.state == core::SlotState::Due;
    rows.push_back({{"slot", format_local(view.slot.nominal)},
                    {"at_ms", to_ms(view.slot.at)},
                    {"key", core::slot_key(view.job, view.slot.at)},
                    {"state", runs ? std::string("runs") : std::string(core::word(view.state))},
                    {"backfill", view.slot.backfill}});
  }
  return api::to_json(rows);
}

// Without its brace, so that more can follow.
std::string open_object(const std::vector<api::JsonField>& fields) {
  std::string out = api::to_json(fields);
  out.pop_back();
  return out;
}

// What is found is of the whole store, and trying it costs all who use it: a key for one prefix is
// not enough.
Answer doctor(const Request& request, const std::function<Examined()>& look) {
  const Caller& caller = request.caller;
  if (caller.key && !caller.key->prefixes.empty() && !caller.may(api::rights(api::Right::Admin))) {
    return fault_answer(Error{Code::Denied, cat("the key ", quoted(caller.name()),
                                                " reaches a part of the store alone: to examine it "
                                                "needs 'admin', or 'operate' without a prefix")});
  }
  if (!look) return fault_answer(unavailable("this server does not examine its store"));
  const Examined seen = look();
  std::vector<std::vector<api::JsonField>> rows;
  for (const Examined::Finding& one : seen.findings) {
    rows.push_back({{"check", one.check}, {"level", one.level}, {"text", one.text}});
  }
  std::vector<api::JsonField> fields = {{"running", seen.running}};
  if (seen.began_at) fields.emplace_back("began_at_ms", to_ms(*seen.began_at));
  if (seen.ended_at) fields.emplace_back("ended_at_ms", to_ms(*seen.ended_at));
  if (!seen.fault.empty()) fields.emplace_back("fault", seen.fault);
  return ok(cat(open_object(fields), ",\"findings\":", api::to_json(rows), "}"));
}

}  // namespace

Answer explain_job(Request& request) {
  const std::string job = query_text(request, "job");
  if (!request.caller.reaches(job)) return fault_answer(out_of_reach(request.caller, job));
  auto outage = query_outage(request);
  if (!outage) return fault_answer(outage.error());
  auto limit = query_limit(request, 100, kMostForetold);
  if (!limit) return fault_answer(limit.error());
  auto history = request.slots().history(job, 1);
  if (!history) return fault_answer(history.error());
  if (!history->job) return fault_answer(invalid(cat("the store knows no job ", quoted(job))));
  const core::Job& known = *history->job;
  auto rule = api::rule_of(job, known, request.serve.backend.find_zone);
  if (!rule) return fault_answer(rule.error());
  if (!request.serve.backend.explain) {
    return fault_answer(unavailable("this server does not foretell"));
  }
  const api::Foretold told = request.serve.backend.explain(*rule, *outage, *limit, known.paused);
  const auto all = static_cast<std::int64_t>(told.slots.size() + told.left_out);
  const auto runs = static_cast<std::int64_t>(told.would_run);
  std::vector<api::JsonField> fields = {
      {"job", job},
      {"from_ms", to_ms(outage->from)},
      {"to_ms", to_ms(outage->to)},
      {"paused", known.paused},
      {"max_backfill", static_cast<std::int64_t>(rule->max_backfill)},
      {"supposed", !known.policy.has_value()},
      {"would_run", runs},
      {"would_skip", all - runs},
      {"left_out", static_cast<std::int64_t>(told.left_out)}};
  if (rule->start_deadline) {
    fields.emplace_back("start_deadline_ms", std::int64_t{rule->start_deadline->count()});
  }
  return ok(cat(open_object(fields), ",\"slots\":", slots_of(told), "}"));
}

Answer get_doctor(Request& request) { return doctor(request, request.serve.backend.examined); }

Answer begin_doctor(Request& request) {
  JsonFields in(request.body);
  in.refuse_others();
  if (auto fine = in.done(); !fine) return fault_answer(fine.error());
  return doctor(request, request.serve.backend.examine);
}

}  // namespace stint::server
