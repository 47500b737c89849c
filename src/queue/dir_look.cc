// The directory queue: where an item stands, and what the notes beside it say.
#include <algorithm>

#include "base/text.h"
#include "os/pause.h"
#include "queue/dir_queue.h"

namespace stint::queue {
namespace {

constexpr int kMostLooks = 50;

// "e12.start" -> 12, "start"; anything else: empty.
std::optional<std::pair<std::uint64_t, std::string>> epoch_note(const std::string& name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos || name.front() != 'e') return std::nullopt;
  const auto epoch = parse_digits(std::string_view(name).substr(1, dot - 1));
  if (!epoch) return std::nullopt;
  return std::pair(*epoch, name.substr(dot + 1));
}

Timer timer_until(WallTime now, WallTime end, Millis ttl) {
  const Millis left = end - now;
  return {left.count() > 0 ? TimerState::Running : TimerState::Fired, left, ttl};
}

WallTime wall_of(Nanos server) { return WallTime(std::chrono::floor<Millis>(server)); }

// The names of an item's notes, by epoch.
using NotesByEpoch = std::map<std::uint64_t, std::vector<std::string>>;

NotesByEpoch notes_by_epoch(const QueueFolder& folder, const Place& place) {
  NotesByEpoch out;
  for (const std::string& name : folder.list(cat("about/", place.suffix))) {
    if (auto note = epoch_note(name)) out[note->first].push_back(note->second);
  }
  return out;
}

// How a claim ended: by the note of the highest turn; those of lower ones were written by who was
// stopped before its rename, or came too late. A late word counts once it has moved the item: it
// never parks it.
std::string last_end(const std::vector<std::string>& names, bool parked) {
  std::string last;
  std::uint64_t highest = 0;
  for (const std::string& name : names) {
    const auto words = split(name, '.');
    if (words[0] != "said" && words[0] != "janitor") continue;
    if (words.size() == 2 && words[1] == kLateTurn) {
      if (!parked) return name;
      continue;
    }
    const auto turn = words.size() == 2 ? parse_digits(words[1]) : 0;
    if (!turn || (*turn < highest && !last.empty())) continue;
    highest = *turn;
    last = name;
  }
  return last;
}

// It was given back, and that used up no attempt.
bool given_back(const std::vector<std::string>& names) {
  const std::string last = last_end(names, false);
  if (!last.starts_with("said")) return false;
  return std::ranges::find(names, cat("back", last.substr(4))) != names.end();
}

void add_end(const QueueFolder& folder, const Place& place, const NotesByEpoch& by_epoch,
             core::Item& item) {
  const auto present = by_epoch.find(place.epoch.number());
  if (present == by_epoch.end()) return;
  const std::string last = last_end(present->second, place.state == core::ItemState::Parked);
  const auto note = folder.notes(note_path(place, place.epoch.number(), last));
  if (last.empty() || !note) return;
  item.why = text_of(*note, "why");
  if (last.starts_with("janitor")) {
    item.by = "janitor";
    item.reason = core::parse_reason(text_of(*note, "reason")).value_or(core::Reason::Expired);
    return;
  }
  item.last = core::parse_last_word(text_of(*note, "word")).value_or(core::LastWord::Failed);
  item.by.clear();
  item.reason = core::Reason::Released;
}

// Progress and attempts, of all epochs up to the present one.
void add_epochs(const QueueFolder& folder, const Place& place, const NotesByEpoch& by_epoch,
                core::Item& item) {
  for (const auto& [epoch, notes] : by_epoch) {
    if (epoch > place.epoch.number()) break;
    const auto has = [&names = notes](std::string_view what) {
      return std::ranges::any_of(names, [&](const std::string& name) {
        return name == what || name.starts_with(cat(what, "."));
      });
    };
    if (has("progress")) {
      const std::string path = note_path(place, epoch, "progress");
      item.progress = text_of(folder.notes(path).value_or(Notes()), "marker");
      item.progress_epoch = Token(epoch);
      if (const auto at = folder.changed(path)) item.progress_at = wall_of(*at);
    }
    if (has("order")) {
      const Notes order = folder.notes(note_path(place, epoch, "order")).value_or(Notes());
      const std::string what = text_of(order, "what");
      if (what == "requeue" || what == "replay") item.attempts = 0;
      continue;
    }
    if (has("claim") && !given_back(notes)) ++item.attempts;
  }
}

void add_order(const Notes& order, core::Item& item) {
  const std::string what = text_of(order, "what");
  item.claim = {};
  item.why = text_of(order, "why");
  item.by = text_of(order, "by");
  item.order = text_of(order, "id");
  item.reason = what == "reassign" ? core::Reason::Transferred
                : what == "cancel" ? core::Reason::Cancelled
                                   : core::Reason::Revoked;
  if (auto to = Owner::parse(text_of(order, "to"))) item.reserved_for = *to;
}

// Who claimed it with the present epoch, and whether the work has begun.
void add_claim(const QueueFolder& folder, const Place& place, const NotesByEpoch& by_epoch,
               core::Item& item) {
  const std::uint64_t now = place.epoch.number();
  if (now > 0) item.claim = ClaimHash(place.nonce.empty() ? "granted" : place.nonce);
  if (const auto start = folder.notes(note_path(place, now, "start"))) {
    item.started = true;
    item.reports = text_of(*start, "reports") == "1";
  }
  if (item.progress_epoch == place.epoch && now > 0) item.started = true;
  const auto present = by_epoch.find(now);
  if (present == by_epoch.end()) return;
  for (const std::string& name : present->second) {
    if (!name.starts_with("claim.")) continue;
    const bool mine = place.nonce.empty() || name == cat("claim.", place.nonce);
    if (!mine) continue;
    const std::string path = note_path(place, now, name);
    const Notes claim = folder.notes(path).value_or(Notes());
    if (auto owner = Owner::parse(text_of(claim, "owner"))) item.owner = *owner;
    item.reason = core::parse_reason(text_of(claim, "reason")).value_or(core::Reason::First);
    if (const auto at = folder.changed(path)) item.claimed_at = wall_of(*at);
  }
}

// Counted from the newest of claim, start and checkpoint.
Timer pace_of(const QueueFolder& folder, const Place& place, const core::Item& item, WallTime now) {
  const Millis timeout = item.limits.progress_timeout;
  if (timeout.count() <= 0) return {};
  std::optional<WallTime> last = item.claimed_at;
  for (const char* what : {"start", "progress"}) {
    if (const auto at = folder.changed(note_path(place, place.epoch.number(), what))) {
      last = std::max(last.value_or(wall_of(*at)), wall_of(*at));
    }
  }
  return timer_until(now, last.value_or(now) + timeout, timeout);
}

}  // namespace

// The notes say which epochs there may have been: the highest is tried first. Nothing is found of
// an item that is just being moved: the caller looks again.
std::optional<Place> DirQueue::find(const QueueFolder& folder, const std::string& suffix) const {
  std::uint64_t highest = 0;
  for (const std::string& name : folder.list(cat("about/", suffix))) {
    if (const auto note = epoch_note(name)) highest = std::max(highest, note->first);
  }
  for (const std::string& worker : folder.list("claimed")) {
    for (const std::string& name : folder.list(cat("claimed/", worker))) {
      if (!name.starts_with(suffix)) continue;
      if (auto place = parse_place("claimed", worker, name)) return place;
    }
  }
  for (const std::string& name : folder.list("later")) {
    if (!name.starts_with(suffix)) continue;
    if (auto place = parse_place("later", "", name)) return place;
  }
  for (std::uint64_t epoch = highest + 1; epoch-- > 0;) {
    for (const core::ItemState state : core::kItemStates) {
      if (state == core::ItemState::Claimed) continue;
      const std::string where(folder_of(state));
      const std::string name = stem_of(suffix, Token(epoch));
      if (folder.there(cat(where, "/", name))) return parse_place(where, "", name);
    }
  }
  return std::nullopt;
}

// What the notes of an epoch say of it, and of those before.
void DirQueue::add_notes(const QueueFolder& folder, const Seen& seen, core::Item& item) const {
  const NotesByEpoch by_epoch = notes_by_epoch(folder, seen.place);
  add_epochs(folder, seen.place, by_epoch, item);
  const auto notes = [&](std::string_view what) {
    return folder.notes(note_path(seen.place, seen.place.epoch.number(), what));
  };
  if (const auto order = notes("order"); order && item.state != core::ItemState::Claimed) {
    return add_order(*order, item);
  }
  add_claim(folder, seen.place, by_epoch, item);
  if (item.state != core::ItemState::Claimed) add_end(folder, seen.place, by_epoch, item);
  if (item.state == core::ItemState::Done) {
    std::string digest;
    read_staged(folder, stem_of(seen.place.suffix, seen.place.epoch), "digest", digest);
    item.last = core::LastWord::Completed;
    item.digest = digest;
    item.why.clear();
    item.by.clear();
  }
}

Result<DirQueue::Seen> DirQueue::seen_of(const QueueFolder& folder, const core::ItemId& id,
                                         const Place& place) {
  Seen seen{.id = id, .place = place, .record = {}, .put = {}, .next = {}};
  auto now = server_now(folder);
  if (!now) return now.error();
  seen.now = *now;
  const auto put = folder.notes(cat("about/", place.suffix, "/put"));
  if (!put) return unavailable(cat("the notes about ", quoted(id.text()), " are missing"));
  seen.put = *put;
  auto limits = limits_of(*put);
  if (!limits) return limits.error();
  core::Item& item = seen.record.item;
  item.limits = *limits;
  item.state = place.state;
  item.epoch = place.epoch;
  add_notes(folder, seen, item);
  core::ItemTimers& timers = seen.record.timers;
  if (place.state == core::ItemState::Claimed) {
    const auto claim =
        folder.notes(note_path(place, place.epoch.number(), cat("claim.", place.nonce)));
    const auto ttl = parse_digits(claim ? text_of(*claim, "ttl_ms") : "");
    timers.alive = timer_until(seen.now, wall_from_ms(*place.time_ms),
                               ttl ? Millis(static_cast<std::int64_t>(*ttl)) : limits->claim_ttl);
    const bool to_start = claim && text_of(*claim, "starts") == "later" && !item.started;
    if (!to_start) timers.pace = pace_of(folder, place, item, seen.now);
  } else if (place.time_ms) {
    timers.delay = timer_until(seen.now, wall_from_ms(*place.time_ms), Millis(0));
  }
  if (place.state != core::ItemState::Waiting && place.state != core::ItemState::Claimed) {
    // Its last rename: the server's clock then.
    os::FileFacts facts;
    if (folder.root().facts(place.path, facts) == 0) item.ended_at = wall_of(facts.changed);
  }
  // Beyond every number that a note names: an order that was never carried out leaves its own.
  std::uint64_t highest = place.epoch.number();
  for (const std::string& name : folder.list(cat("about/", place.suffix))) {
    if (const auto note = epoch_note(name); note && note->second == "order") {
      highest = std::max(highest, note->first);
    }
  }
  seen.next = Token(highest);
  // Judged by all that is there, or not at all.
  if (auto ok = folder.sound(); !ok) return ok.error();
  return seen;
}

Result<std::optional<DirQueue::Seen>> DirQueue::look(const QueueFolder& folder,
                                                     const core::ItemId& id) {
  using Answer = std::optional<Seen>;
  for (int tries = 0; tries < kMostLooks; ++tries) {
    // Without this note there is no such item, or it was dropped; with it, it is being moved.
    const bool there = folder.there(cat("about/", id.suffix(), "/put"));
    if (auto ok = folder.sound(); !ok) return ok.error();
    if (!there) return Answer();
    if (tries > 0) os::pause_for(Millis(1));
    const auto place = find(folder, id.suffix());
    if (auto ok = folder.sound(); !ok) return ok.error();
    if (!place) continue;
    auto seen = seen_of(folder, id, *place);
    if (!seen) {
      if (auto ok = folder.sound(); !ok) return ok.error();
      if (!folder.there(place->path)) continue;  // it was dropped, or moved, meanwhile
      return seen.error();
    }
    return Answer(std::move(*seen));
  }
  return Answer();
}

}  // namespace stint::queue
