#include "service/once_records.h"

#include <algorithm>

#include "api/wire.h"
#include "base/json_text.h"
#include "base/json_value.h"
#include "base/text.h"

namespace stint::service {
namespace {

constexpr std::size_t kRoom = 3900;  // of the 4 KiB that a record has

std::string encode(const KeptAnswer& answer) {
  std::string body =
      answer.granted ? api::to_json(*answer.granted, std::nullopt) : api::to_json(*answer.held);
  return cat("{\"digest\":\"", answer.digest, "\",\"at_ms\":", to_ms(answer.at), ",\"",
             answer.granted ? "granted" : "held", "\":", body, "}");
}

// What is long and can be looked up elsewhere does not go along.
void shorten(api::Lease& lease) {
  lease.note.clear();
  lease.progress.clear();
  lease.progress_at.reset();
}

store::Step once_step(const api::Once& once, std::string value) {
  store::Step step;
  step.kind = store::Step::Kind::Set;
  step.key = once_key(once);
  step.expect = store::Expect::Absent;
  step.value = std::move(value);
  step.timer = store::Step::TimerOp::Start;
  step.ttl = api::kOnceKept;
  return step;
}

Error damaged(const Error& error) {
  return unavailable(cat("the store holds a damaged once record: ", error.message));
}

constexpr std::size_t kMostParts = 16;

std::string part_key(const api::Once& once, std::size_t number) {
  return cat(once_key(once), ".", number);
}

// Never within a character: a store may keep text as text.
std::vector<std::string_view> cut(std::string_view body) {
  std::vector<std::string_view> out;
  while (!body.empty()) {
    std::size_t size = std::min(kRoom, body.size());
    while (size < body.size() && size > 1 && (body[size] & 0xC0) == 0x80) --size;
    out.push_back(body.substr(0, size));
    body.remove_prefix(size);
  }
  return out;
}

}  // namespace

std::string once_key(const api::Once& once) { return cat(kAnswerPrefix, once.key); }

store::Step keep_answer(const api::Once& once, const KeptAnswer& answer) {
  KeptAnswer kept = answer;
  kept.digest = once.digest;
  if (kept.granted) {
    kept.granted->sealed.clear();
    kept.granted->sealing.clear();
  }
  std::string value = encode(kept);
  if (value.size() > kRoom) {
    shorten(kept.granted ? kept.granted->lease : kept.held->lease);
    if (kept.granted) kept.granted->previous_progress.clear();
    value = encode(kept);
  }
  return once_step(once, std::move(value));
}

Result<KeptAnswer> decode_kept(const api::Once& once, std::string_view value) {
  auto parsed = JsonValue::parse(value);
  if (!parsed) return damaged(parsed.error());
  JsonFields in(*parsed);
  in.require("digest");
  in.require("at_ms");
  KeptAnswer out;
  out.digest = in.text("digest");
  // First: what another kind of request keeps looks different.
  if (in.done() && out.digest != once.digest) return api::once_mismatch();
  out.at = in.moment("at_ms").value_or(WallTime{});
  if (const JsonValue* body = in.find("granted")) {
    auto granted = api::parse_granted(*body);
    if (!granted) return damaged(granted.error());
    out.granted = std::move(*granted);
  } else if (const JsonValue* other = in.find("held")) {
    auto held = api::parse_held(*other);
    if (!held) return damaged(held.error());
    out.held = std::move(*held);
  } else {
    in.fail("there is no answer");
  }
  if (auto ok = in.done(); !ok) return damaged(ok.error());
  return out;
}

namespace {

// The name of a queue may be long, and the follow-ups of one completion mostly go to one.
std::string in_short(const std::vector<core::ItemId>& ids) {
  std::vector<std::string> queues;
  std::vector<std::string> out;
  for (const core::ItemId& id : ids) {
    const auto at = std::ranges::find(queues, id.queue().text());
    out.push_back(cat(at - queues.begin(), "-", id.suffix()));
    if (at == queues.end()) queues.push_back(id.queue().text());
  }
  return cat("\"queues\":", api::to_json(queues), ",\"in_queues\":", api::to_json(out));
}

Result<std::vector<core::ItemId>> read_follow_ups(JsonFields& in) {
  const std::vector<std::string> queues = in.texts("queues");
  std::vector<std::string> texts = in.texts("follow_ups");
  for (const std::string& one : in.texts("in_queues")) {
    const std::size_t dash = std::min(one.find('-'), one.size());
    const auto at = parse_digits(one.substr(0, dash));
    if (!at || *at >= queues.size()) return damaged(invalid("a follow-up without a queue"));
    texts.push_back(cat(queues[*at], one.substr(dash)));
  }
  std::vector<core::ItemId> out;
  for (const std::string& text : texts) {
    auto next = core::ItemId::parse(text);
    if (!next) return damaged(next.error());
    out.push_back(std::move(*next));
  }
  return out;
}

}  // namespace

store::Step keep_item(const api::Once& once, const KeptItem& kept) {
  const std::string head =
      cat("{\"digest\":\"", once.digest, "\",\"at_ms\":", to_ms(kept.at),
          ",\"item\":", json_quoted(kept.id.text()), ",\"epoch\":", kept.epoch.number());
  std::vector<std::string> ids;
  for (const core::ItemId& id : kept.follow_ups) ids.push_back(id.text());
  std::string value = cat(head, ",\"follow_ups\":", api::to_json(ids), "}");
  if (value.size() > kRoom) value = cat(head, ",", in_short(kept.follow_ups), "}");
  // Without them it is told that they are not known, never that there were none.
  if (value.size() > kRoom) value = head + "}";
  return once_step(once, std::move(value));
}

Millis age_of(const KeptItem& kept, WallTime now) {
  return std::max(Millis(0), std::chrono::duration_cast<Millis>(now - kept.at));
}

Result<std::optional<KeptItem>> find_kept_item(store::Store& store, const api::Once& once) {
  auto reading = store.read({once_key(once)});
  if (!reading) return reading.error();
  const store::Entry& entry = reading->entries.front();
  if (!entry.present()) return std::optional<KeptItem>();
  auto parsed = JsonValue::parse(entry.value);
  if (!parsed) return damaged(parsed.error());
  JsonFields in(*parsed);
  if (in.text("digest") != once.digest) return api::once_mismatch();
  auto id = core::ItemId::parse(in.text("item"));
  if (!id) return damaged(id.error());
  const bool known = in.find("follow_ups") != nullptr || in.find("in_queues") != nullptr;
  if (!known) {
    return Error{Code::UnknownOutcome,
                 "this was done before, but its follow-ups had no room in the answer that was "
                 "kept: look at their queues"};
  }
  auto follow_ups = read_follow_ups(in);
  if (!follow_ups) return follow_ups.error();
  KeptItem out{.digest = once.digest,
               .at = in.moment("at_ms").value_or(WallTime{}),
               .id = std::move(*id),
               .epoch = in.token("epoch"),
               .follow_ups = std::move(*follow_ups)};
  if (auto ok = in.done(); !ok) return damaged(ok.error());
  return std::optional<KeptItem>(std::move(out));
}

Result<api::Bound> OnceService::bind(const api::Once& once) {
  const std::string value =
      cat("{\"digest\":\"", once.digest, "\",\"at_ms\":", to_ms(clock_.wall()), "}");
  auto done = store_.commit({once_step(once, value)}, store::Sync::Durable);
  if (done && std::holds_alternative<store::Committed>(*done)) return api::Bound{};
  if (!done && done.error().code != Code::UnknownOutcome) return done.error();
  auto reading = store_.read({once_key(once)});
  if (!reading) return reading.error();
  const store::Entry& entry = reading->entries.front();
  if (!entry.present()) return unavailable("the idempotency key could not be written");
  auto parsed = JsonValue::parse(entry.value);
  if (!parsed) return damaged(parsed.error());
  JsonFields in(*parsed);
  if (in.text("digest") != once.digest) return api::once_mismatch();
  const WallTime at = in.moment("at_ms").value_or(WallTime{});
  api::Bound out{.before = true, .body = in.text("body"), .age = Millis(0)};
  out.age = std::max(Millis(0), std::chrono::duration_cast<Millis>(clock_.wall() - at));
  out.done = in.find("parts") != nullptr;
  const auto parts = static_cast<std::size_t>(
      std::clamp<std::int64_t>(in.number("parts"), 0, static_cast<std::int64_t>(kMostParts)));
  if (auto ok = in.done(); !ok) return damaged(ok.error());
  if (parts == 0) return out;
  auto body = parts_of(once, parts);
  if (!body) return body.error();
  out.body = std::move(*body);
  return out;
}

Result<std::string> OnceService::parts_of(const api::Once& once, std::size_t count) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < count; ++i) keys.push_back(part_key(once, i));
  auto reading = store_.read(keys);
  if (!reading) return reading.error();
  std::string body;
  for (const store::Entry& entry : reading->entries) {
    if (!entry.present()) return std::string();  // about to be forgotten
    body += entry.value;
  }
  return body;
}

// A long one stands beside its record, in parts. In one commit: whole or not at all.
Status OnceService::keep(const api::Once& once, const std::string& body) {
  const std::string head =
      cat("{\"digest\":\"", once.digest, "\",\"at_ms\":", to_ms(clock_.wall()));
  std::vector<store::Step> steps = {
      once_step(once, cat(head, ",\"body\":", json_quoted(body), "}"))};
  if (steps.front().value.size() > kRoom) {
    const std::vector<std::string_view> parts = cut(body);
    const bool fits = parts.size() <= kMostParts;
    steps.front().value = cat(head, ",\"parts\":", fits ? parts.size() : 0, "}");
    for (std::size_t i = 0; fits && i < parts.size(); ++i) {
      steps.push_back(once_step(once, std::string(parts[i])));
      steps.back().key = part_key(once, i);
    }
  }
  for (store::Step& step : steps) step.expect = store::Expect::Any;
  auto done = store_.commit(steps, store::Sync::Durable);
  if (!done) return done.error();
  return {};
}

Status OnceService::forget(const api::Once& once) {
  store::Step step;
  step.kind = store::Step::Kind::Remove;
  step.key = once_key(once);
  auto done = store_.commit({step}, store::Sync::Relaxed);
  if (!done) return done.error();
  return {};
}

Result<std::string> sweep_once(store::Store& store, const std::string& after) {
  auto reading = store.scan({.prefix = std::string(kAnswerPrefix),
                             .after = after,
                             .limit = store::Store::kMaxSteps,
                             .backwards = false});
  if (!reading) return reading.error();
  std::vector<store::Step> steps;
  for (const store::Entry& entry : reading->entries) {
    if (entry.timer.state != TimerState::Fired) continue;
    store::Step& step = steps.emplace_back();
    step.kind = store::Step::Kind::Remove;
    step.key = entry.key;
    step.demand = TimerState::Fired;
  }
  if (!steps.empty()) {
    // A conflict: somebody else sweeps here; what they leave is for the next time.
    if (auto done = store.commit(steps, store::Sync::Relaxed); !done) return done.error();
  }
  if (reading->entries.size() < store::Store::kMaxSteps) return std::string();
  return reading->entries.back().key;
}

}  // namespace stint::service
