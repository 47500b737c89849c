// The directory queue: putting, claiming, the janitor.
#include <algorithm>
#include <cerrno>

#include "base/sha256.h"
#include "base/text.h"
#include "os/files.h"
#include "os/pause.h"
#include "queue/dir_queue.h"

namespace stint::queue {
namespace {

constexpr int kMostKeyLooks = 50;

// A claim must not list a large queue each time, nor look after every other claim.
constexpr std::size_t kNames = 64;
constexpr Millis kNamesKept{50};
constexpr Millis kTendEvery{100};
constexpr int kContention = 32;
constexpr int kMostListings = 4;
constexpr std::size_t kPriorityLetters = 6 + 2;  // "queue/" and those of the priority

// What stands in a shared directory may be anybody's: it names a file of this item, and no other.
bool proper_birth(const Notes& born, const core::ItemId& id) {
  const std::string body = text_of(born, "body");
  const std::string to = text_of(born, "to");
  const std::string stem = stem_of(id.suffix(), Token());
  const bool named = !body.empty() && body.find('/') == body.npos;
  return named && (to == "queue/" + stem ||
                   (to.starts_with(cat("later/", stem, ".")) && to.rfind('/') == 5));
}

Error claim_unknown() { return {Code::UnknownOutcome, "a claim may or may not have been made"}; }

void sooner(std::optional<Millis>& next, Millis other) {
  const Millis at = std::max(other, Millis(1));
  next = next ? std::min(*next, at) : at;
}

}  // namespace

Status DirQueue::configure(const api::QueueConfig& config,
                           const std::optional<api::Once>& /*once: keeps_answers()*/) {
  if (auto ok = core::check_limits(config.limits); !ok) return ok;
  auto here = folder(config.name, true);
  if (!here) return here.error();
  int error = here->write("queue.txt", encode(notes_of(config.limits)), nonce());
  if (error == 0) error = open_rolling(*here);
  if (error == 0) return {};
  return os::file_error("writing queue.txt", error);
}

Result<api::QueueConfig> DirQueue::config(const core::QueueName& queue) {
  auto here = folder(queue);
  if (!here) return here.error();
  const auto notes = here->notes("queue.txt");
  if (auto ok = here->sound(); !ok) return ok.error();
  if (!notes) return api::unknown_queue(queue);
  auto limits = limits_of(*notes);
  if (!limits) return limits.error();
  return api::QueueConfig{queue, *limits};
}

Result<std::vector<api::QueueConfig>> DirQueue::queues() {
  std::vector<api::QueueConfig> out;
  os::Directory root;
  std::vector<std::string> names;
  int error = os::Directory::open(path_, root);
  if (error == ENOENT) return out;
  if (error == 0) error = root.list(names);
  if (error != 0) return os::file_error("listing the queues", error);
  std::ranges::sort(names);
  for (const std::string& name : names) {
    auto queue = core::QueueName::parse(name);
    if (!queue) continue;
    auto one = config(*queue);
    if (one) out.push_back(*one);
    // Any other folder is nobody's queue; one that this user may not read is another's.
    const bool others =
        !one && (one.error().code == Code::Invalid || one.error().code == Code::Denied);
    if (!one && !others) {
      return std::move(one.error()).during(cat("reading the queue ", quoted(name)));
    }
  }
  return out;
}

// ---- put

// Several may put the item of one unique key, and one of them may be stopped for as long as the
// item lives. So it is born by a rename of the one file that the note `born` names, for good:
// whoever finds that file gone is too late, and does nothing.
int DirQueue::bear(const QueueFolder& folder, const core::ItemId& id, const std::string& path,
                   const std::string& payload) {
  const std::string about = cat("about/", id.suffix(), "/");
  const std::string own = nonce();
  if (const int error = folder.write_new(cat(about, "body.", own), payload, nonce()); error != 0) {
    return error;
  }
  Notes born{{"body", own}, {"to", path}};
  const int error = folder.write_new(about + "born", encode(born), nonce());
  if (error == EEXIST) {
    folder.remove(cat(about, "body.", own));
    const auto first = folder.notes(about + "born");
    if (folder.fault() != 0) return folder.fault();
    if (!first) return ENOENT;  // dropped meanwhile
    born = *first;
  } else if (error != 0) {
    return error;
  }
  if (!proper_birth(born, id)) return EBADMSG;
  const int moved = folder.rename(cat(about, "body.", text_of(born, "body")), text_of(born, "to"));
  return moved == ENOENT ? settle_name(folder, id) : moved;
}

// Somebody else has put it: it is as durable as if we had. EEXIST if that is so.
int DirQueue::settle_name(const QueueFolder& folder, const core::ItemId& id) const {
  const auto place = find(folder, id.suffix());
  if (folder.fault() != 0) return folder.fault();
  if (!place) return EEXIST;  // on its way, or dropped: whoever moves it syncs its name
  const int error = folder.sync_parent(place->path);
  return error == 0 || error == ENOENT ? EEXIST : error;
}

Result<api::PutAnswer> DirQueue::put_as(const QueueFolder& folder, const core::ItemId& id,
                                        const api::PutRequest& request,
                                        const core::ItemLimits& limits, const std::string& parent) {
  auto now = server_now(folder);
  if (!now) return now.error();
  Notes put = notes_of(limits);
  put["put_by"] = request.by;
  put["put_at_ms"] = cat(to_ms(*now));
  if (!parent.empty()) put["parent"] = parent;
  if (!request.unique.empty()) put["unique"] = request.unique;
  std::size_t number = 0;
  for (const std::string& label : request.labels) put[cat("label", number++)] = label;
  int error = folder.make(cat("about/", id.suffix()));
  if (error == 0) error = folder.write(cat("about/", id.suffix(), "/put"), encode(put), nonce());
  const std::string stem = stem_of(id.suffix(), Token());
  const std::string path = request.delay.count() > 0
                               ? cat("later/", stem, ".", to_ms(*now + request.delay))
                               : cat("queue/", stem);
  const bool begun = error == 0;
  if (begun) {
    error = request.unique.empty() ? folder.write_new(path, request.payload, nonce())
                                   : bear(folder, id, path, request.payload);
  }
  if (error != 0 && error != EEXIST) {
    Error failed = os::file_error("putting an item", error);
    if (begun) failed.code = Code::UnknownOutcome;  // it may have its name, and not be durable
    return failed;
  }
  ++puts_;
  look_anew(id.queue());
  wakes_.touch(id.queue().text());
  return api::PutAnswer{.id = id, .existed = false};
}

// The item that has the key: `fresh`, unless another has it already.
Result<core::ItemId> DirQueue::key_holder(const QueueFolder& folder, const std::string& key,
                                          const core::ItemId& fresh) {
  const std::string path = cat("unique/", to_hex(sha256(key)));
  for (int tries = 0; tries < kMostKeyLooks; ++tries) {
    const int error = folder.write_new(path, fresh.text(), nonce());
    if (error == 0) return fresh;
    if (error != EEXIST) return os::file_error("taking a unique key", error);
    std::string text;
    const int missing = folder.read(path, text);
    if (auto ok = folder.sound(); !ok) return ok.error();
    if (missing != 0) continue;  // it was dropped meanwhile
    auto other = core::ItemId::parse(trim(text));
    if (!other) return unavailable("a unique key is damaged");
    const bool gone = dropped(folder, *other);
    // What cannot be seen is not gone: its key stays, or the item would be put twice.
    if (auto ok = folder.sound(); !ok) return ok.error();
    if (!gone) return *other;
    // Its dropper did not get to the key.
    forget_key(folder, key, *other);
  }
  return unavailable("the item of a unique key is being dropped: put it again");
}

// It was there once and is nowhere now; what is only being moved shows itself.
bool DirQueue::dropped(const QueueFolder& folder, const core::ItemId& id) const {
  const auto born = folder.notes(cat("about/", id.suffix(), "/born"));
  if (!born || !proper_birth(*born, id)) return false;
  if (folder.there(cat("about/", id.suffix(), "/body.", text_of(*born, "body")))) return false;
  for (int looks = 0; looks < kMostKeyLooks; ++looks) {
    if (find(folder, id.suffix())) return false;
    os::pause_for(Millis(1));
  }
  return true;
}

void DirQueue::forget_key(const QueueFolder& folder, const std::string& key,
                          const core::ItemId& id) {
  const std::string path = cat("unique/", to_hex(sha256(key)));
  std::string text;
  if (folder.read(path, text) == 0 && trim(text) == id.text()) folder.remove(path);
}

Result<api::PutAnswer> DirQueue::put(const api::PutRequest& request) {
  if (auto ok = api::check_put(request); !ok) return ok.error();
  auto known = config(request.queue);
  if (!known) {
    if (known.error().code != Code::Invalid || !request.create) return known.error();
    const core::ItemLimits limits = request.limits.value_or(core::ItemLimits{});
    if (auto made = configure({request.queue, limits}); !made) return made.error();
    known = api::QueueConfig{request.queue, limits};
  }
  auto here = folder(request.queue);
  if (!here) return here.error();
  std::optional<core::ItemId> id;
  {
    const MutexLock lock(mutex_);
    id = ids_.make(request.queue, request.priority, clock_.wall(), random_);
  }
  if (!request.unique.empty()) {
    auto other = key_holder(*here, request.unique, *id);
    if (!other) return other.error();
    // Who took the key and died before it put the item: it is put now, under its name.
    const auto place = other->text() == id->text() ? std::nullopt : find(*here, other->suffix());
    if (auto ok = here->sound(); !ok) return ok.error();
    if (place) {
      if (const int error = settle_name(*here, *other); error != EEXIST) {
        return Error{Code::UnknownOutcome, os::file_error("putting an item", error).message};
      }
      return api::PutAnswer{.id = *other, .existed = true};
    }
    id = *other;
  }
  return put_as(*here, *id, request, request.limits.value_or(known->limits), "");
}

// ---- claim

Result<std::optional<api::ClaimAnswer>> DirQueue::try_claim(const QueueFolder& folder,
                                                            const api::ClaimRequest& request,
                                                            const std::string& name) {
  using Answer = std::optional<api::ClaimAnswer>;
  const bool later = name.starts_with("later/");
  const auto place = parse_place(later ? "later" : "queue", "", name.substr(6));
  if (!place || !folder.there(place->path)) return Answer();
  auto id = core::ItemId::parse(cat(request.queue.text(), "-", place->suffix));
  if (!later && strange(folder, id.has_value(), *place)) {
    adopt(folder, request.queue, name.substr(6));
    return Answer();
  }
  if (!id) return Answer();
  auto seen = seen_of(folder, *id, *place);
  if (!seen) {
    const bool there = folder.there(place->path);
    if (auto ok = folder.sound(); !ok) return ok.error();
    if (!there) return Answer();
    return seen.error();
  }
  const core::ClaimItem bid{.owner = request.owner,
                            .claim = request.claim.hash(),
                            .ttl = request.ttl,
                            .start = request.start,
                            .reports = request.reports,
                            .starts_later = request.starts_later};
  const core::ItemDecision decision =
      core::decide(seen->record, bid, {.floor = seen->next, .now_wall = seen->now});
  if (!decision.change) return Answer();
  const core::Item& item = decision.change->item;
  const std::string chance = nonce();
  const std::uint64_t epoch = item.epoch.number();
  const std::string about = cat("about/", place->suffix, "/e", epoch, ".");
  folder.make(cat("claimed/", worker_folder(request.owner)));
  Notes note = {{"owner", request.owner.text()},
                {"reason", std::string(core::word(item.reason))},
                {"ttl_ms", cat(decision.change->alive.length.count())}};
  if (request.starts_later) note.emplace("starts", "later");
  int error = folder.write(cat(about, "claim.", chance), encode(note), nonce());
  const std::string to = target_of(*seen, *decision.change, chance);
  if (error == 0) error = folder.rename(place->path, to);
  if (error == ENOENT) {
    folder.remove(cat(about, "claim.", chance));
    return Answer();
  }
  if (error == 0 && request.start) {
    error = folder.write(cat(about, "start"), encode({{"reports", request.reports ? "1" : "0"}}),
                         nonce());
  }
  if (error != 0) return claim_unknown();
  ++claims_;
  const Place there =
      parse_place("claimed", worker_folder(request.owner), to.substr(to.rfind('/') + 1))
          .value_or(*place);
  auto now_there = seen_of(folder, *id, there);
  if (!now_there) return claim_unknown();
  api::ClaimedItem out{.item = view_of(*now_there), .granted_ttl = decision.change->alive.length};
  load(folder, *now_there, out.item);
  if (!folder.sound()) return claim_unknown();
  record(*id, "item_claimed", now_there->record.item);
  return Answer(api::ClaimAnswer(std::move(out)));
}

// The next of what the last look found, if that was just now. One that meets others picks by chance
// among those of the highest priority (the first two letters), so that they do not all run after
// the same.
std::optional<std::string> DirQueue::kept_name(const core::QueueName& queue) {
  const MutexLock lock(mutex_);
  Shelf& shelf = shelves_[queue.text()];
  if (shelf.names.empty() || clock_.mono() >= shelf.names_until) return std::nullopt;
  std::size_t pick = 0;
  if (shelf.contention > 0) {
    const std::string first = shelf.names.front().substr(0, kPriorityLetters);
    const auto same = std::ranges::find_if_not(
        shelf.names, [&](const std::string& name) { return name.starts_with(first); });
    pick = random_.below(static_cast<std::uint64_t>(same - shelf.names.begin()));
  }
  std::string name = std::move(shelf.names[pick]);
  shelf.names.erase(shelf.names.begin() + static_cast<std::ptrdiff_t>(pick));
  return name;
}

void DirQueue::keep_names(const core::QueueName& queue, const std::vector<std::string>& names,
                          MonoTime start) {
  const MutexLock lock(mutex_);
  Shelf& shelf = shelves_[queue.text()];
  shelf.names_until = after(start, kNamesKept);
  shelf.names.assign(names.begin(),
                     names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kNames)));
}

// An item was put: it may come before those that are kept.
void DirQueue::look_anew(const core::QueueName& queue) {
  const MutexLock lock(mutex_);
  shelves_[queue.text()].names.clear();
}

// So long after what was begun at `start`; what takes long is done the more seldom.
MonoTime DirQueue::after(MonoTime start, Millis least) const {
  const MonoTime now = clock_.mono();
  return now + std::max<Nanos>(least, 2 * (now - start));
}

bool DirQueue::tend_is_due(const core::QueueName& queue) {
  const MutexLock lock(mutex_);
  return clock_.mono() >= shelves_[queue.text()].tend_at;
}

// From what the last look found. Empty: look.
Result<std::optional<api::ClaimAnswer>> DirQueue::claim_kept(const QueueFolder& folder,
                                                             const api::ClaimRequest& request) {
  while (const auto name = kept_name(request.queue)) {
    auto claimed = try_claim(folder, request, *name);
    if (!claimed || *claimed) {
      const MutexLock lock(mutex_);
      int& contention = shelves_[request.queue.text()].contention;
      contention = std::max(contention - 1, 0);
      return claimed;
    }
    const MutexLock lock(mutex_);
    shelves_[request.queue.text()].contention = kContention;
  }
  return std::optional<api::ClaimAnswer>();
}

Result<api::ClaimAnswer> DirQueue::claim(const api::ClaimRequest& request) {
  if (auto ok = api::check_claim(request); !ok) return ok.error();
  if (auto known = config(request.queue); !known) return known.error();
  auto here = folder(request.queue);
  if (!here) return here.error();
  std::optional<Result<api::Tended>> tended;
  if (tend_is_due(request.queue)) {
    tended = tend(request.queue);
    if (!*tended) return tended->error();
  }
  auto kept = claim_kept(*here, request);
  if (!kept) return kept.error();
  if (*kept) return std::move(**kept);
  if (!tended) tended = tend(request.queue);
  if (!*tended) return tended->error();
  for (int looks = 0; looks < kMostListings; ++looks) {
    const MonoTime start = clock_.mono();
    const std::vector<std::string> names = claimable(*here, request.queue);
    keep_names(request.queue, names, start);
    auto claimed = claim_kept(*here, request);
    if (!claimed) return claimed.error();
    if (*claimed) return std::move(**claimed);
    if (names.size() <= kNames) break;
  }
  // Nobody is told that there is nothing before it has tried all that there is. Twice: what was
  // adopted on the way has a name of its own now.
  for (int looks = 0; looks < 2; ++looks) {
    for (const std::string& name : claimable(*here, request.queue)) {
      auto claimed = try_claim(*here, request, name);
      if (!claimed) return claimed.error();
      if (*claimed) return std::move(**claimed);
    }
  }
  auto reserved = claim_reserved(*here, request);
  if (!reserved) return reserved.error();
  if (*reserved) return std::move(**reserved);
  // Nothing seen is not nothing there.
  if (auto ok = here->sound(); !ok) return ok.error();
  return api::ClaimAnswer(api::EmptyQueue{.next_in = (*tended)->next_in});
}

// What an operator has given to somebody stands in later/, for that one to take up, until the
// others may have it.
Result<std::optional<api::ClaimAnswer>> DirQueue::claim_reserved(const QueueFolder& folder,
                                                                 const api::ClaimRequest& request) {
  for (const std::string& name : folder.list("later")) {
    const auto place = parse_place("later", "", name);
    if (!place || !folder.there(note_path(*place, place->epoch.number(), "order"))) continue;
    auto claimed = try_claim(folder, request, place->path);
    if (!claimed || *claimed) return claimed;
  }
  return std::optional<api::ClaimAnswer>();
}

// What stands in queue/, in order. Files of strangers are adopted on the way, and have their names
// at the next look.
std::vector<std::string> DirQueue::claimable(const QueueFolder& folder,
                                             const core::QueueName& queue) {
  std::vector<std::string> names;
  for (const std::string& name : folder.list("queue")) {
    if (name.starts_with('.')) continue;
    if (parse_place("queue", "", name)) {
      names.push_back(cat("queue/", name));
    } else {
      adopt(folder, queue, name);
    }
  }
  return names;
}

// ---- the janitor

// A first look at where it stands, without asking where else it might: what it cannot tell is
// settled. By the time at which it is judged then.
bool DirQueue::needs_tending(const QueueFolder& folder, const core::ItemId& id,
                             const Place& place) {
  auto seen = seen_of(folder, id, place);
  return !seen || core::decide(seen->record, core::TendItem{}, {.floor = {}, .now_wall = seen->now})
                      .change.has_value();
}

Result<api::Tended> DirQueue::tend(const core::QueueName& queue) {
  api::Tended tended;
  const MonoTime start = clock_.mono();
  auto here = folder(queue);
  if (!here) return here.error();
  auto now = server_now(*here);
  if (!now) return now.error();
  for (const std::string& worker : here->list("claimed")) {
    for (const std::string& name : here->list(cat("claimed/", worker))) {
      const auto place = parse_place("claimed", worker, name);
      if (!place) continue;
      auto id = core::ItemId::parse(cat(queue.text(), "-", place->suffix));
      if (!id) continue;
      const Millis left = wall_from_ms(*place->time_ms) - *now;
      if (left.count() > 0) sooner(tended.next_in, left);
      if (!needs_tending(*here, *id, *place)) continue;
      auto settled = settle(*id, core::TendItem{}, {});
      if (!settled) return settled.error();
      if (!*settled || (*settled)->decision.outcome != core::ItemOutcome::Done) continue;
      const core::Item& item = (*settled)->seen.record.item;
      const bool parked = item.state == core::ItemState::Parked;
      ++(parked ? tended.parked : tended.requeued);
      if (parked) ++parked_;
      record(*id, parked ? "item_parked" : "item_requeued", item);
    }
  }
  for (const std::string& name : here->list("later")) {
    const auto place = parse_place("later", "", name);
    if (!place) continue;
    const Millis left = wall_from_ms(*place->time_ms) - *now;
    if (left.count() > 0) {
      sooner(tended.next_in, left);
      continue;
    }
    here->rename(place->path, cat("queue/", stem_of(place->suffix, place->epoch)));
  }
  roll_all_forward(*here);
  if (auto ok = here->sound(); !ok) return ok.error();
  roll_others_forward(queue);
  const MutexLock lock(mutex_);
  shelves_[queue.text()].tend_at = after(start, kTendEvery);
  return tended;
}

}  // namespace stint::queue
