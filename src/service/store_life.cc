#include "service/store_life.h"

#include <algorithm>

#include "base/sha256.h"
#include "base/text.h"
#include "service/ledger.h"
#include "service/watched_store.h"

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

bool in_line(const Meta& meta, const Generation& generation) {
  return meta.generation == generation ||
         std::ranges::find(meta.ancestors, generation) != meta.ancestors.end();
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

// So many of a resource's newest grants are in its history (service/lease_plan.cc keeps a few
// more).
constexpr std::uint64_t kSureHistory = 900;

// Older ones are forgotten: the record has a size, and a fence that old is adopted by hand.
constexpr std::size_t kMostAncestors = 64;

constexpr std::string_view kRefusedUntil =
    " It is refused until an operator has looked at it: see docs/guides/restore.md";

Error went_back(std::string_view what) { return unavailable(cat(what, kRefusedUntil)); }

Error emptied(const Anchor& known) {
  return went_back(cat("This store is empty, but this machine remembers generation ",
                       known.generation.hex(), " at this place."));
}

Error another_life(const Meta& meta, const Anchor& known) {
  return went_back(cat("This store is generation ", meta.generation.hex(),
                       ", but this machine remembers ", known.generation.hex(),
                       " at this place: it was replaced or made anew, and its tokens start over."));
}

Status check_memory(store::Store& store, const Meta& meta, const std::optional<Anchor>& anchor,
                    const LifeOptions& options) {
  if (options.pinned && !in_line(meta, *options.pinned)) {
    return went_back(cat("This store is generation ", meta.generation.hex(), ", not the pinned ",
                         options.pinned->hex(), "."));
  }
  if (!anchor) return {};
  if (!in_line(meta, anchor->generation)) return another_life(meta, *anchor);
  if (meta.generation != anchor->generation) return {};
  const auto revision = store.revision();
  if (!revision) return revision.error();
  if (*revision >= anchor->revision) return {};
  return fell_behind(*revision, anchor->revision);
}

// Read by the eye of who gave it: any two grants of one token differ in it.
std::uint64_t mark_of(Token token, const Owner& owner, std::optional<WallTime> at) {
  const std::string text = cat(token.number(), '\n', owner.text(), '\n', at ? to_ms(*at) : 0);
  std::uint64_t mark = 0;
  for (const char c : sha256(text).substr(0, sizeof mark)) {
    mark = (mark << 8U) | static_cast<unsigned char>(c);
  }
  return mark | 1U;
}

// The resource is not named: whoever asks a server may have no right to see it.
Error forgot(const Witness& witness) {
  return went_back(cat("This store went back in time: it does not know token ",
                       witness.token.number(),
                       ", the newest that was given from this machine. Was a backup restored?"));
}

// A name's history goes with it when it is forgotten, and its old end is dropped.
bool may_have_dropped(const Witness& witness, Token newest, Token floor) {
  return witness.token <= floor || newest.number() - witness.token.number() >= kSureHistory;
}

Status check_witness(const Witness& witness, Token floor, const store::Entry& own,
                     const store::Entry& line) {
  Token newest;
  if (own.present()) {
    auto now = decode_own(own.value);
    if (!now) return now.error();
    newest = now->token;
    if (newest == witness.token && witness.mark != 0 &&
        witness.mark != mark_of(now->token, now->owner, now->acquired_at)) {
      return forgot(witness);
    }
  }
  // Below the floor a token never comes again: it was forgotten on purpose, or its loss is covered.
  if (newest < witness.token) return witness.token <= floor ? Status() : forgot(witness);
  if (newest == witness.token || witness.mark == 0) return {};
  if (!line.present()) {
    return may_have_dropped(witness, newest, floor) ? Status() : forgot(witness);
  }
  auto past = decode_past(line.value);
  if (!past) return past.error();
  if (witness.mark == mark_of(past->token, past->owner, past->acquired_at)) return {};
  return forgot(witness);
}

}  // namespace

Witness witness_of(const std::string& resource, const core::Ownership& own) {
  // A reservation is taken up under the same token, by somebody else's commit.
  const bool lasts = own.reason != core::Reason::Transferred;
  return {resource, own.token, lasts ? mark_of(own.token, own.owner, own.acquired_at) : 0};
}

Anchor joined(const Anchor& one, const Anchor& other) {
  Anchor both = one.revision < other.revision ? other : one;
  both.highest = std::max(one.highest, other.highest);
  if (both.newest.resource.empty())
    both.newest = one.revision < other.revision ? one.newest : other.newest;
  return both;
}

std::vector<std::string> proof_keys(const Anchor& known, const store::Capabilities& can) {
  std::vector<std::string> keys = {std::string(kMetaKey)};
  const Witness& witness = known.newest;
  if (witness.resource.empty()) return keys;
  keys.push_back(own_key(witness.resource));
  keys.push_back(history_key(witness.resource, witness.token));
  if (!can.tail_record.empty()) keys.push_back(can.tail_record);
  return keys;
}

Status check_proof(const Anchor& known, const store::Capabilities& can, const store::Entry* proof) {
  if (!proof[0].present()) return emptied(known);
  auto meta = decode_meta(proof[0].value);
  if (!meta) return meta.error();
  if (!in_line(*meta, known.generation)) return another_life(*meta, known);
  // An operator has spoken since: the floor is above all that was remembered.
  if (meta->generation != known.generation || known.newest.resource.empty()) return {};
  Token floor = meta->floor;
  if (!can.tail_record.empty()) {
    auto above = floor_after_tail(proof[3]);
    if (!above) return above.error();
    floor = std::max(floor, *above);
  }
  return check_witness(known.newest, floor, proof[1], proof[2]);
}

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

}  // namespace

Error fell_behind(std::uint64_t revision, std::uint64_t seen) {
  return went_back(cat("This store went back in time: it is at revision ", revision,
                       ", and this machine has seen ", seen,
                       ". Was a backup restored? Tokens issued since are not in it."));
}

bool is_went_back(const Error& error) {
  return error.code == Code::Unavailable && error.message.ends_with(kRefusedUntil);
}

Status check_life(store::Store& bare, Anchors* anchors, const LifeOptions& options) {
  const auto watched = anchors == nullptr ? nullptr : watch_over(bare, *anchors);
  store::Store& store = watched ? *watched : bare;
  auto anchor = recall(anchors);
  if (!anchor) return anchor.error();
  auto life = read_life(store);
  if (!life) return life.error();
  if (!*life) return *anchor ? Status(emptied(**anchor)) : Status();
  if (auto ok = check_memory(store, (*life)->meta, *anchor, options); !ok) return ok;
  if (anchors == nullptr) return {};
  auto more = anchors->meet((*life)->meta.generation);
  if (!more) return more.error();
  if (!*more) return {};
  anchor = recall(anchors);
  if (!anchor) return anchor.error();
  life = read_life(store);
  if (!life) return life.error();
  return *life ? check_memory(store, (*life)->meta, *anchor, options) : emptied(**anchor);
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
      auto more = anchors != nullptr ? anchors->meet((*life)->meta.generation) : false;
      if (!more) return more.error();
      if (*more) {
        anchor = recall(anchors);
        if (!anchor) return anchor.error();
        continue;
      }
      if (auto ok = check_settled((*life)->meta); !ok) return ok.error();
      return **life;
    }
    if (options.pinned || !options.may_create) {
      return unavailable("there is no Stint store at this place, and this client may not make one");
    }
    if (*anchor) return emptied(**anchor);
    auto created = create_life(store, random, now);
    if (!created) return created.error();
    if (!*created) continue;
    if (anchors != nullptr) {
      if (auto met = anchors->meet((*created)->meta.generation); !met) return met.error();
    }
    return **created;
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
