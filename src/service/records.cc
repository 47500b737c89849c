#include "service/records.h"

#include <boost/json.hpp>

#include "base/json_text.h"
#include "base/text.h"
#include "service/record_fields.h"

namespace stint::service {
namespace {

void put(JsonText& out, std::string_view name, Millis d) {
  if (d.count() != 0) out.field(name, d.count());
}
void put(JsonText& out, std::string_view name, const std::optional<WallTime>& t) {
  if (t) out.field(name, to_ms(*t));
}
void put(JsonText& out, std::string_view name, Token token) {
  out.field(name, static_cast<std::int64_t>(token.number()));
}

std::string per_resource(std::string_view room, std::string_view resource) {
  return cat(room, resource);
}

void put_own(JsonText& out, const core::Ownership& own) {
  put(out, "token", own.token);
  out.field_if("owner", own.owner.text());
  out.field_if("claim", own.claim.hex());
  out.field_if("reason", core::word(own.reason));
  out.field_if("by", own.by);
  out.field_if("why", own.why);
  out.field_if("order", own.order);
  out.field("acquired_at_ms", to_ms(own.acquired_at));
  put(out, "ttl_ms", own.terms.ttl);
  put(out, "max_hold_ms", own.terms.max_hold);
  put(out, "at_least_ms", own.terms.at_least);
  put(out, "cooldown_ms", own.terms.cooldown);
}

}  // namespace

std::string own_key(std::string_view resource) { return per_resource("own/", resource); }
std::string alive_key(std::string_view resource) { return per_resource("alive/", resource); }
std::string work_key(std::string_view resource) { return per_resource("work/", resource); }
std::string cap_key(std::string_view resource) { return per_resource("cap/", resource); }
std::string rest_key(std::string_view resource) { return per_resource("rest/", resource); }
std::string cool_key(std::string_view resource) { return per_resource("cool/", resource); }

std::string history_prefix(std::string_view resource) { return cat("hist/", resource, '\x1F'); }

std::string history_key(std::string_view resource, Token token) {
  const std::string digits = std::to_string(token.number());
  return cat(history_prefix(resource), std::string(16 - digits.size(), '0'), digits);
}

std::string encode(const Meta& meta) {
  json::object out;
  out["generation"] = meta.generation.hex();
  json::array ancestors;
  for (const Generation& ancestor : meta.ancestors) ancestors.emplace_back(ancestor.hex());
  if (!ancestors.empty()) out["ancestors"] = std::move(ancestors);
  out["floor"] = static_cast<std::int64_t>(meta.floor.number());
  out["created_at_ms"] = to_ms(meta.created_at);
  if (!meta.moved_to.empty()) out["moved_to"] = meta.moved_to;
  if (!meta.arriving_from.empty()) out["arriving_from"] = meta.arriving_from;
  return json::serialize(out);
}

std::string encode(const core::Ownership& own) {
  JsonText out;
  put_own(out, own);
  return out.done();
}

std::string encode(const core::Pulse& pulse) {
  JsonText out;
  out.field("standing", core::word(pulse.standing));
  put(out, "ended_at_ms", pulse.ended_at);
  return out.done();
}

std::string encode(const core::Work& work) {
  JsonText out;
  out.field_if("note", work.note);
  out.field_if("progress", work.progress);
  put(out, "progress_at_ms", work.progress_at);
  if (work.progress_token.issued()) put(out, "progress_token", work.progress_token);
  return out.done();
}

std::string encode(const core::Past& past) {
  JsonText out;
  core::Ownership own = past.own;
  own.claim = {};  // the history is for people
  put_own(out, own);
  out.field("ended", core::word(past.ended));
  put(out, "ended_at_ms", past.ended_at);
  return out.done();
}

std::string encode(const api::Event& event) {
  JsonText out;
  out.field("at_ms", to_ms(event.at));
  out.field("kind", event.kind);
  out.field_if("resource", event.resource);
  if (event.token != 0) out.field("token", static_cast<std::int64_t>(event.token));
  out.field_if("owner", event.owner);
  for (const auto& [name, value] : event.details) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      out.field(name, *text);
    } else {
      out.field(name, std::get<std::int64_t>(value));
    }
  }
  return out.done();
}

Result<Meta> decode_meta(std::string_view value) {
  Fields fields("meta", value);
  Meta meta;
  auto generation = Generation::parse(fields.text("generation"));
  if (!generation) return unavailable("the store holds a damaged meta record: no generation");
  meta.generation = *generation;
  fields.require("floor");
  meta.floor = fields.token("floor");
  meta.created_at = wall_from_ms(fields.number("created_at_ms"));
  meta.moved_to = fields.text("moved_to");
  meta.arriving_from = fields.text("arriving_from");
  const json::value* list = fields.find("ancestors");
  if (list != nullptr && !list->is_array()) fields.fail("ancestors is not a list");
  if (list != nullptr && list->is_array()) {
    for (const json::value& item : list->as_array()) {
      auto ancestor = Generation::parse(item.is_string() ? std::string_view(item.as_string()) : "");
      if (ancestor) {
        meta.ancestors.push_back(*ancestor);
      } else {
        fields.fail("an ancestor is not a generation");
      }
    }
  }
  return fields.done(meta);
}

Result<core::Ownership> decode_own(std::string_view value) {
  Fields fields("ownership", value);
  core::Ownership own;
  own.token = fields.token("token");
  if (!own.token.issued()) fields.fail("there is no token");
  own.owner = fields.owner("owner");
  own.claim = ClaimHash(fields.text("claim"));
  own.reason = fields.reason("reason");
  own.by = fields.text("by");
  own.why = fields.text("why");
  own.order = fields.text("order");
  own.acquired_at = wall_from_ms(fields.number("acquired_at_ms"));
  own.terms = {.ttl = fields.duration("ttl_ms"),
               .max_hold = fields.duration("max_hold_ms"),
               .at_least = fields.duration("at_least_ms"),
               .cooldown = fields.duration("cooldown_ms")};
  return fields.done(own);
}

Result<core::Pulse> decode_pulse(std::string_view value) {
  Fields fields("alive", value);
  core::Pulse pulse;
  const auto standing = core::parse_standing(fields.text("standing"));
  if (!standing) fields.fail("its standing is unknown");
  pulse.standing = standing.value_or(core::Standing::Granted);
  pulse.ended_at = fields.moment("ended_at_ms");
  return fields.done(pulse);
}

Result<core::Work> decode_work(std::string_view value) {
  Fields fields("work", value);
  core::Work work;
  work.note = fields.text("note");
  work.progress = fields.text("progress");
  work.progress_at = fields.moment("progress_at_ms");
  work.progress_token = fields.token("progress_token");
  return fields.done(work);
}

Result<api::PastGrant> decode_past(std::string_view value) {
  Fields fields("history", value);
  api::PastGrant past;
  past.token = fields.token("token");
  past.owner = fields.owner("owner");
  past.reason = fields.reason("reason");
  past.by = fields.text("by");
  past.why = fields.text("why");
  past.acquired_at = fields.moment("acquired_at_ms");
  past.ended_at = fields.moment("ended_at_ms");
  past.ended = fields.reason("ended");
  return fields.done(past);
}

Result<api::Event> decode_event(std::string_view value) {
  Fields fields("event", value);
  api::Event event;
  event.at = wall_from_ms(fields.number("at_ms"));
  event.kind = fields.text("kind");
  event.resource = fields.text("resource");
  event.token = fields.token("token").number();
  event.owner = fields.text("owner");
  for (const auto& [name, detail] : fields.object()) {
    const std::string_view key(name.data(), name.size());
    if (key == "at_ms" || key == "kind" || key == "resource" || key == "token" || key == "owner") {
      continue;
    }
    if (detail.is_string()) {
      event.details.emplace_back(std::string(key), std::string(detail.as_string()));
    } else if (detail.is_int64()) {
      event.details.emplace_back(std::string(key), detail.as_int64());
    }
  }
  return fields.done(event);
}

}  // namespace stint::service
