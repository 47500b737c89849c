#include "service/once_records.h"

#include "api/wire.h"
#include "base/json_value.h"
#include "base/text.h"

namespace stint::service {
namespace {

constexpr std::string_view kPrefix = "once/";
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

Error damaged(const Error& error) {
  return unavailable(cat("the store holds a damaged once record: ", error.message));
}

}  // namespace

std::string once_key(const api::Once& once) { return cat(kPrefix, once.key); }

store::Step keep_answer(const api::Once& once, const KeptAnswer& answer) {
  KeptAnswer kept = answer;
  kept.digest = once.digest;
  if (kept.granted) kept.granted->sealed.clear();
  store::Step step;
  step.kind = store::Step::Kind::Set;
  step.key = once_key(once);
  step.expect = store::Expect::Absent;
  step.value = encode(kept);
  if (step.value.size() > kRoom) {
    shorten(kept.granted ? kept.granted->lease : kept.held->lease);
    if (kept.granted) kept.granted->previous_progress.clear();
    step.value = encode(kept);
  }
  step.timer = store::Step::TimerOp::Start;
  step.ttl = api::kOnceKept;
  return step;
}

Result<KeptAnswer> decode_kept(std::string_view value) {
  auto parsed = JsonValue::parse(value);
  if (!parsed) return damaged(parsed.error());
  JsonFields in(*parsed);
  in.require("digest");
  in.require("at_ms");
  KeptAnswer out;
  out.digest = in.text("digest");
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

Status sweep_once(store::Store& store) {
  std::string after;
  while (true) {
    auto reading = store.scan({.prefix = std::string(kPrefix),
                               .after = after,
                               .limit = store::Store::kMaxSteps,
                               .backwards = false});
    if (!reading) return reading.error();
    for (const store::Entry& entry : reading->entries) {
      if (entry.timer.state != TimerState::Fired) continue;
      store::Step step;
      step.kind = store::Step::Kind::Remove;
      step.key = entry.key;
      step.demand = TimerState::Fired;
      // A conflict: somebody else swept it.
      if (auto done = store.commit({step}, store::Sync::Relaxed); !done) return done.error();
    }
    if (reading->entries.size() < store::Store::kMaxSteps) return {};
    after = reading->entries.back().key;
  }
}

}  // namespace stint::service
