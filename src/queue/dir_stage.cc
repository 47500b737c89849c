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
  const std::string best = stage_of(folder, stem);
  // What could not be looked at is not "not there": another may be the one that counts.   G10
  if (!folder.sound()) return;
  if (best != plain && folder.root().rename(best, plain) != 0 && !folder.there(plain)) return;
  for (const std::string& name : folder.list("staged")) {
    if (name.starts_with(stem + ".")) folder.remove_all(cat("staged/", name));
  }
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
  if (error == ENOENT) return 0;  // it brought nothing
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
