#include "report/runs.h"

#include <algorithm>

#include "base/text.h"

namespace stint::report {
namespace {

api::JsonField duration_field(std::string name, Millis value) {
  return {std::move(name), value.count()};
}

}  // namespace

void add_grants(const std::vector<api::PastGrant>& grants, TuneInput& input) {
  for (const api::PastGrant& grant : grants) {
    if (!grant.ended || !grant.acquired_at || !grant.ended_at) continue;
    input.runs.push_back({.length = std::max(Millis(0), *grant.ended_at - *grant.acquired_at),
                          .clean = *grant.ended == core::Reason::Released});
  }
}

Status add_measures(api::Events& events, const std::string& resource, std::size_t limit,
                    TuneInput& input) {
  auto lines = events.list({.after = "", .prefix = resource, .limit = limit, .newest = true});
  if (!lines) return lines.error();
  for (const api::Event& event : *lines) {
    if (event.kind != "run_measured" || event.resource != resource) continue;
    for (const auto& [name, value] : event.details) {
      const auto* number = std::get_if<std::int64_t>(&value);
      if (number == nullptr) continue;
      if (name == "slack_ms") {
        input.least_slack = std::min(input.least_slack.value_or(Millis(*number)), Millis(*number));
      }
      if (name == "slept_ms" && *number > 0) ++input.suspends;
    }
  }
  return {};
}

std::vector<api::JsonField> tune_fields(const std::string& name, const TuneInput& input,
                                        const TuneReport& report) {
  std::string flags;
  for (const std::string& flag : report.flags) flags += cat(flags.empty() ? "" : "; ", flag);
  const bool advice = report.advised.ttl.count() > 0;
  const auto number = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  std::vector<api::JsonField> fields = {{"name", name},
                                        {"count", number(report.count)},
                                        {"unclean", number(report.unclean)},
                                        duration_field("p50_ms", report.p50),
                                        duration_field("p95_ms", report.p95),
                                        duration_field("p99_ms", report.p99),
                                        duration_field("worst_ms", report.worst),
                                        {"suspends", std::int64_t{report.suspends}},
                                        duration_field("ttl_ms", input.ttl),
                                        {"lost", number(report.present.lost)},
                                        {"waiting", number(report.present.waiting)}};
  fields.push_back(report.least_slack ? duration_field("slack_ms", *report.least_slack)
                                      : api::JsonField{"slack_ms", nullptr});
  if (advice) {
    fields.push_back(duration_field("advised_ttl_ms", report.advised.ttl));
    fields.emplace_back("advised_lost", number(report.advised.lost));
    fields.emplace_back("advised_waiting", number(report.advised.waiting));
    fields.push_back(duration_field("advised_renewed_ttl_ms", report.renewed_ttl));
    fields.push_back(duration_field("advised_heartbeat_ms", report.heartbeat));
  }
  if (report.backfill) fields.emplace_back("advised_max_backfill", number(*report.backfill));
  fields.emplace_back("flags", flags);
  return fields;
}

}  // namespace stint::report
