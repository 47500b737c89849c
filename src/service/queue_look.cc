// Looking at items and queues.
#include <algorithm>

#include "base/base64.h"
#include "base/text.h"
#include "service/queue_service.h"
#include "service/settling.h"

namespace stint::service {
namespace {

constexpr int kMostLooks = 10;

void count_ends(const std::vector<store::Entry>& entries, api::QueueCounts& counts) {
  for (const store::Entry& entry : entries) {
    const auto stored = decode_item(entry.value);
    if (!stored) continue;
    if (stored->item.state == core::ItemState::Failed) ++counts.failed;
    if (stored->item.state == core::ItemState::Done) ++counts.done;
  }
}

}  // namespace

Result<QueueService::Seen> QueueService::seen_of(const core::ItemId& id, Shelf shelf,
                                                 const store::Entry& entry) const {
  auto stored = decode_item(entry.value);
  if (!stored) return stored.error();
  Seen seen{.id = id,
            .shelf = shelf,
            .version = entry.version,
            .stored = std::move(*stored),
            .timers = {}};
  if (shelf == Shelf::Claimed) seen.timers.alive = entry.timer;
  if (shelf == Shelf::Later) seen.timers.delay = entry.timer;
  return seen;
}

// On whichever shelf it stands. Not every store reads several records as of one moment: an item
// that seems to be nowhere, or twice, was just moved.
Result<std::optional<QueueService::Seen>> QueueService::look(const core::ItemId& id) {
  using Answer = std::optional<Seen>;
  std::vector<std::string> keys;
  for (const Shelf shelf : kShelves) keys.push_back(shelf_key(shelf, id));
  keys.push_back(pace_key(id));
  for (int tries = 0; tries < kMostLooks; ++tries) {
    auto reading = store_.read(keys);
    if (!reading) return reading.error();
    const auto& entries = reading->entries;
    std::optional<std::size_t> where;
    bool twice = false;
    for (std::size_t i = 0; i < kShelves.size(); ++i) {
      if (!entries[i].present()) continue;
      twice = where.has_value();
      where = i;
    }
    if (twice) continue;
    if (!where) {
      if (tries == 0) continue;
      return Answer();
    }
    auto seen = seen_of(id, kShelves[*where], entries[*where]);
    if (!seen) return seen.error();
    seen->timers.pace = entries.back().timer;
    seen->store_wall = reading->store_wall;
    seen->store_time = reading->store_time;
    return Answer(std::move(*seen));
  }
  return unavailable(cat("the item ", quoted(id.text()), " moves too fast to be looked at"));
}

api::QueueItem QueueService::view_of(const Seen& seen) const {
  const StoredItem& stored = seen.stored;
  api::QueueItem view{.id = seen.id,
                      .item = stored.item,
                      .labels = stored.labels,
                      .unique = stored.unique,
                      .put_by = stored.put_by,
                      .put_at = stored.put_at,
                      .parent = stored.parent,
                      .not_before = stored.not_before,
                      .remaining = std::nullopt,
                      .ttl = Millis(0),
                      .live = false,
                      .payload = std::nullopt,
                      .checkpoint = std::nullopt,
                      .result = std::nullopt,
                      .payload_bytes = stored.payload.bytes};
  view.live = core::live({stored.item, seen.timers});
  if (seen.shelf == Shelf::Claimed) {
    view.ttl = seen.timers.alive.ttl.value_or(stored.item.limits.claim_ttl);
    if (view.live) view.remaining = seen.timers.alive.remaining;
  }
  if (seen.shelf == Shelf::Later && seen.timers.delay.state == TimerState::Running) {
    view.remaining = seen.timers.delay.remaining;
  }
  return view;
}

Result<std::string> QueueService::load(const core::ItemId& id, const Content& content) {
  if (content.pieces == 0) return content.text;
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < content.pieces; ++i) keys.push_back(blob_key(id, content.what, i));
  auto reading = store_.read(keys);
  if (!reading) return reading.error();
  std::string out;
  for (const store::Entry& entry : reading->entries) {
    auto piece = entry.present() ? decode_base64(entry.value) : std::nullopt;
    if (!piece) return unavailable(cat("a content of ", quoted(id.text()), " is not whole"));
    out += *piece;
  }
  if (out.size() == content.bytes) return out;
  return unavailable(cat("a content of ", quoted(id.text()), " is not whole"));
}

Status QueueService::load(api::QueueItem& view, const StoredItem& stored) {
  for (const auto& [content, target] :
       {std::pair{&stored.payload, &view.payload}, std::pair{&stored.checkpoint, &view.checkpoint},
        std::pair{&stored.result, &view.result}}) {
    if (!content->given) continue;
    auto bytes = load(view.id, *content);
    if (!bytes) return bytes.error();
    *target = std::move(*bytes);
  }
  return {};
}

Result<std::optional<api::QueueItem>> QueueService::show(const core::ItemId& id) {
  using Answer = std::optional<api::QueueItem>;
  auto seen = look(id);
  if (!seen) return seen.error();
  if (!*seen) return Answer();
  api::QueueItem view = view_of(**seen);
  if (auto loaded = load(view, (*seen)->stored); !loaded) return loaded.error();
  return Answer(std::move(view));
}

Result<std::vector<api::QueueItem>> QueueService::list(const api::ItemPage& page) {
  if (auto known = config(page.queue); !known) return known.error();
  auto cursor = api::parse_cursor(page);
  if (!cursor) return cursor.error();
  // In the order of api::ItemGroup.
  constexpr std::array<Shelf, 5> kListed = {Shelf::Claimed, Shelf::Ready, Shelf::Later,
                                            Shelf::Parked, Shelf::Ended};
  std::vector<api::QueueItem> out;
  for (auto at = static_cast<std::size_t>(cursor->group); at < kListed.size(); ++at) {
    const Shelf shelf = kListed.at(at);
    const bool here = at == static_cast<std::size_t>(cursor->group) && !cursor->suffix.empty();
    std::string after = here ? shelf_prefix(shelf, page.queue) + cursor->suffix : std::string();
    while (out.size() < page.limit) {
      auto found =
          store_.scan({.prefix = shelf_prefix(shelf, page.queue),
                       .after = after,
                       // Of those that do not suit there may be any number.
                       .limit = page.state ? kPage : std::min(kPage, page.limit - out.size()),
                       .backwards = false});
      if (!found) return found.error();
      if (found->entries.empty()) break;
      for (const store::Entry& entry : found->entries) {
        if (out.size() == page.limit) return out;
        const auto id = id_of(page.queue, entry.key);
        if (!id) continue;
        auto seen = seen_of(*id, shelf, entry);
        if (!seen) return seen.error();
        if (page.state && seen->stored.item.state != *page.state) continue;
        out.push_back(view_of(*seen));
      }
      after = found->entries.back().key;
    }
  }
  return out;
}

Result<std::vector<api::QueueConfig>> QueueService::queues() {
  std::vector<api::QueueConfig> out;
  std::string after;
  while (true) {
    auto found = store_.scan(
        {.prefix = std::string(kQueuePrefix), .after = after, .limit = kPage, .backwards = false});
    if (!found) return found.error();
    if (found->entries.empty()) return out;
    for (const store::Entry& entry : found->entries) {
      auto name = core::QueueName::parse(std::string_view(entry.key).substr(kQueuePrefix.size()));
      auto limits = decode_limits(entry.value);
      if (!name) return name.error();
      if (!limits) return limits.error();
      out.push_back({*name, *limits});
    }
    after = found->entries.back().key;
  }
}

Result<api::QueueCounts> QueueService::count(const core::QueueName& queue) {
  if (auto known = config(queue); !known) return known.error();
  api::QueueCounts counts;
  const std::array<std::pair<Shelf, std::size_t*>, 5> shelves = {
      {{Shelf::Ready, &counts.waiting},
       {Shelf::Later, &counts.waiting},
       {Shelf::Claimed, &counts.claimed},
       {Shelf::Parked, &counts.parked},
       {Shelf::Ended, &counts.finished}}};
  for (const auto& [shelf, number] : shelves) {
    std::string after;
    while (*number < api::kMostCounted) {
      auto found = store_.scan({.prefix = shelf_prefix(shelf, queue),
                                .after = after,
                                .limit = kPage,
                                .backwards = false});
      if (!found) return found.error();
      if (found->entries.empty()) break;
      *number += found->entries.size();
      if (shelf == Shelf::Ready) counts.ready += found->entries.size();
      if (shelf == Shelf::Ready && after.empty()) {
        auto first = decode_item(found->entries.front().value);
        if (first) counts.oldest = first->put_at;
      }
      if (shelf == Shelf::Ended) count_ends(found->entries, counts);
      after = found->entries.back().key;
    }
    *number = std::min(*number, api::kMostCounted);
  }
  counts.ready = std::min(counts.ready, api::kMostCounted);
  return counts;
}

}  // namespace stint::service
