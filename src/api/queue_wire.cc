#include "api/queue_wire.h"

#include <algorithm>

#include "api/wire.h"
#include "base/base64.h"
#include "base/json_text.h"
#include "base/text.h"

namespace stint::api {
namespace {

std::string_view truth_of(bool value) { return value ? "true" : "false"; }

// Escaping would make six bytes of one.
bool travels_as_text(std::string_view bytes) {
  if (!is_utf8(bytes)) return false;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) return false;
  }
  return true;
}

std::optional<Nanos> read_store_time(JsonFields& in) {
  const std::string text = in.text("store_time_ns");
  if (text.empty()) return std::nullopt;
  const auto digits = parse_digits(text);
  if (!digits || *digits > static_cast<std::uint64_t>(Nanos::max().count())) {
    in.fail("store_time_ns is no time");
    return std::nullopt;
  }
  return Nanos(static_cast<std::int64_t>(*digits));
}

template <class T>
Result<T> whole(const JsonFields& in, T value) {
  if (auto ok = in.done(); !ok) return ok.error();
  return value;
}

std::uint32_t read_count32(JsonFields& in, std::string_view name, std::uint32_t otherwise) {
  const auto number = in.maybe_number(name);
  if (!number) return otherwise;
  if (*number < 0 || *number > 0xffff'ffff) {
    in.fail(cat(quoted(name), " is out of bounds"));
    return otherwise;
  }
  return static_cast<std::uint32_t>(*number);
}

void read_state(JsonFields& in, QueueItem& view) {
  core::Item& item = view.item;
  const auto state = core::parse_item_state(in.text("state"));
  if (!state) in.fail("'state' is none");
  item.state = state.value_or(core::ItemState::Waiting);
  item.epoch = in.token("epoch");
  item.attempts = read_count32(in, "attempt", 0);
  item.owner = in.owner("owner");
  // What proves a claim stays at the store; that there was one is told.
  if (in.flag("granted")) item.claim = ClaimHash("granted");
  const std::string reason = in.text("reason");
  if (!reason.empty()) item.reason = core::parse_reason(reason).value_or(core::Reason::First);
  item.started = in.flag("started");
  item.reports = in.flag("reports");
  const std::string last = in.text("last_word");
  if (!last.empty()) item.last = core::parse_last_word(last).value_or(core::LastWord::Open);
  item.progress = in.text("progress");
  item.progress_at = in.moment("progress_at_ms");
  item.why = in.text("why");
  item.by = in.text("by");
  item.reserved_for = in.owner("reserved_for");
  item.claimed_at = in.moment("claimed_at_ms");
  item.ended_at = in.moment("ended_at_ms");
  if (const JsonValue* limits = in.find("limits")) item.limits = read_limits(*limits, in);
}

}  // namespace

// ---- requests

std::string content_field(std::string_view name, const std::optional<std::string>& bytes) {
  if (!bytes) return {};
  if (travels_as_text(*bytes)) return cat(",\"", name, "\":", json_quoted(*bytes));
  return cat(",\"", name, "_base64\":\"", base64(*bytes), "\"");
}

std::string to_json(const PutRequest& request) {
  std::string out =
      cat("{\"queue\":", json_quoted(request.queue.text()),
          content_field("payload", request.payload), ",\"priority\":", request.priority,
          ",\"delay_ms\":", request.delay.count(), ",\"labels\":", to_json(request.labels),
          ",\"by\":", json_quoted(request.by), ",\"create\":", truth_of(request.create));
  if (!request.unique.empty()) out += cat(",\"unique\":", json_quoted(request.unique));
  if (request.limits) out += cat(",\"limits\":", to_json(*request.limits));
  return out + "}";
}

std::string to_json(const ClaimRequest& request) {
  return cat("{\"queue\":", json_quoted(request.queue.text()),
             ",\"owner\":", json_quoted(request.owner.text()), ",\"claim\":\"", request.claim.hex(),
             "\",\"ttl_ms\":", request.ttl.count(), ",\"start\":", truth_of(request.start),
             ",\"reports\":", truth_of(request.reports),
             request.starts_later ? ",\"starts_later\":true" : "",
             ",\"will_wait\":", truth_of(request.will_wait), "}");
}

std::string to_json(const ItemRef& ref, std::string_view further) {
  return cat("{\"id\":", json_quoted(ref.id.text()), ",\"epoch\":", ref.epoch.number(), further,
             "}");
}

std::string to_json(const Completion& completion) {
  std::string further = content_field("result", completion.result);
  if (!completion.then.empty()) {
    further += ",\"then\":[";
    for (const FollowUp& next : completion.then) {
      further +=
          cat(further.back() == '[' ? "" : ",", "{\"queue\":", json_quoted(next.queue.text()),
              content_field("payload", next.payload), "}");
    }
    further += "]";
  }
  return to_json(completion.ref, further);
}

std::string to_json(const core::ItemId& id, const core::ItemOrder& order) {
  std::string out = cat("{\"id\":", json_quoted(id.text()), ",\"why\":", json_quoted(order.why),
                        ",\"by\":", json_quoted(order.by), ",\"hold_ms\":", order.hold.count());
  if (order.expected) out += cat(",\"epoch\":", order.expected->number());
  if (!order.to.empty()) out += cat(",\"to\":", json_quoted(order.to.text()));
  if (!order.id.empty()) out += cat(",\"order\":", json_quoted(order.id));
  return out + "}";
}

std::string to_json(const QueueConfig& config) {
  return cat("{\"queue\":", json_quoted(config.name.text()), ",\"limits\":", to_json(config.limits),
             "}");
}

Result<core::QueueName> read_queue(JsonFields& fields) {
  fields.require("queue");
  const std::string name = fields.text("queue");
  if (auto ok = fields.done(); !ok) return ok.error();
  return core::QueueName::parse(name);
}

Result<core::ItemId> read_item_id(JsonFields& fields) {
  fields.require("id");
  const std::string id = fields.text("id");
  if (auto ok = fields.done(); !ok) return ok.error();
  return core::ItemId::parse(id);
}

std::optional<std::string> read_content(JsonFields& fields, std::string_view name) {
  const std::string other = cat(name, "_base64");
  const bool plain = fields.find(name) != nullptr;
  const bool coded = fields.find(other) != nullptr;
  if (plain && coded) fields.fail(cat(quoted(name), " or ", quoted(other), ": one of them"));
  if (plain) return fields.text(name);
  if (!coded) return std::nullopt;
  auto bytes = decode_base64(fields.text(other));
  if (!bytes) fields.fail(cat(quoted(other), " is not base64"));
  return bytes;
}

core::ItemLimits read_limits(const JsonValue& value, JsonFields& outer) {
  core::ItemLimits limits;
  JsonFields in(value);
  limits.max_attempts = read_count32(in, "max_attempts", limits.max_attempts);
  const auto time = [&](std::string_view name, Millis& into) {
    if (const auto given = in.maybe_millis(name)) into = *given;
  };
  time("claim_ttl_ms", limits.claim_ttl);
  time("progress_timeout_ms", limits.progress_timeout);
  time("backoff_ms", limits.backoff);
  time("backoff_max_ms", limits.backoff_max);
  if (const std::string word = in.text("requeue"); !word.empty()) {
    const auto requeue = core::parse_requeue(word);
    if (!requeue) in.fail("'requeue' is never, if-no-progress or always");
    limits.requeue = requeue.value_or(limits.requeue);
  }
  in.refuse_others();
  if (auto ok = in.done(); !ok) outer.fail(cat("limits: ", ok.error().message));
  return limits;
}

std::vector<FollowUp> read_follow_ups(JsonFields& fields) {
  std::vector<FollowUp> out;
  const JsonValue* list = fields.find("then");
  if (list == nullptr) return out;
  if (list->if_list() == nullptr) {
    fields.fail("'then' is not a list");
    return out;
  }
  for (const JsonValue& one : *list->if_list()) {
    JsonFields in(one);
    auto queue = read_queue(in);
    auto payload = read_content(in, "payload");
    in.refuse_others();
    if (auto ok = in.done(); !ok) fields.fail(cat("then: ", ok.error().message));
    if (!queue) {
      fields.fail(cat("then: ", queue.error().message));
      break;
    }
    out.push_back({std::move(*queue), payload.value_or("")});
  }
  return out;
}

// ---- answers

Result<QueueItem> parse_item(const JsonValue& value) {
  JsonFields in(value);
  auto id = read_item_id(in);
  if (!id) return id.error();
  QueueItem view{.id = std::move(*id),
                 .item = {},
                 .labels = in.texts("labels"),
                 .unique = in.text("unique"),
                 .put_by = in.text("put_by"),
                 .put_at = in.moment("put_at_ms").value_or(WallTime{}),
                 .parent = in.text("parent"),
                 .not_before = in.moment("not_before_ms"),
                 .remaining = in.maybe_millis("remaining_ms"),
                 .ttl = in.millis("ttl_ms"),
                 .live = in.flag("live"),
                 .payload = read_content(in, "payload"),
                 .checkpoint = read_content(in, "checkpoint"),
                 .result = read_content(in, "result"),
                 .payload_bytes = static_cast<std::size_t>(in.number("payload_bytes"))};
  read_state(in, view);
  return whole(in, std::move(view));
}

Result<PutAnswer> parse_put(const JsonValue& value) {
  JsonFields in(value);
  auto id = read_item_id(in);
  if (!id) return id.error();
  PutAnswer out{.id = std::move(*id),
                .existed = in.flag("existed"),
                .replayed = in.flag("replayed"),
                .age = in.maybe_millis("age_ms")};
  return whole(in, std::move(out));
}

Result<ClaimAnswer> parse_claim(const JsonValue& value) {
  JsonFields in(value);
  const JsonValue* found = in.find("item");
  if (found == nullptr) {
    // Nothing that begins like an answer of ours, but is none.
    const auto* object = value.if_object();
    const bool ours = object != nullptr && std::ranges::any_of(*object, [](const auto& field) {
                        return field.first == "item";
                      });
    if (!ours || !in.done()) return invalid("no answer to a claim");
    ClaimAnswer out = EmptyQueue{.next_in = in.maybe_millis("next_in_ms")};
    return whole(in, std::move(out));
  }
  auto item = parse_item(*found);
  if (!item) return item.error();
  ClaimAnswer out = ClaimedItem{.item = std::move(*item),
                                .granted_ttl = in.millis("granted_ttl_ms"),
                                .store_time = read_store_time(in),
                                .replayed = in.flag("replayed"),
                                .age = in.maybe_millis("age_ms")};
  return whole(in, std::move(out));
}

Result<ItemDone> parse_item_done(const JsonValue& value) {
  auto item = parse_item(value);
  if (!item) return item.error();
  JsonFields in(value);
  ItemDone out{.item = std::move(*item),
               .repeated = in.flag("repeated"),
               .granted_ttl = in.millis("granted_ttl_ms"),
               .follow_ups = {},
               .store_time = read_store_time(in)};
  for (const std::string& text : in.texts("follow_ups")) {
    auto id = core::ItemId::parse(text);
    if (!id) return id.error();
    out.follow_ups.push_back(std::move(*id));
  }
  return whole(in, std::move(out));
}

Result<Tended> parse_tended(const JsonValue& value) {
  JsonFields in(value);
  Tended out{.requeued = read_count32(in, "requeued", 0),
             .parked = read_count32(in, "parked", 0),
             .next_in = in.maybe_millis("next_in_ms")};
  return whole(in, out);
}

Result<std::pair<QueueConfig, QueueCounts>> parse_queue(const JsonValue& value) {
  JsonFields in(value);
  auto name = read_queue(in);
  if (!name) return name.error();
  QueueConfig config{.name = std::move(*name), .limits = {}};
  if (const JsonValue* limits = in.find("limits")) config.limits = read_limits(*limits, in);
  const QueueCounts counts{.waiting = read_count32(in, "waiting", 0),
                           .ready = read_count32(in, "ready", 0),
                           .claimed = read_count32(in, "claimed", 0),
                           .parked = read_count32(in, "parked", 0),
                           .finished = read_count32(in, "finished", 0),
                           .failed = read_count32(in, "failed", 0),
                           .done = read_count32(in, "done", 0),
                           .oldest = in.moment("oldest_at_ms")};
  return whole(in, std::pair(std::move(config), counts));
}

std::optional<ItemLost> parse_item_lost(const JsonValue& value) {
  JsonFields outer(value);
  const JsonValue* inner = outer.find("error");
  if (inner == nullptr) return std::nullopt;
  JsonFields in(*inner);
  const auto cause = core::parse_item_cause(in.text("cause"));
  if (in.text("code") != "lost" || !cause) return std::nullopt;
  ItemLost out{.cause = *cause, .item = std::nullopt};
  if (const JsonValue* item = in.find("item")) {
    auto parsed = parse_item(*item);
    if (!parsed) return std::nullopt;
    out.item = std::move(*parsed);
  }
  if (!in.done()) return std::nullopt;
  return out;
}

}  // namespace stint::api
