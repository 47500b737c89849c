#include "service/slot_records.h"

#include <boost/json.hpp>

#include "base/text.h"
#include "service/record_fields.h"
#include "store/seam.h"

namespace stint::service {
namespace {

// Sorts from the year 1 to the year 9999.
constexpr std::int64_t kBias = 1'000'000'000'000'000;
constexpr std::size_t kDigits = 16;

std::string sortable(WallTime t) {
  const std::string digits = std::to_string(to_ms(t) + kBias);
  return cat(std::string(kDigits - digits.size(), '0'), digits);
}

void put(json::object& out, const char* name, const std::string& text) {
  if (!text.empty()) out[name] = text;
}
void put(json::object& out, const char* name, const std::optional<WallTime>& t) {
  if (t) out[name] = to_ms(*t);
}
void put(json::object& out, const char* name, Token token) {
  if (token.issued()) out[name] = static_cast<std::int64_t>(token.number());
}

void put_slot(json::object& out, const core::Slot& slot) {
  out["nominal_s"] = slot.nominal.time_since_epoch().count();
  if (slot.attempt != 1) out["attempt"] = slot.attempt;
  if (slot.crashes != 0) out["crashes"] = slot.crashes;
  if (slot.backfill) out["backfill"] = 1;
  if (slot.manual) out["manual"] = 1;
  put(out, "not_before_ms", slot.not_before);
}

json::object slot_object(const core::Slot& slot) {
  json::object out;
  out["at_ms"] = to_ms(slot.at);
  put_slot(out, slot);
  return out;
}

core::Slot slot_of(Fields& fields, WallTime at) {
  core::Slot slot{.at = at};
  slot.nominal = std::chrono::local_seconds(std::chrono::seconds(fields.number("nominal_s")));
  const std::int64_t attempt = fields.find("attempt") == nullptr ? 1 : fields.number("attempt");
  constexpr std::int64_t kMostAttempts = 1'000'000;
  if (attempt < 1 || attempt > kMostAttempts) fields.fail("attempt is not a number of an attempt");
  slot.attempt = static_cast<int>(attempt);
  slot.crashes = static_cast<int>(fields.number("crashes"));
  slot.backfill = fields.number("backfill") != 0;
  slot.manual = fields.number("manual") != 0;
  slot.not_before = fields.moment("not_before_ms");
  return slot;
}

core::SlotState state_in(Fields& fields, std::string_view name) {
  const auto state = core::parse_slot_state(fields.text(name));
  if (!state) fields.fail(cat(name, " is unknown"));
  return state.value_or(core::SlotState::Lost);
}

json::object active_object(const core::ActiveSlot& active) {
  json::object out = slot_object(active.slot);
  out["state"] = std::string(core::word(active.state));
  put(out, "owner", active.owner.text());
  put(out, "resource", active.resource);
  put(out, "token", active.token);
  put(out, "started_at_ms", active.started_at);
  return out;
}

Result<core::Slot> decode_due(const json::value& item) {
  Fields fields("job", json::serialize(item));
  core::Slot slot = slot_of(fields, wall_from_ms(fields.number("at_ms")));
  return fields.done(slot);
}

Result<core::ActiveSlot> decode_active(const json::value& item) {
  Fields fields("job", json::serialize(item));
  core::ActiveSlot active;
  active.slot = slot_of(fields, wall_from_ms(fields.number("at_ms")));
  active.state = state_in(fields, "state");
  active.owner = fields.owner("owner");
  active.resource = fields.text("resource");
  active.token = fields.token("token");
  active.started_at = fields.moment("started_at_ms");
  return fields.done(active);
}

core::SlotRange range_in(Fields& fields, WallTime from) {
  core::SlotRange range{.from = from};
  range.to = wall_from_ms(fields.number("to_ms"));
  range.count = static_cast<std::uint64_t>(std::max<std::int64_t>(fields.number("count"), 0));
  range.reason = state_in(fields, "reason");
  range.cause = fields.text("cause");
  return range;
}

void put_range(json::object& out, const core::SlotRange& range) {
  out["to_ms"] = to_ms(range.to);
  out["count"] = static_cast<std::int64_t>(range.count);
  out["reason"] = std::string(core::word(range.reason));
  put(out, "cause", range.cause);
}

json::object policy_object(const core::MissedPolicy& policy) {
  json::object out;
  out["max_backfill"] = static_cast<std::int64_t>(policy.max_backfill);
  if (policy.start_deadline) out["start_deadline_ms"] = policy.start_deadline->count();
  if (policy.waits) out["waits"] = 1;
  if (policy.retries != 0) {
    out["retries"] = policy.retries;
    out["backoff_ms"] = policy.backoff.count();
  }
  out["loaded_at_ms"] = to_ms(policy.loaded_at);
  return out;
}

constexpr std::size_t kMostJobNameBytes = 200;
constexpr std::size_t kMostOnceKeyBytes = 500;

}  // namespace

std::string job_key(std::string_view job) { return cat(kJobPrefix, job); }
std::string slots_prefix(std::string_view job) { return cat(kSlotPrefix, job, '\x1F'); }
std::string slot_row_key(std::string_view job, WallTime at) {
  return cat(slots_prefix(job), sortable(at));
}
std::string skips_prefix(std::string_view job) { return cat(kSkipPrefix, job, '\x1F'); }
std::string skip_row_key(std::string_view job, WallTime from) {
  return cat(skips_prefix(job), sortable(from));
}
std::string once_key(std::string_view key) { return cat(kOncePrefix, key); }

Result<WallTime> instant_of(std::string_view row_key) {
  const auto digits = row_key.size() > kDigits
                          ? parse_digits(row_key.substr(row_key.size() - kDigits))
                          : std::nullopt;
  if (!digits) return unavailable("the store holds a slot under a damaged key");
  return wall_from_ms(static_cast<std::int64_t>(*digits) - kBias);
}

std::string encode(const core::Job& job) {
  json::object out;
  out["schedule"] = job.schedule;
  put(out, "tz", job.tz);
  out["digest"] = job.digest;
  out["loaded_at_ms"] = to_ms(job.loaded_at);
  out["cursor_ms"] = to_ms(job.cursor);
  out["decided_at_ms"] = to_ms(job.decided_at);
  if (job.paused) out["paused"] = 1;
  if (!job.due.empty()) {
    json::array due;
    for (const core::Slot& slot : job.due) due.push_back(slot_object(slot));
    out["due"] = std::move(due);
  }
  put(out, "due_by", job.due_by);
  if (job.active) out["active"] = active_object(*job.active);
  put(out, "last_resource", job.last_resource);
  put(out, "last_token", job.last_token);
  if (job.rows != 0) out["rows"] = static_cast<std::int64_t>(job.rows);
  if (job.ranges != 0) out["ranges"] = static_cast<std::int64_t>(job.ranges);
  if (job.forgotten != WallTime::min()) out["forgotten_ms"] = to_ms(job.forgotten);
  if (job.pause) {
    json::object pause;
    pause["from_ms"] = to_ms(job.pause->from);
    put_range(pause, *job.pause);
    out["pause"] = std::move(pause);
  }
  if (!job.policy) return json::serialize(out);
  // For the eye alone (schedulers have the rule itself): a record that is full goes without it.
  const std::string without = json::serialize(out);
  out["policy"] = policy_object(*job.policy);
  std::string whole = json::serialize(out);
  return whole.size() <= store::Store::kMaxValueBytes ? whole : without;
}

std::string encode(const core::EndedSlot& slot) {
  json::object out;
  put_slot(out, slot.slot);
  out["state"] = std::string(core::word(slot.state));
  put(out, "owner", slot.owner.text());
  put(out, "resource", slot.resource);
  put(out, "token", slot.token);
  put(out, "started_at_ms", slot.started_at);
  put(out, "ended_at_ms", slot.ended_at);
  if (slot.exit_code) out["exit_code"] = *slot.exit_code;
  put(out, "cause", slot.cause);
  return json::serialize(out);
}

std::string encode(const api::RangeRow& row) {
  json::object out;
  put_range(out, row.range);
  out["schedule"] = row.schedule;
  put(out, "tz", row.tz);
  return json::serialize(out);
}

std::string encode(const api::OnceRecord& record) {
  json::object out;
  switch (record.state) {
    case api::OnceRecord::State::None: break;
    case api::OnceRecord::State::Started: out["state"] = "started"; break;
    case api::OnceRecord::State::Done: out["state"] = "done"; break;
    case api::OnceRecord::State::Failed: out["state"] = "failed"; break;
  }
  put(out, "owner", record.owner.text());
  put(out, "token", record.token);
  put(out, "started_at_ms", record.started_at);
  put(out, "ended_at_ms", record.ended_at);
  if (record.exit_code) out["exit_code"] = *record.exit_code;
  return json::serialize(out);
}

Result<core::Job> decode_job(std::string_view value) {
  Fields fields("job", value);
  core::Job job;
  job.schedule = fields.text("schedule");
  job.tz = fields.text("tz");
  fields.require("digest");
  job.digest = fields.text("digest");
  job.loaded_at = wall_from_ms(fields.number("loaded_at_ms"));
  fields.require("cursor_ms");
  job.cursor = wall_from_ms(fields.number("cursor_ms"));
  job.decided_at = wall_from_ms(fields.number("decided_at_ms"));
  job.paused = fields.number("paused") != 0;
  job.due_by = fields.text("due_by");
  job.last_resource = fields.text("last_resource");
  job.last_token = fields.token("last_token");
  job.rows = static_cast<std::uint64_t>(std::max<std::int64_t>(fields.number("rows"), 0));
  job.ranges = static_cast<std::uint64_t>(std::max<std::int64_t>(fields.number("ranges"), 0));
  job.forgotten = fields.moment("forgotten_ms").value_or(WallTime::min());
  const json::value* due = fields.find("due");
  if (due != nullptr && !due->is_array()) fields.fail("due is not a list");
  if (due != nullptr && due->is_array()) {
    for (const json::value& item : due->as_array()) {
      auto slot = decode_due(item);
      if (!slot) return slot.error();
      job.due.push_back(*slot);
    }
  }
  if (const json::value* item = fields.find("active")) {
    auto active = decode_active(*item);
    if (!active) return active.error();
    job.active = std::move(*active);
  }
  if (const json::value* item = fields.find("policy")) {
    Fields inner("job", json::serialize(*item));
    core::MissedPolicy policy;
    policy.max_backfill =
        static_cast<std::size_t>(std::max<std::int64_t>(inner.number("max_backfill"), 0));
    if (inner.find("start_deadline_ms") != nullptr) {
      policy.start_deadline = inner.duration("start_deadline_ms");
    }
    policy.waits = inner.number("waits") != 0;
    constexpr std::int64_t kMostRetries = 1'000'000;
    policy.retries =
        static_cast<int>(std::clamp<std::int64_t>(inner.number("retries"), 0, kMostRetries));
    if (inner.find("backoff_ms") != nullptr) policy.backoff = inner.duration("backoff_ms");
    policy.loaded_at = wall_from_ms(inner.number("loaded_at_ms"));
    if (auto read = inner.done(0); !read) return read.error();
    job.policy = policy;
  }
  if (const json::value* item = fields.find("pause")) {
    Fields inner("job", json::serialize(*item));
    job.pause = range_in(inner, wall_from_ms(inner.number("from_ms")));
    if (auto read = inner.done(0); !read) return read.error();
  }
  return fields.done(job);
}

Result<core::EndedSlot> decode_slot(WallTime at, std::string_view value) {
  Fields fields("slot", value);
  core::EndedSlot slot;
  slot.slot = slot_of(fields, at);
  slot.state = state_in(fields, "state");
  slot.owner = fields.owner("owner");
  slot.resource = fields.text("resource");
  slot.token = fields.token("token");
  slot.started_at = fields.moment("started_at_ms");
  slot.ended_at = fields.moment("ended_at_ms");
  if (fields.find("exit_code") != nullptr) {
    slot.exit_code = static_cast<int>(fields.number("exit_code"));
  }
  slot.cause = fields.text("cause");
  return fields.done(slot);
}

Result<api::RangeRow> decode_range(WallTime from, std::string_view value) {
  Fields fields("range", value);
  api::RangeRow row;
  row.range = range_in(fields, from);
  row.schedule = fields.text("schedule");
  row.tz = fields.text("tz");
  return fields.done(row);
}

Result<api::OnceRecord> decode_once(std::string_view value) {
  Fields fields("once", value);
  api::OnceRecord record;
  const std::string state = fields.text("state");
  if (state == "started") record.state = api::OnceRecord::State::Started;
  if (state == "done") record.state = api::OnceRecord::State::Done;
  if (state == "failed") record.state = api::OnceRecord::State::Failed;
  if (record.state == api::OnceRecord::State::None) fields.fail("its state is unknown");
  record.owner = fields.owner("owner");
  record.token = fields.token("token");
  record.started_at = fields.moment("started_at_ms");
  record.ended_at = fields.moment("ended_at_ms");
  if (fields.find("exit_code") != nullptr) {
    record.exit_code = static_cast<int>(fields.number("exit_code"));
  }
  return fields.done(record);
}

Status check_job_name(std::string_view name) {
  const bool good = !name.empty() && name.size() <= kMostJobNameBytes && is_utf8(name) &&
                    !has_control(name) && name.find('@') == std::string_view::npos;
  if (good) return {};
  return invalid(cat("a job's name is 1 to ", kMostJobNameBytes,
                     " bytes of UTF-8 without control characters and without @, not ",
                     quoted(name.substr(0, kMostJobNameBytes))));
}

Status check_once_key(std::string_view key) {
  if (!key.empty() && key.size() <= kMostOnceKeyBytes && is_utf8(key) && !has_control(key)) {
    return {};
  }
  return invalid(
      cat("a key is 1 to ", kMostOnceKeyBytes, " bytes of UTF-8 without control characters"));
}

}  // namespace stint::service
