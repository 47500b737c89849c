#include "service/store_life.h"

#include <algorithm>

#include "base/text.h"
#include "service/ledger.h"

namespace stint::service {

Result<std::optional<Life>> read_life(store::Store& store) {
  auto reading = store.read({std::string(kMetaKey)});
  if (!reading) return reading.error();
  const store::Entry& entry = reading->entries.front();
  if (!entry.present()) return std::optional<Life>();
  auto meta = decode_meta(entry.value);
  if (!meta) return meta.error();
  return std::optional<Life>(Life{*meta, entry.version});
}

store::Step set_meta(const Meta& meta, store::Expect expect, store::Version version) {
  store::Step step;
  step.kind = store::Step::Kind::Set;
  step.key = kMetaKey;
  step.expect = expect;
  step.version = version;
  step.value = encode(meta);
  return step;
}

Status check_settled(const Meta& meta) {
  if (!meta.moved_to.empty()) {
    return unavailable(
        cat("the leases of this store were moved to ", meta.moved_to, ": use that store"));
  }
  if (!meta.arriving_from.empty()) {
    return unavailable(cat("leases are being moved into this store from ", meta.arriving_from,
                           "; if that was cut short, start the same `stint store copy` again"));
  }
  return {};
}

namespace {

constexpr int kMostLifeTries = 100;
// Seconds since 1970 times 2^20 stays below 2^53 until the year 2242, and outruns any real use.
// Counted to the millisecond: two recoveries within one second differ.
std::uint64_t floor_of(WallTime now) {
  const auto ms = static_cast<std::uint64_t>(std::max<std::int64_t>(to_ms(now), 0));
  return ((ms / 1000) << 20U) + ((ms % 1000) << 20U) / 1000;
}

// Older ones are forgotten: the record has a size, and a fence that old is adopted by hand.
constexpr std::size_t kMostAncestors = 64;

Error went_back(std::string_view what) {
  return unavailable(cat(what,
                         " It is refused until an operator has looked at it: see "
                         "docs/guides/restore.md"));
}

bool in_line(const Meta& meta, const Generation& generation) {
  return meta.generation == generation ||
         std::ranges::find(meta.ancestors, generation) != meta.ancestors.end();
}

Status check_memory(store::Store& store, const Meta& meta, const std::optional<Anchor>& anchor,
                    const LifeOptions& options) {
  if (options.pinned && !in_line(meta, *options.pinned)) {
    return went_back(cat("This store is generation ", meta.generation.hex(), ", not the pinned ",
                         options.pinned->hex(), "."));
  }
  if (!anchor) return {};
  if (!in_line(meta, anchor->generation)) {
    return went_back(
        cat("This store is generation ", meta.generation.hex(), ", but this machine remembers ",
            anchor->generation.hex(),
            " at this place: it was replaced or made anew, and its tokens start over."));
  }
  if (meta.generation != anchor->generation) return {};
  const auto revision = store.revision();
  if (!revision) return revision.error();
  if (*revision >= anchor->revision) return {};
  return went_back(cat("This store went back in time: it is at revision ", *revision,
                       ", and this machine has seen ", anchor->revision,
                       ". Was a backup restored? Tokens issued since are not in it."));
}

}  // namespace

Status check_same_life(const Meta& meta, const Generation& seen) {
  if (meta.generation == seen) return {};
  return went_back(cat("This store is generation ", meta.generation.hex(), ", but it was ",
                       seen.hex(),
                       " while this process had it open: an older copy was put back, or another "
                       "store stands in its place."));
}

Status check_usable(const Meta& meta, const Generation& seen) {
  if (auto ok = check_settled(meta); !ok) return ok;
  return check_same_life(meta, seen);
}

namespace {

Result<std::optional<Life>> create_life(store::Store& store, Random& random, WallTime now) {
  Meta meta;
  meta.generation = Generation::make(random);
  meta.created_at = now;
  auto answer = store.commit({set_meta(meta, store::Expect::Absent, 0)}, store::Sync::Durable);
  if (!answer) return answer.error();
  if (std::holds_alternative<store::Conflict>(*answer)) return std::optional<Life>();
  return std::optional<Life>(Life{meta, std::get<store::Committed>(*answer).versions.front()});
}

// Once per time that the store came back without its end, however many processes see it.
Status record_tail(store::Store& store, WallTime now) {
  const std::string& tail_key = store.capabilities().tail_record;
  if (tail_key.empty()) return {};
  store::Step noted;
  noted.kind = store::Step::Kind::Set;
  noted.key = "meta/tail_noted";
  auto reading = store.read({tail_key, noted.key});
  if (!reading) return reading.error();
  const store::Entry& tail = reading->entries[0];
  const store::Entry& before = reading->entries[1];
  noted.value = std::to_string(tail.version);
  if (!tail.present() || before.value == noted.value) return {};
  auto floor = floor_after_tail(tail);
  if (!floor) return floor.error();
  noted.expect = before.present() ? store::Expect::Seen : store::Expect::Absent;
  noted.version = before.version;
  api::Event event;
  event.at = now;
  event.kind = "tail_may_be_lost";
  event.details.emplace_back("why", store.capabilities().may_lose);
  event.details.emplace_back("floor", static_cast<std::int64_t>(floor->number()));
  auto answer = store.commit({noted, append_event(event)}, store::Sync::Relaxed);
  if (!answer) return answer.error();
  return {};  // a conflict: another has noted it
}

// Once per new boot, however many processes see it.
Status record_prolonged(store::Store& store, WallTime now) {
  const auto& prolonged = store.opening().prolonged;
  if (!prolonged) return {};
  store::Step once;
  once.kind = store::Step::Kind::Set;
  once.key = cat("meta/prolonged/", *prolonged);
  auto before = store.read({once.key});
  if (!before) return before.error();
  if (before->entries.front().present()) return {};
  once.expect = store::Expect::Absent;
  once.value = "{}";
  api::Event event;
  event.at = now;
  event.kind = "prolonged";
  event.details.emplace_back("why",
                             "the machine started anew: running leases got their full ttl again");
  auto answer = store.commit({once, append_event(event)}, store::Sync::Relaxed);
  if (!answer) return answer.error();
  return {};
}

}  // namespace

Result<Token> floor_after_tail(const store::Entry& tail) {
  if (!tail.present()) return Token();
  const auto ms = parse_digits(tail.value);
  constexpr std::uint64_t kMostMs = 1ULL << 53U;
  if (!ms || *ms > kMostMs) return unavailable("the store's record of a lost tail is damaged");
  const WallTime then = wall_from_ms(static_cast<std::int64_t>(*ms));
  return Token(std::min(floor_of(then), Token::kMax - 1));
}

namespace {

Result<std::optional<Anchor>> recall(Anchors* anchors) {
  if (anchors == nullptr) return std::optional<Anchor>();
  return anchors->recall();
}

Error emptied(const Anchor& anchor) {
  return went_back(cat("This store is empty, but this machine remembers generation ",
                       anchor.generation.hex(), " at this place."));
}

}  // namespace

Status check_life(store::Store& store, Anchors* anchors, const LifeOptions& options) {
  auto anchor = recall(anchors);
  if (!anchor) return anchor.error();
  auto life = read_life(store);
  if (!life) return life.error();
  if (*life) return check_memory(store, (*life)->meta, *anchor, options);
  if (*anchor) return emptied(**anchor);
  return {};
}

Result<Life> begin_life(store::Store& store, Random& random, WallTime now, Anchors* anchors,
                        const LifeOptions& options) {
  if (auto recorded = record_prolonged(store, now); !recorded) return recorded.error();
  if (auto recorded = record_tail(store, now); !recorded) return recorded.error();
  auto anchor = recall(anchors);
  if (!anchor) return anchor.error();
  for (int i = 0; i < kMostLifeTries; ++i) {
    auto life = read_life(store);
    if (!life) return life.error();
    if (*life) {
      if (auto ok = check_memory(store, (*life)->meta, *anchor, options); !ok) return ok.error();
      if (auto ok = check_settled((*life)->meta); !ok) return ok.error();
      return **life;
    }
    if (options.pinned || !options.may_create) {
      return unavailable("there is no Stint store at this place, and this client may not make one");
    }
    if (*anchor) return emptied(**anchor);
    auto created = create_life(store, random, now);
    if (!created) return created.error();
    if (*created) return **created;
  }
  return unavailable("the store's meta record changes faster than it can be read");
}

Result<Life> recover(store::Store& store, Random& random, WallTime now, Anchors* anchors,
                     const Recovery& recovery) {
  for (int i = 0; i < kMostLifeTries; ++i) {
    auto before = read_life(store);
    if (!before) return before.error();
    Meta meta = *before ? (*before)->meta : Meta{};
    if (*before) meta.ancestors.push_back(meta.generation);
    if (anchors != nullptr) {
      auto anchor = anchors->recall();
      if (!anchor) return anchor.error();
      if (*anchor && !in_line(meta, (*anchor)->generation)) {
        meta.ancestors.push_back((*anchor)->generation);
      }
      if (*anchor) meta.floor = std::max(meta.floor, (*anchor)->highest);
    }
    meta.generation = Generation::make(random);
    meta.moved_to.clear();
    meta.arriving_from.clear();
    if (!*before) meta.created_at = now;
    while (meta.ancestors.size() > kMostAncestors) meta.ancestors.erase(meta.ancestors.begin());
    const Token by_time(std::min(floor_of(now), Token::kMax - 1));
    meta.floor = std::max({meta.floor, by_time, recovery.past});
    api::Event event;
    event.at = now;
    event.kind = "recovered";
    event.details.emplace_back("by", recovery.by);
    event.details.emplace_back("why", recovery.why);
    event.details.emplace_back("floor", static_cast<std::int64_t>(meta.floor.number()));
    const auto expect = *before ? store::Expect::Seen : store::Expect::Absent;
    const store::Version version = *before ? (*before)->version : 0;
    auto answer =
        store.commit({set_meta(meta, expect, version), append_event(event)}, store::Sync::Durable);
    if (!answer) return answer.error();
    if (const auto* done = std::get_if<store::Committed>(&*answer)) {
      if (auto accepted = store.accept(); !accepted) return accepted.error();
      if (anchors != nullptr) anchors->remember({meta.generation, done->revision, meta.floor});
      return Life{meta, done->versions.front()};
    }
  }
  return unavailable("the store's meta record changes faster than it can be read");
}

}  // namespace stint::service
