#include "api/json.h"

#include <boost/json.hpp>

#include "base/json_text.h"
#include "base/rfc3339.h"
#include "base/text.h"

namespace stint::api {
namespace {

namespace json = boost::json;

json::value moment(const std::optional<WallTime>& t) {
  if (!t) return nullptr;
  return to_ms(*t);
}

void put(JsonText& out, std::string_view name, const std::optional<WallTime>& t) {
  t ? out.field(name, to_ms(*t)) : out.nothing(name);
}

json::value text_or_null(const std::string& text) {
  if (text.empty()) return nullptr;
  return json::value(text);
}

json::object field_object(const std::vector<JsonField>& fields) {
  json::object out;
  for (const auto& [name, value] : fields) {
    std::visit([&out, &key = name](const auto& v) { out[key] = v; }, value);
  }
  return out;
}

}  // namespace

// Straight into text: every answer of a server has one.
void put_lease(JsonText& out, const Lease& lease) {
  out.field("resource", lease.resource);
  out.truth("held", lease.held);
  out.field("state", core::word(lease.state));
  out.field("owner", lease.owner.text());
  out.field("token", static_cast<std::int64_t>(lease.token.number()));
  out.field("generation", lease.generation.hex());
  lease.token.issued() ? out.field("reason", core::word(lease.reason)) : out.nothing("reason");
  out.field("ttl_ms", lease.ttl.count());
  lease.remaining ? out.field("remaining_ms", std::max<std::int64_t>(lease.remaining->count(), 0))
                  : out.nothing("remaining_ms");
  put(out, "acquired_at_ms", lease.acquired_at);
  put(out, "renewed_at_ms", lease.renewed_at);
  out.field("note", lease.note);
  out.field("progress", lease.progress);
  put(out, "progress_at_ms", lease.progress_at);
  out.field_if("by", lease.by);
  out.field_if("why", lease.why);
}

std::string to_json(const Lease& lease, const std::optional<Claim>& claim) {
  JsonText out;
  put_lease(out, lease);
  if (claim) out.field("claim", claim->hex());
  return out.done();
}

std::string to_json(const std::vector<Lease>& leases) {
  std::string out = "[";
  for (const Lease& lease : leases) out += cat(out.size() > 1 ? "," : "", to_json(lease));
  return out + "]";
}

std::string to_json(const std::vector<SealedTarget>& targets) {
  std::string out = "[";
  for (const SealedTarget& one : targets) {
    JsonText row;
    row.field("target", one.words);
    row.truth("sealed", one.stands);
    row.field("token", static_cast<std::int64_t>(one.token.number()));
    put(row, "at_ms", one.at);
    row.field("first_token", static_cast<std::int64_t>(one.first_token.number()));
    put(row, "since_ms", one.since);
    out += cat(out.size() > 1 ? "," : "", row.done());
  }
  return out + "]";
}

std::string to_json(const std::vector<PastGrant>& history) {
  json::array out;
  for (const PastGrant& past : history) {
    json::object line;
    line["token"] = past.token.number();
    line["owner"] = past.owner.text();
    line["reason"] = std::string(core::word(past.reason));
    line["by"] = text_or_null(past.by);
    line["why"] = text_or_null(past.why);
    line["acquired_at_ms"] = moment(past.acquired_at);
    line["ended_at_ms"] = moment(past.ended_at);
    line["ended"] = past.ended ? json::value(std::string(core::word(*past.ended))) : nullptr;
    out.push_back(std::move(line));
  }
  return json::serialize(out);
}

std::string to_json(const Event& event) {
  json::object out;
  out["at_ms"] = to_ms(event.at);
  out["kind"] = event.kind;
  out["resource"] = text_or_null(event.resource);
  out["token"] = event.token == 0 ? json::value(nullptr) : json::value(event.token);
  out["owner"] = text_or_null(event.owner);
  out["number"] = event.number;
  for (const auto& [name, value] : event.details) {
    std::visit([&out, &key = name](const auto& v) { out[key] = v; }, value);
  }
  return json::serialize(out);
}

std::string to_json(const std::vector<SlotView>& slots) {
  json::array out;
  for (const SlotView& view : slots) {
    json::object line;
    line["job"] = view.job;
    line["slot"] = format_local(view.slot.nominal);
    line["key"] = core::slot_key(view.job, view.slot.at);
    line["at_ms"] = to_ms(view.slot.at);
    line["attempt"] = view.slot.attempt;
    line["state"] = std::string(core::word(view.state));
    line["owner"] = text_or_null(view.owner);
    line["resource"] = text_or_null(view.resource);
    line["token"] = view.token.issued() ? json::value(view.token.number()) : nullptr;
    line["started_at_ms"] = moment(view.started_at);
    line["ended_at_ms"] = moment(view.ended_at);
    line["exit_code"] = view.exit_code ? json::value(*view.exit_code) : nullptr;
    line["backfill"] = view.slot.backfill;
    line["cause"] = text_or_null(view.cause);
    out.push_back(std::move(line));
  }
  return json::serialize(out);
}

std::string error_json(std::string_view code, std::string_view message) {
  JsonText inner;
  inner.field("code", code).field("message", message);
  return JsonText().json("error", inner.done()).done();
}

std::string skip_json(std::string_view message, const Lease& lease) {
  JsonText inner;
  inner.field("message", message).json("lease", to_json(lease));
  return JsonText().json("skipped", inner.done()).done();
}

std::string to_json(const Error& error, const Lease* lease, std::string_view cause) {
  JsonText inner;
  inner.field("code", word(error.code)).field("message", error.message);
  inner.field_if("cause", cause);
  if (lease != nullptr) inner.json("lease", to_json(*lease));
  return JsonText().json("error", inner.done()).done();
}

std::string to_json(const std::vector<JsonField>& fields) {
  return json::serialize(field_object(fields));
}

std::string to_json(const std::vector<std::vector<JsonField>>& rows) {
  json::array out;
  for (const auto& row : rows) out.push_back(field_object(row));
  return json::serialize(out);
}

}  // namespace stint::api
