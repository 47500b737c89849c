// Jobs and slots, read back.
#include <algorithm>

#include "api/slots_json.h"
#include "api/wire.h"
#include "base/text.h"

namespace stint::api {
namespace {

template <class T>
Result<T> all_of(const JsonFields& in, T value) {
  if (auto ok = in.done(); !ok) return ok.error();
  return value;
}

int small_number(JsonFields& in, std::string_view name, int otherwise) {
  const auto number = in.maybe_number(name);
  if (!number) return otherwise;
  constexpr std::int64_t kMost = 1'000'000;
  if (*number < -kMost || *number > kMost) in.fail(cat(quoted(name), " is out of bounds"));
  return static_cast<int>(*number);
}

WallTime required_moment(JsonFields& in, std::string_view name) {
  in.require(name);
  return in.moment(name).value_or(WallTime{});
}

core::SlotState read_state(JsonFields& in, std::string_view name) {
  const auto state = core::parse_slot_state(in.text(name));
  if (!state) in.fail(cat(quoted(name), " is no state of a slot"));
  return state.value_or(core::SlotState::Lost);
}

core::Slot read_slot(JsonFields& in) {
  core::Slot slot{.at = required_moment(in, "at_ms")};
  slot.nominal = std::chrono::local_seconds(std::chrono::seconds(in.number("nominal_s")));
  slot.attempt = small_number(in, "attempt", 1);
  slot.crashes = small_number(in, "crashes", 0);
  slot.backfill = in.flag("backfill");
  slot.manual = in.flag("manual");
  slot.not_before = in.moment("not_before_ms");
  if (slot.attempt < 1) in.fail("'attempt' is not the number of an attempt");
  return slot;
}

core::SlotRange read_range(JsonFields& in) {
  core::SlotRange range{.from = required_moment(in, "from_ms"), .to = required_moment(in, "to_ms")};
  range.count = static_cast<std::uint64_t>(std::max<std::int64_t>(in.number("count"), 0));
  range.reason = read_state(in, "reason");
  range.cause = in.text("cause");
  return range;
}

Result<core::SlotRange> parse_range(const JsonValue& value) {
  JsonFields in(value);
  core::SlotRange range = read_range(in);
  return all_of(in, range);
}

Result<RangeRow> parse_range_row(const JsonValue& value) {
  JsonFields in(value);
  RangeRow row{.range = read_range(in), .schedule = in.text("schedule"), .tz = in.text("tz")};
  return all_of(in, std::move(row));
}

Result<core::ActiveSlot> parse_active(const JsonValue& value) {
  JsonFields in(value);
  core::ActiveSlot active;
  active.slot = read_slot(in);
  active.state = read_state(in, "state");
  active.owner = in.owner("owner");
  active.resource = in.text("resource");
  active.token = in.token("token");
  active.started_at = in.moment("started_at_ms");
  return all_of(in, std::move(active));
}

Result<core::EndedSlot> parse_ended(const JsonValue& value) {
  JsonFields in(value);
  core::EndedSlot ended;
  ended.slot = read_slot(in);
  ended.state = read_state(in, "state");
  ended.owner = in.owner("owner");
  ended.resource = in.text("resource");
  ended.token = in.token("token");
  ended.started_at = in.moment("started_at_ms");
  ended.ended_at = in.moment("ended_at_ms");
  if (in.find("exit_code") != nullptr) ended.exit_code = small_number(in, "exit_code", 0);
  ended.cause = in.text("cause");
  return all_of(in, std::move(ended));
}

template <class T, class Parse>
Result<std::vector<T>> parse_list(JsonFields& in, std::string_view name, Parse parse) {
  std::vector<T> out;
  const JsonValue* list = in.find(name);
  if (list == nullptr) return out;
  if (list->if_list() == nullptr) return invalid(cat(quoted(name), " is not a list"));
  for (const JsonValue& one : *list->if_list()) {
    auto parsed = parse(one);
    if (!parsed) return parsed.error();
    out.push_back(std::move(*parsed));
  }
  return out;
}

Result<core::JobRule> completed(core::JobRule rule, const FindZone& find_zone) {
  auto expression = core::parse_cron(rule.schedule);
  if (!expression) return expression.error();
  const std::string name = core::zone_name(*expression, rule.tz);
  auto zone = find_zone(name);
  if (!zone) return zone.error();
  rule.expression = std::move(*expression);
  rule.zone = std::move(*zone);
  if (rule.digest.empty()) rule.digest = core::schedule_digest(rule.schedule, name);
  return rule;
}

}  // namespace

Result<core::Slot> parse_slot(const JsonValue& value) {
  JsonFields in(value);
  core::Slot slot = read_slot(in);
  return all_of(in, slot);
}

Result<core::Job> parse_job(const JsonValue& value) {
  JsonFields in(value);
  core::Job job;
  job.schedule = in.text("schedule");
  job.tz = in.text("tz");
  job.digest = in.text("digest");
  job.loaded_at = required_moment(in, "loaded_at_ms");
  job.cursor = required_moment(in, "cursor_ms");
  job.decided_at = required_moment(in, "decided_at_ms");
  job.paused = in.flag("paused");
  job.due_by = in.text("due_by");
  job.last_resource = in.text("last_resource");
  job.last_token = in.token("last_token");
  job.rows = static_cast<std::uint64_t>(std::max<std::int64_t>(in.number("rows"), 0));
  job.forgotten = in.moment("forgotten_ms").value_or(WallTime::min());
  auto due = parse_list<core::Slot>(in, "due", parse_slot);
  if (!due) return due.error();
  job.due = std::move(*due);
  if (const JsonValue* inner = in.find("active")) {
    auto active = parse_active(*inner);
    if (!active) return active.error();
    job.active = std::move(*active);
  }
  if (const JsonValue* inner = in.find("policy")) {
    JsonFields told(*inner);
    core::MissedPolicy policy;
    policy.max_backfill =
        static_cast<std::size_t>(std::max<std::int64_t>(told.number("max_backfill"), 0));
    policy.start_deadline = told.maybe_millis("start_deadline_ms");
    policy.waits = told.flag("waits");
    policy.retries = small_number(told, "retries", 0);
    policy.backoff = told.maybe_millis("backoff_ms").value_or(Millis(0));
    policy.loaded_at = required_moment(told, "loaded_at_ms");
    if (auto fine = told.done(); !fine) return fine.error();
    job.policy = policy;
  }
  if (const JsonValue* inner = in.find("pause")) {
    auto pause = parse_range(*inner);
    if (!pause) return pause.error();
    job.pause = *pause;
  }
  return all_of(in, std::move(job));
}

Result<Decided> parse_decided(const JsonValue& value) {
  JsonFields in(value);
  const JsonValue* inner = in.find("job");
  if (inner == nullptr) return invalid("'job' is missing");
  auto job = parse_job(*inner);
  if (!job) return job.error();
  auto ended = parse_list<core::EndedSlot>(in, "ended", parse_ended);
  if (!ended) return ended.error();
  auto retried = parse_list<core::EndedSlot>(in, "retried", parse_ended);
  if (!retried) return retried.error();
  auto dropped = parse_list<core::SlotRange>(in, "dropped", parse_range);
  if (!dropped) return dropped.error();
  Decided out{.config_differs = in.flag("config_differs"),
              .mine = in.flag("mine"),
              .schedule_changed = in.flag("schedule_changed"),
              .now = required_moment(in, "now_ms"),
              .job = std::move(*job),
              .ended = std::move(*ended),
              .retried = std::move(*retried),
              .dropped = std::move(*dropped)};
  return all_of(in, std::move(out));
}

Result<EndAnswer> parse_end(const JsonValue& value) {
  JsonFields in(value);
  EndAnswer out{
      .step = StepAnswer::Done, .state = read_state(in, "state"), .again = in.flag("again")};
  return all_of(in, out);
}

Result<SlotAdded> parse_added(const JsonValue& value) {
  JsonFields in(value);
  const std::string what = in.text("what");
  SlotAdded out;
  bool known = false;
  for (const auto one : {SlotAdded::What::Added, SlotAdded::What::Open, SlotAdded::What::Ended,
                         SlotAdded::What::ConfigDiffers}) {
    if (word(one) != what) continue;
    out.what = one;
    known = true;
  }
  if (!known) in.fail("'what' is none");
  out.at = required_moment(in, "at_ms");
  if (const JsonValue* inner = in.find("job")) {
    auto job = parse_job(*inner);
    if (!job) return job.error();
    out.job = std::move(*job);
  }
  if (const JsonValue* inner = in.find("ended")) {
    auto ended = parse_ended(*inner);
    if (!ended) return ended.error();
    out.ended = std::move(*ended);
  }
  return all_of(in, std::move(out));
}

Result<JobHistory> parse_history(const JsonValue& value) {
  JsonFields in(value);
  JobHistory out;
  if (const JsonValue* inner = in.find("job")) {
    auto job = parse_job(*inner);
    if (!job) return job.error();
    out.job = std::move(*job);
  }
  auto ended = parse_list<core::EndedSlot>(in, "ended", parse_ended);
  if (!ended) return ended.error();
  auto ranges = parse_list<RangeRow>(in, "ranges", parse_range_row);
  if (!ranges) return ranges.error();
  out.ended = std::move(*ended);
  out.ranges = std::move(*ranges);
  return all_of(in, std::move(out));
}

Result<OnceRecord> parse_once_record(const JsonValue& value) {
  JsonFields in(value);
  OnceRecord out;
  const std::string state = in.text("state");
  bool known = false;
  for (const auto one : {OnceRecord::State::None, OnceRecord::State::Started,
                         OnceRecord::State::Done, OnceRecord::State::Failed}) {
    if (word(one) != state) continue;
    out.state = one;
    known = true;
  }
  if (!known) in.fail("'state' is none");
  out.owner = in.owner("owner");
  out.token = in.token("token");
  out.started_at = in.moment("started_at_ms");
  out.ended_at = in.moment("ended_at_ms");
  if (in.find("exit_code") != nullptr) out.exit_code = small_number(in, "exit_code", 0);
  return all_of(in, std::move(out));
}

Result<SlotSkip> parse_skip(const JsonValue& value) {
  JsonFields in(value);
  SlotSkip out{.job = in.text("job"),
               .at = required_moment(in, "at_ms"),
               .attempt = small_number(in, "attempt", 1),
               .scheduler = in.text("scheduler"),
               .why = read_state(in, "state"),
               .by = std::nullopt};
  if (const JsonValue* inner = in.find("by")) {
    auto lease = parse_lease(*inner);
    if (!lease) return lease.error();
    out.by = std::move(*lease);
  }
  // One that cannot be started has failed, without having run.
  if (!core::is_skip(out.why) && out.why != core::SlotState::Failed) {
    in.fail("'state' of a skip is failed or one of skipped_...");
  }
  in.refuse_others();
  return all_of(in, std::move(out));
}

core::SlotEnd read_slot_end(JsonFields& fields) {
  core::SlotEnd end{.state = read_state(fields, "state"), .cause = fields.text("cause")};
  if (fields.find("exit_code") != nullptr) end.exit_code = small_number(fields, "exit_code", 0);
  const bool ends = end.state == core::SlotState::Ran || end.state == core::SlotState::Failed ||
                    end.state == core::SlotState::Lost;
  if (!ends) fields.fail("'state' of an end is ran, failed or lost");
  return end;
}

Result<core::JobRule> parse_rule(const JsonValue& value, const FindZone& find_zone) {
  JsonFields in(value);
  in.require("name");
  in.require("schedule");
  core::JobRule rule;
  rule.name = in.text("name");
  rule.schedule = in.text("schedule");
  rule.tz = in.text("tz");
  rule.digest = in.text("digest");
  rule.loaded_at = required_moment(in, "loaded_at_ms");
  const int backfill = small_number(in, "max_backfill", 1);
  rule.newest_first = in.flag("newest_first");
  rule.waits = in.flag("waits");
  rule.retries = small_number(in, "retries", 0);
  rule.backoff = in.millis("backoff_ms");
  rule.start_deadline = in.maybe_millis("start_deadline_ms");
  if (backfill < 0 || static_cast<std::size_t>(backfill) > core::kMostBackfill) {
    in.fail(cat("'max_backfill' is 0 to ", core::kMostBackfill));
  }
  if (rule.retries < 0) in.fail("'retries' is not negative");
  in.refuse_others();
  if (auto ok = in.done(); !ok) return ok.error();
  rule.max_backfill = static_cast<std::size_t>(backfill);
  return completed(std::move(rule), find_zone);
}

Result<core::JobRule> rule_of(const std::string& name, const core::Job& job,
                              const FindZone& find_zone) {
  core::JobRule rule;
  rule.name = name;
  rule.schedule = job.schedule;
  rule.tz = job.tz;
  rule.digest = job.digest;
  rule.loaded_at = job.loaded_at;
  if (job.policy) {
    rule.max_backfill = job.policy->max_backfill;
    rule.start_deadline = job.policy->start_deadline;
    rule.waits = job.policy->waits;
    rule.retries = std::max(job.policy->retries, 0);
    rule.backoff = job.policy->backoff;
  }
  return completed(std::move(rule), find_zone);
}

}  // namespace stint::api
