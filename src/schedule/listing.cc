#include "schedule/listing.h"

#include <algorithm>
#include <map>

#include "base/rfc3339.h"
#include "base/text.h"

namespace stint::schedule {
namespace {

using std::chrono::sys_seconds;

api::SlotView view_of(const std::string& job, const core::Slot& slot, core::SlotState state) {
  api::SlotView view;
  view.job = job;
  view.slot = slot;
  view.state = state;
  return view;
}

api::SlotView view_of(const std::string& job, const core::EndedSlot& ended) {
  api::SlotView view = view_of(job, ended.slot, ended.state);
  view.owner = ended.owner.text();
  view.resource = ended.resource;
  view.token = ended.token;
  view.started_at = ended.started_at;
  view.ended_at = ended.ended_at;
  view.exit_code = ended.exit_code;
  view.cause = ended.cause;
  return view;
}

// Backwards, and no more than are wanted: a range may have millions.
void add_range(std::vector<api::SlotView>& out, const std::string& job,
               const core::CronExpression& expression, const core::Zone& zone,
               const core::SlotRange& range, std::size_t limit) {
  auto at =
      core::previous_time(expression, zone, core::whole_seconds(range.to), core::Bound::Inclusive);
  while (at && core::wall_of(at->instant) >= range.from && limit-- > 0) {
    core::Slot slot{.at = core::wall_of(at->instant), .nominal = at->nominal};
    out.push_back(view_of(job, slot, range.reason));
    out.back().cause = range.cause;
    at = core::previous_time(expression, zone, at->instant, core::Bound::Exclusive);
  }
}

void keep_newest(std::vector<api::SlotView>& views, std::size_t limit) {
  std::ranges::stable_sort(views, {}, [](const api::SlotView& view) { return view.slot.at; });
  if (views.size() > limit) {
    views.erase(views.begin(), views.end() - static_cast<std::ptrdiff_t>(limit));
  }
}

}  // namespace

Result<std::vector<api::SlotView>> list_slots(const std::string& job,
                                              const api::JobHistory& history, std::size_t limit,
                                              const FindZone& find_zone) {
  std::vector<api::SlotView> out;
  for (const core::EndedSlot& ended : history.ended) out.push_back(view_of(job, ended));
  for (const api::RangeRow& row : history.ranges) {
    auto expression = core::parse_cron(row.schedule);
    if (!expression) return expression.error();
    const std::string name = !expression->zone.empty() ? expression->zone
                             : row.tz.empty()          ? "UTC"
                                                       : row.tz;
    auto zone = find_zone(name);
    if (!zone) return zone.error();
    add_range(out, job, *expression, *zone, row.range, limit);
  }
  if (history.job) {
    for (const core::Slot& slot : history.job->due) {
      out.push_back(view_of(job, slot, core::SlotState::Due));
    }
    if (const auto& active = history.job->active) {
      api::SlotView view = view_of(job, active->slot, active->state);
      view.owner = active->owner.text();
      view.resource = active->resource;
      view.token = active->token;
      view.started_at = active->started_at;
      out.push_back(std::move(view));
    }
  }
  keep_newest(out, limit);
  return out;
}

namespace {

// "23:00", "07:12:30"
std::optional<std::chrono::seconds> time_of_day(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  std::int64_t total = 0;
  constexpr std::uint64_t kLimits[] = {24, 60, 60};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto n = i < parts.size() ? parse_digits(parts[i]) : std::optional<std::uint64_t>(0);
    if (!n || *n >= kLimits[i]) return std::nullopt;
    total = total * 60 + static_cast<std::int64_t>(*n);
  }
  return std::chrono::seconds(total);
}

// The first instant after `from` at which the zone's clock shows that time of day.
WallTime next_at(std::chrono::seconds time, const core::Zone& zone, WallTime from) {
  core::CronExpression daily;
  const std::int64_t s = time.count();
  daily.seconds = std::uint64_t{1} << (s % 60);
  daily.minutes = std::uint64_t{1} << (s / 60 % 60);
  daily.hours = std::uint64_t{1} << (s / 3600);
  constexpr std::uint64_t kTwelve = 0x1FFE;
  daily.months = kTwelve;
  daily.any_day = true;
  daily.any_weekday = true;
  const auto found =
      core::next_time(daily, zone, core::whole_seconds(from), core::Bound::Exclusive);
  return found ? core::wall_of(found->instant) : from;
}

}  // namespace

Result<Outage> parse_outage(std::string_view text, const core::Zone& zone, WallTime now) {
  const std::size_t dots = text.find("..");
  const Error wrong = invalid(
      cat("--down ", quoted(text),
          " is not a stretch of time; write 23:00..07:12, or two times like 2026-11-15T23:00:00Z"));
  if (dots == std::string_view::npos) return wrong;
  Outage out;
  const std::string_view first = text.substr(0, dots);
  const std::string_view last = text.substr(dots + 2);
  if (const auto from = time_of_day(first)) {
    out.from = next_at(*from, zone, now);
  } else if (const auto exact = parse_rfc3339(first)) {
    out.from = *exact;
  } else {
    return wrong;
  }
  if (const auto to = time_of_day(last)) {
    out.to = next_at(*to, zone, out.from);
  } else if (const auto exact = parse_rfc3339(last)) {
    out.to = *exact;
  } else {
    return wrong;
  }
  if (out.to < out.from) return invalid(cat("--down ", quoted(text), " ends before it begins"));
  return out;
}

Foretold foretell(const core::JobRule& rule, const Outage& outage, std::size_t limit, bool paused) {
  core::JobSight sight;
  sight.scheduler = "explain";
  sight.now = outage.from;
  core::Job before = core::decide_job(std::nullopt, rule, sight).after;
  before.paused = paused;
  sight.now = outage.to;
  const core::JobDecision decision = core::decide_job(before, rule, sight);
  Foretold out;
  std::uint64_t all = 0;
  for (const core::Slot& slot : decision.after.due) {
    out.slots.push_back(view_of(rule.name, slot, core::SlotState::Due));
    ++all;
  }
  for (const core::SlotRange& range : decision.dropped) {
    add_range(out.slots, rule.name, rule.expression, rule.zone, range, limit);
    all += range.count;
  }
  out.would_run = decision.after.due.size();
  keep_newest(out.slots, limit);
  out.left_out = all - out.slots.size();
  return out;
}

}  // namespace stint::schedule
