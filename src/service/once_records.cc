#include "service/once_records.h"

#include <algorithm>

#include "api/wire.h"
#include "base/json_text.h"
#include "base/json_value.h"
#include "base/sha256.h"
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

// What is long and can be looked up elsewhere does not go along; the order's words only if there is
// no room for them either.
void shorten(KeptAnswer& kept, bool words) {
  api::Lease& lease = kept.granted ? kept.granted->lease : kept.held->lease;
  lease.note.clear();
  lease.progress.clear();
  lease.progress_at.reset();
  if (kept.granted) kept.granted->previous_progress.clear();
  if (!words) return;
  lease.why.clear();
  lease.by.clear();
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

// Far beyond the longest answer that there is.
constexpr std::size_t kMostParts = 1200;
constexpr std::size_t kPartsAtOnce = 60;
// They are there for as long as the record that names them.
constexpr Millis kPartsKept = api::kOnceKept + Millis(std::chrono::hours(1));

// `sum`: of the whole, so that parts of an answer that came to nothing are not those of another.
std::string part_key(const api::Once& once, std::string_view sum, std::size_t number) {
  return sum.empty() ? cat(once_key(once), ".", number)  // as older versions wrote it
                     : cat(once_key(once), ".", sum, ".", number);
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
  for (const bool words : {false, true}) {
    if (value.size() <= kRoom) break;
    shorten(kept, words);
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

store::Step keep_item(const api::Once& once, const KeptItem& kept) {
  return once_step(once, cat("{\"digest\":\"", once.digest, "\",\"at_ms\":", to_ms(kept.at),
                             ",\"item\":", json_quoted(kept.id.text()), ",\"epoch\":",
                             kept.epoch.number(), kept.existed ? ",\"existed\":true}" : "}"));
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
  KeptItem out{.digest = once.digest,
               .at = in.moment("at_ms").value_or(WallTime{}),
               .id = std::move(*id),
               .epoch = in.token("epoch"),
               .existed = in.flag("existed")};
  if (auto ok = in.done(); !ok) return damaged(ok.error());
  return std::optional<KeptItem>(std::move(out));
}

namespace {

Result<std::string> parts_of(store::Store& store, const api::Once& once, std::string_view sum,
                             std::size_t count) {
  std::string body;
  for (std::size_t first = 0; first < count; first += kPartsAtOnce) {
    std::vector<std::string> keys;
    for (std::size_t i = first; i < std::min(first + kPartsAtOnce, count); ++i) {
      keys.push_back(part_key(once, sum, i));
    }
    auto reading = store.read(keys);
    if (!reading) return reading.error();
    for (const store::Entry& entry : reading->entries) {
      if (!entry.present()) return std::string();  // about to be forgotten
      body += entry.value;
    }
  }
  return body;
}

// What the record of a key says; it is there.
Result<api::Bound> read_bound(store::Store& store, const api::Once& once, std::string_view value,
                              WallTime now) {
  auto parsed = JsonValue::parse(value);
  if (!parsed) return damaged(parsed.error());
  JsonFields in(*parsed);
  if (in.text("digest") != once.digest) return api::once_mismatch();
  const WallTime at = in.moment("at_ms").value_or(WallTime{});
  api::Bound out{.before = true, .body = in.text("body"), .age = Millis(0)};
  out.age = std::max(Millis(0), std::chrono::duration_cast<Millis>(now - at));
  out.done = in.find("parts") != nullptr || in.find("item") != nullptr;
  const auto parts = static_cast<std::size_t>(
      std::clamp<std::int64_t>(in.number("parts"), 0, static_cast<std::int64_t>(kMostParts)));
  const std::string sum = in.text("sum");
  if (auto ok = in.done(); !ok) return damaged(ok.error());
  if (parts == 0) return out;
  auto body = parts_of(store, once, sum, parts);
  if (!body) return body.error();
  out.body = std::move(*body);
  return out;
}

// In commits of their own: nobody looks for them before the record names them, and a commit that
// comes later is never on the disk without them.
Status write_ahead(store::Store& store, const api::Once& once, std::string_view sum,
                   const std::vector<std::string_view>& parts) {
  for (std::size_t first = 0; first < parts.size(); first += kPartsAtOnce) {
    std::vector<store::Step> steps;
    for (std::size_t i = first; i < std::min(first + kPartsAtOnce, parts.size()); ++i) {
      store::Step& step = steps.emplace_back(once_step(once, std::string(parts[i])));
      step.key = part_key(once, sum, i);
      step.expect = store::Expect::Any;
      step.ttl = kPartsKept;
    }
    auto done = store.commit(steps, store::Sync::Relaxed);
    // Nothing of what was asked for was done, whatever became of these.
    if (!done) return unavailable(done.error().message);
  }
  return {};
}

// The record that keeps the body, its parts written.
Result<store::Step> keep_body(store::Store& store, const api::Once& once, std::string_view body,
                              WallTime at) {
  const std::string head = cat("{\"digest\":\"", once.digest, "\",\"at_ms\":", to_ms(at));
  std::string value = cat(head, ",\"body\":", json_quoted(body), "}");
  if (value.size() <= kRoom) return once_step(once, std::move(value));
  const std::vector<std::string_view> parts = cut(body);
  if (parts.size() > kMostParts) return once_step(once, cat(head, ",\"parts\":0}"));
  const std::string sum = to_hex(sha256(body)).substr(0, 16);
  if (auto ahead = write_ahead(store, once, sum, parts); !ahead) return ahead.error();
  return once_step(once, cat(head, ",\"parts\":", parts.size(), ",\"sum\":\"", sum, "\"}"));
}

}  // namespace

Result<store::CommitAnswer> Keeper::commit(std::vector<store::Step> steps, store::Sync sync,
                                           const Write& write) const {
  if (!once_) {
    if (steps.empty()) return store::CommitAnswer(store::Committed{});
    return store_.commit(steps, sync);
  }
  auto kept = keep_body(store_, *once_, write(), clock_.wall());
  if (!kept) return kept.error();
  steps.push_back(std::move(*kept));
  auto done = store_.commit(steps, sync);
  // The last one: what else is in the way is told first, and is decided anew.
  const auto* conflict = done ? std::get_if<store::Conflict>(&*done) : nullptr;
  if (conflict != nullptr && conflict->step + 1 == steps.size()) {
    return unavailable("another request with this idempotency key was first: ask again");
  }
  return done;
}

Status Keeper::keep(const Write& write) const {
  auto done = commit({}, store::Sync::Durable, write);
  if (!done) return done.error();
  return {};
}

Result<api::Bound> OnceService::find(const api::Once& once) {
  auto reading = store_.read({once_key(once)});
  if (!reading) return reading.error();
  const store::Entry& entry = reading->entries.front();
  if (!entry.present()) return api::Bound{};
  return read_bound(store_, once, entry.value, clock_.wall());
}

Result<api::Bound> OnceService::bind(const api::Once& once) {
  const std::string value =
      cat("{\"digest\":\"", once.digest, "\",\"at_ms\":", to_ms(clock_.wall()), "}");
  auto done = store_.commit({once_step(once, value)}, store::Sync::Durable);
  if (done && std::holds_alternative<store::Committed>(*done)) return api::Bound{};
  if (!done && done.error().code != Code::UnknownOutcome) return done.error();
  auto bound = find(once);
  if (bound && !bound->before) return unavailable("the idempotency key could not be written");
  return bound;
}

Result<api::Bound> OnceService::keep(const api::Once& once, const std::string& body) {
  constexpr int kMost = 10;  // it is bound, kept or forgotten: what is in the way is soon over
  auto step = keep_body(store_, once, body, clock_.wall());
  if (!step) return step.error();
  for (int tries = 0; tries < kMost; ++tries) {
    auto reading = store_.read({once_key(once)});
    if (!reading) return reading.error();
    const store::Entry& entry = reading->entries.front();
    if (entry.present()) {
      auto known = read_bound(store_, once, entry.value, clock_.wall());
      if (!known || known->done || !known->body.empty()) return known;
    }
    step->expect = entry.present() ? store::Expect::Seen : store::Expect::Absent;
    step->version = entry.version;
    auto done = store_.commit({*step}, store::Sync::Durable);
    if (!done) return done.error();
    if (std::holds_alternative<store::Committed>(*done)) return api::Bound{};
  }
  return unavailable("the record of the idempotency key changes too fast");
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
