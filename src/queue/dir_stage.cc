// The directory queue: what a completion brings, on its way.
#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "queue/dir_queue.h"

namespace stint::queue {

// Puts it beside the item as a whole: under a turn of its own, so that one without done/ is rubbish
// and in nobody's way. Where no claim stands any more there are no turns: the first one is the
// epoch's late word, and another (`second`) brings that to its end before it is told so.
int DirQueue::put_stage(const QueueFolder& folder, const Seen& seen, const std::string& making,
                        bool& second) {
  const std::string stage =
      cat("staged/", stem_of(seen.place.suffix, seen.place.epoch), ".", turn_of(seen.place));
  const int error = folder.root().rename(making, stage);
  if (error == 0) return folder.sync_parent(stage);
  if (error != ENOTEMPTY && error != EEXIST) return error;
  if (const int failed = folder.sync_parent(stage); failed != 0) return failed;
  std::string mine;
  std::string there;
  int failed = folder.read(cat(making, "/digest"), mine);
  if (failed == 0) failed = folder.read(cat(stage, "/digest"), there);
  second = failed == 0 && there != mine;
  return failed;
}

// The stage that counts: of the highest turn, or the late one. REQUIRES: it is in done/, or was.
std::string DirQueue::stage_of(const QueueFolder& folder, const std::string& stem) {
  const std::string plain = cat("staged/", stem);
  if (folder.there(plain)) return plain;
  std::string best;
  std::uint64_t highest = 0;
  for (const std::string& name : folder.list("staged")) {
    if (!name.starts_with(stem + ".")) continue;
    const std::string turn = name.substr(stem.size() + 1);
    const auto number = turn == kLateTurn ? ~std::uint64_t{0} : parse_digits(turn);
    if (!number || *number < highest) continue;
    highest = *number;
    best = cat("staged/", name);
  }
  // Not listed: somebody has given it its last name just now.
  return best.empty() || folder.there(plain) ? plain : best;
}

// From done/ on there is one stage, without a turn; the others are rubbish.
void DirQueue::settle_stage(const QueueFolder& folder, const std::string& stem) {
  const std::string plain = cat("staged/", stem);
  if (folder.there(plain)) return;
  const std::string best = stage_of(folder, stem);
  // What could not be looked at is not "not there": another may be the one that counts.   G10
  if (!folder.sound()) return;
  if (best != plain && folder.root().rename(best, plain) != 0 && !folder.there(plain)) return;
  for (const std::string& name : folder.list("staged")) {
    if (name.starts_with(stem + ".")) folder.remove_all(cat("staged/", name));
  }
}

// The same for who has just moved it to done/, from the turn that is known to be the highest: the
// stages of all that was ever done need not be listed. False: it is to be settled.
bool DirQueue::name_stage(const QueueFolder& folder, const std::string& stem, std::uint64_t turn) {
  constexpr std::uint64_t kFewTurns = 32;
  const std::string plain = cat("staged/", stem);
  if (turn > kFewTurns || folder.root().rename(cat(plain, ".", turn), plain) != 0) return false;
  for (std::uint64_t lower = 0; lower < turn; ++lower) {
    if (const std::string rubbish = cat(plain, ".", lower); folder.there(rubbish)) {
      folder.remove_all(rubbish);
    }
  }
  return true;
}

// Moves what a completion has put into its queues. By anybody, any number of times, from wherever
// somebody else stopped: each rename is of a name that is there once.   G10
void DirQueue::move_follow_ups(const QueueFolder& folder, const std::string& stem) {
  const std::string stage = cat("staged/", stem);
  const std::vector<std::string> names = folder.list(stage);
  bool waits = names.empty();  // it is not seen under its last name: nothing is known of it
  for (const std::string& name : names) {
    // then.ITEM.QUEUE, and what is written beside it; anything else is not ours.
    constexpr std::size_t kQueueAt = 5 + core::ItemId::kSuffix + 1;
    const bool noted = std::ranges::binary_search(names, cat(name, ".put"));
    if (!noted || !name.starts_with("then.") || name.size() <= kQueueAt) continue;
    const auto id =
        core::ItemId::parse(cat(name.substr(kQueueAt), "-", name.substr(5, core::ItemId::kSuffix)));
    if (!id || name[kQueueAt - 1] != '.') continue;
    waits |= !move_follow_up(folder, cat(stage, "/", name), *id);
  }
  // Nobody need look after it any more.
  if (!waits && folder.sound()) folder.remove(cat("rolling/", stem));
}

// False: it waits still.
bool DirQueue::move_follow_up(const QueueFolder& folder, const std::string& path,
                              const core::ItemId& id) {
  const std::string& suffix = id.suffix();
  auto target = this->folder(id.queue());
  if (!target) return false;  // the queue was taken away by hand: it waits for it
  std::string put;
  if (folder.read(cat(path, ".put"), put) != 0) return false;
  target->make(cat("about/", suffix));
  if (target->write(cat("about/", suffix, "/put"), put, nonce()) != 0) return false;
  const std::string up = cat("../", id.queue().text(), "/queue/", suffix, ".e0");
  const int error = folder.rename(path, up);
  if (error == 0) wakes_.touch(id.queue().text());
  // Another has moved it, and it may have been claimed since.
  return error == 0 || (error == ENOENT && !folder.there(path) && folder.sound());
}

// Of what somebody else has completed: it survives a power cut before its follow-ups do.
void DirQueue::roll_forward(const QueueFolder& folder, const std::string& stem) {
  if (folder.sync_parent(cat("done/", stem)) != 0) return;
  settle_stage(folder, stem);
  move_follow_ups(folder, stem);
}

// ---- rolling/: one empty file for each completion that brings follow-ups, from before it counts
// until they all have their own names. So a janitor need not look through all that was ever done.

// A queue of before there was such a folder gets it whole, with a file for each stage.
int DirQueue::open_rolling(const QueueFolder& folder) {
  if (folder.there("rolling")) return 0;
  if (folder.fault() != 0) return folder.fault();
  const std::string making = cat("tmp/", nonce(), ".rolling");
  int error = folder.make(making);
  for (const std::string& name : folder.list("staged")) {
    const auto words = split(name, '.');  // ITEM.eN, or ITEM.eN.TURN
    const bool brings = std::ranges::any_of(folder.list(cat("staged/", name)), [](const auto& one) {
      return one.starts_with("then.");
    });
    if (error != 0 || words.size() < 2 || !brings) continue;
    error = folder.mark(cat(making, "/", words[0], ".", words[1]));
  }
  if (error == 0) error = folder.fault();
  if (error == 0) error = folder.sync_parent(making + "/");
  if (error == 0) error = folder.root().rename(making, "rolling");
  if (error == 0) return folder.root().sync();
  folder.remove_all(making);
  return error == ENOTEMPTY || error == EEXIST ? 0 : error;
}

int DirQueue::mark_rolling(const QueueFolder& folder, const std::string& stem) {
  if (const int error = open_rolling(folder); error != 0) return error;
  const std::string path = cat("rolling/", stem);
  const int error = folder.mark(path);
  return error == 0 ? folder.sync_parent(path) : error;
}

void DirQueue::roll_all_forward(const QueueFolder& folder) {
  if (open_rolling(folder) != 0) return;
  for (const std::string& stem : folder.list("rolling")) {
    if (folder.there(cat("done/", stem))) {
      roll_forward(folder, stem);
    } else if (came_to_nothing(folder, stem)) {
      folder.remove(cat("rolling/", stem));
    }
  }
}

// What was completed in other queues may have brought items to this one, and nobody may claim from
// those queues any more.
void DirQueue::roll_others_forward(const core::QueueName& but) {
  os::Directory root;
  std::vector<std::string> names;
  if (os::Directory::open(path_, root) != 0 || root.list(names) != 0) return;
  for (const std::string& name : names) {
    const auto queue = core::QueueName::parse(name);
    if (!queue || *queue == but) continue;
    if (auto other = folder(*queue); other && other->there("rolling")) roll_all_forward(*other);
  }
}

// The completion can no longer happen: its item was claimed again, or dropped, or it failed.
bool DirQueue::came_to_nothing(const QueueFolder& folder, const std::string& stem) const {
  const auto staged = parse_place("done", "", stem);
  if (!staged) return false;
  const bool known = folder.there(cat("about/", staged->suffix, "/put"));
  const auto place = known ? find(folder, staged->suffix) : std::nullopt;
  if (!folder.sound()) return false;
  const bool said = place && place->state == core::ItemState::Failed;
  return !known || said || (place && place->epoch > staged->epoch);
}

// Before an item leaves done/: all that its completion brought has its own name. EBUSY: it cannot
// be brought there now.   G10
int DirQueue::finish(const QueueFolder& folder, const Seen& seen) {
  if (seen.place.state != core::ItemState::Done) return 0;
  const std::string stem = stem_of(seen.place.suffix, seen.place.epoch);
  roll_forward(folder, stem);
  os::Directory stage;
  std::vector<std::string> left;
  int error = folder.root().open_directory(cat("staged/", stem), stage);
  if (folder.fault() != 0) return folder.fault();
  // It brought nothing; or it did, and that could not be given its last name.
  if (error == ENOENT) return folder.there(cat("rolling/", stem)) ? EBUSY : folder.fault();
  if (error == 0) error = stage.list(left);
  if (error != 0) return error;
  const bool waits = std::ranges::any_of(left, [&](const std::string& name) {
    return name.starts_with("then.") && std::ranges::find(left, name + ".put") != left.end();
  });
  return waits ? EBUSY : 0;
}

// A file of the stage that counts; it may be given its last name just now.
int DirQueue::read_staged(const QueueFolder& folder, const std::string& stem, std::string_view what,
                          std::string& bytes) {
  const int error = folder.read(cat(stage_of(folder, stem), "/", what), bytes);
  return error == 0 ? 0 : folder.read(cat("staged/", stem, "/", what), bytes);
}

}  // namespace stint::queue
