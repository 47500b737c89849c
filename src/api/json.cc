#include "api/json.h"

#include <boost/json.hpp>

#include "base/rfc3339.h"

namespace stint::api {
namespace {

namespace json = boost::json;

json::value moment(const std::optional<WallTime>& t) {
  if (!t) return nullptr;
  return to_ms(*t);
}

json::value span(const std::optional<Millis>& d) {
  if (!d) return nullptr;
  return std::max<std::int64_t>(d->count(), 0);
}

json::object lease_object(const Lease& lease) {
  json::object out;
  out["resource"] = lease.resource;
  out["held"] = lease.held;
  out["state"] = std::string(core::word(lease.state));
  out["owner"] = lease.owner.text();
  out["token"] = lease.token.number();
  out["generation"] = lease.generation.hex();
  out["reason"] =
      lease.token.issued() ? json::value(std::string(core::word(lease.reason))) : nullptr;
  out["ttl_ms"] = lease.ttl.count();
  out["remaining_ms"] = span(lease.remaining);
  out["acquired_at_ms"] = moment(lease.acquired_at);
  out["renewed_at_ms"] = moment(lease.renewed_at);
  out["note"] = lease.note;
  out["progress"] = lease.progress;
  out["progress_at_ms"] = moment(lease.progress_at);
  if (!lease.by.empty()) out["by"] = lease.by;
  if (!lease.why.empty()) out["why"] = lease.why;
  return out;
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

std::string to_json(const Lease& lease, const std::optional<Claim>& claim) {
  json::object out = lease_object(lease);
  if (claim) out["claim"] = claim->hex();
  return json::serialize(out);
}

std::string to_json(const std::vector<Lease>& leases) {
  json::array out;
  for (const Lease& lease : leases) out.push_back(lease_object(lease));
  return json::serialize(out);
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
  json::object out;
  out["error"] = json::object{{"code", std::string(code)}, {"message", std::string(message)}};
  return json::serialize(out);
}

std::string skip_json(std::string_view message, const Lease& lease) {
  json::object out;
  out["skipped"] = json::object{{"message", std::string(message)}, {"lease", lease_object(lease)}};
  return json::serialize(out);
}

std::string to_json(const Error& error, const Lease* lease, std::string_view cause) {
  json::object inner;
  inner["code"] = std::string(word(error.code));
  inner["message"] = error.message;
  if (!cause.empty()) inner["cause"] = std::string(cause);
  if (lease != nullptr) inner["lease"] = lease_object(*lease);
  json::object out;
  out["error"] = std::move(inner);
  return json::serialize(out);
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
