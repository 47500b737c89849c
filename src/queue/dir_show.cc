// The directory queue: what people see of it.
#include <algorithm>

#include "base/text.h"
#include "queue/dir_queue.h"

namespace stint::queue {
namespace {

api::ItemGroup group_of(const Place& place) {
  switch (place.state) {
    case core::ItemState::Claimed: return api::ItemGroup::Claimed;
    case core::ItemState::Parked: return api::ItemGroup::Parked;
    case core::ItemState::Failed:
    case core::ItemState::Cancelled:
    case core::ItemState::Done: return api::ItemGroup::Ended;
    case core::ItemState::Waiting: break;
  }
  return place.path.starts_with("later/") ? api::ItemGroup::Later : api::ItemGroup::Ready;
}

// The epoch that the verb came with; zero: none.
std::uint64_t offered(const core::ItemVerb& verb) {
  return std::visit(
      [](const auto& one) -> std::uint64_t {
        if constexpr (requires { one.epoch; }) return one.epoch.number();
        return 0;
      },
      verb);
}

}  // namespace

// ---- the ledger

void DirQueue::record(const core::ItemId& id, std::string_view kind, const core::Item& item) {
  if (events_ == nullptr) return;
  api::Event event;
  event.at = clock_.wall();
  event.kind = kind;
  event.resource = id.text();
  event.token = item.epoch.number();
  event.owner = item.owner.text();
  if (kind == "item_claimed") {
    event.details.emplace_back("reason", std::string(core::word(item.reason)));
    event.details.emplace_back("attempt", static_cast<std::int64_t>(item.attempts));
  }
  if (item.by == "janitor") {
    event.details.emplace_back("cause", std::string(core::word(item.reason)));
  }
  if (!item.by.empty()) event.details.emplace_back("by", item.by);
  if (!item.why.empty()) event.details.emplace_back("why", item.why);
  if (kind == "item_failed" || kind == "item_put_off") {
    event.details.emplace_back("state", std::string(core::word(item.state)));
  }
  // The files say what happened; the ledger is for people, and may be away.
  [[maybe_unused]] const bool kept = events_->record(event).has_value();
}

// A stale verb changes nothing, and is on record: with the epoch that it came with.   G8
void DirQueue::note_stale(const core::ItemId& id, const core::ItemVerb& verb, core::ItemCause cause,
                          const core::Item* item) {
  ++stale_;
  if (events_ == nullptr) return;
  api::Event event;
  event.at = clock_.wall();
  event.kind = "item_refused_stale";
  event.resource = id.text();
  event.token = offered(verb);
  event.details.emplace_back("cause", std::string(core::word(cause)));
  if (item != nullptr) {
    event.owner = item->owner.text();
    event.details.emplace_back("epoch", static_cast<std::int64_t>(item->epoch.number()));
  }
  [[maybe_unused]] const bool kept = events_->record(event).has_value();
}

// ---- items

api::QueueItem DirQueue::view_of(const Seen& seen) const {
  api::QueueItem view{.id = seen.id,
                      .item = seen.record.item,
                      .labels = {},
                      .unique = text_of(seen.put, "unique"),
                      .put_by = text_of(seen.put, "put_by"),
                      .put_at = wall_from_ms(static_cast<std::int64_t>(
                          parse_digits(text_of(seen.put, "put_at_ms")).value_or(0))),
                      .parent = text_of(seen.put, "parent"),
                      .not_before = std::nullopt,
                      .remaining = std::nullopt,
                      .ttl = Millis(0),
                      .live = core::live(seen.record),
                      .payload = std::nullopt,
                      .checkpoint = std::nullopt,
                      .result = std::nullopt,
                      .payload_bytes = 0};
  for (std::size_t i = 0; i < api::kMostLabels; ++i) {
    if (auto label = text_of(seen.put, cat("label", i)); !label.empty()) {
      view.labels.push_back(std::move(label));
    }
  }
  if (seen.record.item.state == core::ItemState::Claimed) {
    view.ttl = seen.record.timers.alive.ttl.value_or(seen.record.item.limits.claim_ttl);
    if (view.live) view.remaining = seen.record.timers.alive.remaining;
  } else if (seen.place.time_ms) {
    view.not_before = wall_from_ms(*seen.place.time_ms);
    view.remaining = seen.record.timers.delay.remaining;
  }
  return view;
}

void DirQueue::load(const QueueFolder& folder, const Seen& seen, api::QueueItem& view) const {
  std::string bytes;
  if (folder.read(seen.place.path, bytes) == 0) {
    view.payload_bytes = bytes.size();
    view.payload = bytes;
  }
  for (std::uint64_t epoch = seen.place.epoch.number() + 1; epoch-- > 0 && !view.checkpoint;) {
    if (folder.read(cat("about/", seen.place.suffix, "/e", epoch, ".checkpoint"), bytes) == 0) {
      view.checkpoint = bytes;
    }
  }
  if (seen.record.item.state != core::ItemState::Done) return;
  const std::string stem = stem_of(seen.place.suffix, seen.place.epoch);
  if (read_staged(folder, stem, "result", bytes) == 0) view.result = bytes;
}

Result<std::optional<api::QueueItem>> DirQueue::show(const core::ItemId& id) {
  using Answer = std::optional<api::QueueItem>;
  auto here = folder(id.queue());
  if (!here) {
    if (here.error().code == Code::Invalid) return Answer();
    return here.error();
  }
  auto seen = look(*here, id);
  if (!seen) return seen.error();
  if (!*seen) return Answer();
  api::QueueItem view = view_of(**seen);
  load(*here, **seen, view);
  if (auto ok = here->sound(); !ok) return ok.error();
  return Answer(std::move(view));
}

Result<std::vector<api::QueueItem>> DirQueue::list(const api::ItemPage& page) {
  if (auto known = config(page.queue); !known) return known.error();
  auto here = folder(page.queue);
  if (!here) return here.error();
  std::vector<Place> places;
  const auto add = [&](const std::string& folder, const std::string& worker,
                       const std::string& path) {
    for (const std::string& name : here->list(path)) {
      auto place = parse_place(folder, worker, name);
      if (place && (!page.state || place->state == *page.state)) places.push_back(*place);
    }
  };
  for (const std::string& worker : here->list("claimed")) {
    add("claimed", worker, cat("claimed/", worker));
  }
  for (const char* folder : {"queue", "later", "parked", "failed", "cancelled", "done"}) {
    add(folder, "", folder);
  }
  auto cursor = api::parse_cursor(page);
  if (!cursor) return cursor.error();
  std::ranges::sort(places, {}, [](const Place& place) {
    return std::pair(group_of(place), std::string_view(place.suffix));
  });
  std::vector<api::QueueItem> out;
  for (const Place& place : places) {
    if (out.size() >= page.limit) break;
    const auto at = std::pair(group_of(place), std::string_view(place.suffix));
    if (at <= std::pair(cursor->group, std::string_view(cursor->suffix))) continue;
    auto id = core::ItemId::parse(cat(page.queue.text(), "-", place.suffix));
    if (!id) continue;
    auto seen = seen_of(*here, *id, place);
    if (!seen) continue;  // it moved on meanwhile
    out.push_back(view_of(*seen));
    os::FileFacts facts;
    if (here->root().facts(place.path, facts) == 0) {
      out.back().payload_bytes = static_cast<std::size_t>(facts.size);
    }
  }
  if (auto ok = here->sound(); !ok) return ok.error();
  return out;
}

Result<api::QueueCounts> DirQueue::count(const core::QueueName& queue) {
  if (auto known = config(queue); !known) return known.error();
  auto here = folder(queue);
  if (!here) return here.error();
  api::QueueCounts counts;
  auto waiting = here->list("queue");
  std::erase_if(waiting, [](const std::string& name) { return name.starts_with('.'); });
  counts.ready = waiting.size();
  counts.waiting = waiting.size() + here->list("later").size();
  for (const std::string& worker : here->list("claimed")) {
    counts.claimed += here->list(cat("claimed/", worker)).size();
  }
  counts.parked = here->list("parked").size();
  counts.failed = here->list("failed").size();
  counts.done = here->list("done").size();
  counts.finished = counts.done + counts.failed + here->list("cancelled").size();
  if (!waiting.empty()) {
    if (const auto at = here->changed(cat("queue/", waiting.front()))) {
      counts.oldest = WallTime(std::chrono::floor<Millis>(*at));
    }
  }
  if (auto ok = here->sound(); !ok) return ok.error();
  return counts;
}

}  // namespace stint::queue
