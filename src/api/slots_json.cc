#include "api/slots_json.h"

#include "api/json.h"
#include "api/wire.h"
#include "base/json_text.h"
#include "base/text.h"

namespace stint::api {
namespace {

// One object, field by field.
class Writing {
 public:
  Writing& text(std::string_view name, std::string_view value) {
    return value.empty() ? *this : raw(name, json_quoted(value));
  }
  Writing& number(std::string_view name, std::int64_t value) { return raw(name, cat(value)); }
  Writing& flag(std::string_view name, bool value) { return value ? raw(name, "true") : *this; }
  Writing& moment(std::string_view name, const std::optional<WallTime>& t) {
    return t ? number(name, to_ms(*t)) : *this;
  }
  Writing& token(std::string_view name, Token token) {
    return token.issued() ? raw(name, cat(token.number())) : *this;
  }
  Writing& raw(std::string_view name, std::string_view value) {
    out_ += cat(out_.size() > 1 ? "," : "", "\"", name, "\":", value);
    return *this;
  }
  template <class T>
  Writing& list(std::string_view name, const std::vector<T>& all) {
    if (all.empty()) return *this;
    std::string rows;
    for (const T& one : all) rows += cat(rows.empty() ? "" : ",", to_json(one));
    return raw(name, cat("[", rows, "]"));
  }
  std::string done() { return std::move(out_) + "}"; }

 private:
  std::string out_ = "{";
};

void add_slot(Writing& out, const core::Slot& slot) {
  out.number("at_ms", to_ms(slot.at))
      .number("nominal_s", slot.nominal.time_since_epoch().count())
      .number("attempt", slot.attempt)
      .number("crashes", slot.crashes)
      .flag("backfill", slot.backfill)
      .flag("manual", slot.manual)
      .moment("not_before_ms", slot.not_before);
}

std::string range_json(const core::SlotRange& range, std::string_view schedule = {},
                       std::string_view tz = {}) {
  return Writing()
      .number("from_ms", to_ms(range.from))
      .number("to_ms", to_ms(range.to))
      .number("count", static_cast<std::int64_t>(range.count))
      .text("reason", core::word(range.reason))
      .text("schedule", schedule)
      .text("tz", tz)
      .text("cause", range.cause)
      .done();
}

std::string active_json(const core::ActiveSlot& active) {
  Writing out;
  add_slot(out, active.slot);
  return out.text("state", core::word(active.state))
      .text("owner", active.owner.text())
      .text("resource", active.resource)
      .token("token", active.token)
      .moment("started_at_ms", active.started_at)
      .done();
}

}  // namespace

std::string_view word(OnceRecord::State state) {
  switch (state) {
    case OnceRecord::State::None: return "none";
    case OnceRecord::State::Started: return "started";
    case OnceRecord::State::Done: return "done";
    case OnceRecord::State::Failed: return "failed";
  }
  return "none";
}

std::string_view word(SlotAdded::What what) {
  switch (what) {
    case SlotAdded::What::Added: return "added";
    case SlotAdded::What::Open: return "open";
    case SlotAdded::What::Ended: return "ended";
    case SlotAdded::What::ConfigDiffers: return "config_differs";
  }
  return "added";
}

std::string to_json(const core::Slot& slot) {
  Writing out;
  add_slot(out, slot);
  return out.done();
}

std::string to_json(const core::EndedSlot& ended) {
  Writing out;
  add_slot(out, ended.slot);
  out.text("state", core::word(ended.state))
      .text("owner", ended.owner.text())
      .text("resource", ended.resource)
      .token("token", ended.token)
      .moment("started_at_ms", ended.started_at)
      .moment("ended_at_ms", ended.ended_at)
      .text("cause", ended.cause);
  if (ended.exit_code) out.number("exit_code", *ended.exit_code);
  return out.done();
}

std::string to_json(const core::Job& job) {
  Writing out;
  out.text("schedule", job.schedule)
      .text("tz", job.tz)
      .text("digest", job.digest)
      .number("loaded_at_ms", to_ms(job.loaded_at))
      .number("cursor_ms", to_ms(job.cursor))
      .number("decided_at_ms", to_ms(job.decided_at))
      .flag("paused", job.paused)
      .list("due", job.due)
      .text("due_by", job.due_by)
      .text("last_resource", job.last_resource)
      .token("last_token", job.last_token)
      .number("rows", static_cast<std::int64_t>(job.rows));
  if (job.active) out.raw("active", active_json(*job.active));
  if (job.policy) {
    Writing policy;
    policy.number("max_backfill", static_cast<std::int64_t>(job.policy->max_backfill))
        .flag("waits", job.policy->waits)
        .number("retries", job.policy->retries)
        .number("backoff_ms", job.policy->backoff.count())
        .number("loaded_at_ms", to_ms(job.policy->loaded_at));
    if (job.policy->start_deadline) {
      policy.number("start_deadline_ms", job.policy->start_deadline->count());
    }
    out.raw("policy", policy.done());
  }
  if (job.pause) out.raw("pause", range_json(*job.pause));
  if (job.forgotten != WallTime::min()) out.moment("forgotten_ms", job.forgotten);
  return out.done();
}

std::string to_json(const Decided& decided) {
  Writing out;
  out.flag("config_differs", decided.config_differs)
      .flag("mine", decided.mine)
      .flag("schedule_changed", decided.schedule_changed)
      .number("now_ms", to_ms(decided.now))
      .raw("job", to_json(decided.job))
      .list("ended", decided.ended)
      .list("retried", decided.retried);
  std::string dropped;
  for (const core::SlotRange& one : decided.dropped) {
    dropped += cat(dropped.empty() ? "" : ",", range_json(one));
  }
  if (!dropped.empty()) out.raw("dropped", cat("[", dropped, "]"));
  return out.done();
}

std::string to_json(const EndAnswer& end) {
  return Writing().text("state", core::word(end.state)).flag("again", end.again).done();
}

std::string to_json(const SlotAdded& added) {
  Writing out;
  out.text("what", word(added.what))
      .number("at_ms", to_ms(added.at))
      .raw("job", to_json(added.job));
  if (added.ended) out.raw("ended", to_json(*added.ended));
  return out.done();
}

std::string to_json(const JobHistory& history) {
  Writing out;
  if (history.job) out.raw("job", to_json(*history.job));
  out.list("ended", history.ended);
  std::string ranges;
  for (const RangeRow& one : history.ranges) {
    ranges += cat(ranges.empty() ? "" : ",", range_json(one.range, one.schedule, one.tz));
  }
  if (!ranges.empty()) out.raw("ranges", cat("[", ranges, "]"));
  return out.done();
}

std::string to_json(const OnceRecord& record) {
  Writing out;
  out.text("state", word(record.state))
      .text("owner", record.owner.text())
      .token("token", record.token)
      .moment("started_at_ms", record.started_at)
      .moment("ended_at_ms", record.ended_at);
  if (record.exit_code) out.number("exit_code", *record.exit_code);
  return out.done();
}

std::string to_json(const core::JobRule& rule) {
  Writing out;
  out.text("name", rule.name)
      .text("schedule", rule.schedule)
      .text("tz", rule.tz)
      .text("digest", rule.digest)
      .number("loaded_at_ms", to_ms(rule.loaded_at))
      .number("max_backfill", static_cast<std::int64_t>(rule.max_backfill))
      .flag("newest_first", rule.newest_first)
      .flag("waits", rule.waits)
      .number("retries", rule.retries)
      .number("backoff_ms", rule.backoff.count());
  if (rule.start_deadline) out.number("start_deadline_ms", rule.start_deadline->count());
  return out.done();
}

std::string to_json(const SlotProof& proof, std::string_view further) {
  std::string out = Writing()
                        .text("job", proof.job)
                        .number("at_ms", to_ms(proof.at))
                        .number("attempt", proof.attempt)
                        .text("scheduler", proof.scheduler)
                        .text("owner", proof.owner.text())
                        .text("resource", proof.grip.resource.text())
                        .number("token", static_cast<std::int64_t>(proof.grip.token.number()))
                        .text("claim", proof.grip.claim.hex())
                        .done();
  out.pop_back();
  return cat(out, further, "}");
}

std::string to_json(const SlotSkip& skip) {
  Writing out;
  out.text("job", skip.job)
      .number("at_ms", to_ms(skip.at))
      .number("attempt", skip.attempt)
      .text("scheduler", skip.scheduler)
      .text("state", core::word(skip.why));
  if (skip.by) out.raw("by", to_json(*skip.by));
  return out.done();
}

}  // namespace stint::api
