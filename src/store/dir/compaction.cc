// Snapshots of a dir: store, and the removal of what they make needless.
//
// Everything up to a number goes into a small table; tables of like size are merged, so that a
// record is rewritten a few times in all, however many there are. A commit of the log names the
// tables: so of two makers one wins, a late one cannot put an older snapshot back, and whoever
// reads the log finds them. Numbers are removed from the lowest up, and only far below a snapshot
// that is durable.
#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "store/dir/dir_store.h"

namespace stint::store {

using dir::Base;
using dir::LogFile;
using dir::Placed;

namespace {

// So many numbers below the snapshot are left, for those who are a little late.
constexpr dir::Number kKeptNumbers = 256;
// An older table is merged while it is not this many times larger.
constexpr std::uint64_t kMergeFactor = 8;
constexpr int kMostTries = 50;

}  // namespace

void DirStore::snapshot_if_due() {
  {
    const MutexLock lock(mutex_);
    const dir::Number last = replica_.last();
    // One in eight, so that not everybody makes the same one; whoever dies over it is followed.
    if (last < replica_.state().base().number + options_.snapshot_every || last % 8 != 0) return;
  }
  if (snapshotting_.exchange(true)) return;
  // A snapshot that failed costs the next opening a longer log, and nothing else.
  [[maybe_unused]] const bool made = snapshot().has_value();
  snapshotting_ = false;
}

// The overlay, with the newest tables merged into it while they are not much larger; `tables`
// becomes what is left of the old ones.
Result<std::string> DirStore::write_table(const Base& base, const dir::Overlay& overlay,
                                          dir::Tables& tables) {
  std::uint64_t size = 0;
  for (const auto& [key, changed] : overlay) {
    size += key.size() + (changed.slot ? changed.slot->value.size() : 0) + 64;
  }
  dir::Tables merged;
  while (!tables.empty() && tables.front()->bytes() < size * kMergeFactor) {
    size += tables.front()->bytes();
    merged.push_back(tables.front());
    tables.erase(tables.begin());
  }
  const bool whole = tables.empty();  // then a removal hides nothing
  os::SystemRandom random;
  const std::string name = cat(dir::file_name(base.number), "-", random.id_hex());
  os::Fd file;
  const auto failed = [&](int e) { return os::file_error(cat("writing ", quoted(name)), e); };
  if (const int e = place_.snap.create(name, place_.modes.file, file)) return failed(e);
  dir::TableWriter writer(file);
  auto over = overlay.begin();
  const auto add = [&](std::string_view key, const dir::Slot& slot) -> Status {
    if (whole && !slot) return {};
    const int e = writer.add(key, slot);
    return e == 0 ? Status() : Status(failed(e));
  };
  const auto add_overlay_below = [&](std::string_view key) -> Status {
    for (; over != overlay.end() && (key.empty() || over->first < key); ++over) {
      if (auto ok = add(over->first, over->second.slot); !ok) return ok;
    }
    return {};
  };
  auto done = dir::merge(merged, [&](std::string_view key, const dir::Slot& slot) -> Status {
    if (auto ok = add_overlay_below(key); !ok) return ok;
    return overlay.find(key) == overlay.end() ? add(key, slot) : Status();
  });
  if (done) done = add_overlay_below("");
  int e = done ? writer.finish() : 0;
  if (e == 0) e = place_.snap.sync();
  if (done && e == 0) return name;
  place_.snap.remove(name);
  return done ? failed(e) : done.error();
}

Status DirStore::snapshot() {
  Base base;
  dir::Overlay overlay;
  dir::Tables tables;
  std::uint64_t flips = 0;
  dir::Number from = 0;
  std::vector<std::string> before;
  {
    const MutexLock lock(mutex_);
    if (auto fresh = replica_.refresh(); !fresh) return fresh;
    const dir::State& state = replica_.state();
    base.number = replica_.last();
    base.nonce = replica_.nonce();
    base.appended = state.appended();
    base.nonces = replica_.nonces();
    base.identity = replica_.identity();
    before = state.base().tables;
    overlay = state.overlay();
    tables = state.tables();
    flips = replica_.flips();
    from = replica_.base_at();
    if (replica_.based_on() != from) return {};
  }
  auto made = write_table(base, overlay, tables);
  if (!made) return made.error();
  base.tables.push_back(*made);
  for (const auto& table : tables) base.tables.push_back(table->name());
  // Only on the very base that it was made from: the tables of another may be gone. And the last
  // commit is in the table as it was judged then: it must be judged so still.
  auto done = commit_file([&](LogFile& file, const dir::Replica& replica) {
    if (replica.base_at() != from || replica.flips() != flips) return false;
    file.base = base;
    file.base_at = file.number;
    return true;
  });
  if (!done || !*done) {
    place_.snap.remove(*made);
    return done ? Status() : Status(done.error());
  }
  dir::Number base_at = 0;
  {
    const MutexLock lock(mutex_);
    base_at = replica_.base_at();
  }
  clean(base, base_at, before);
  return {};
}

// A commit without records. False: `fill` found nothing to do.
Result<bool> DirStore::commit_file(const Fill& fill) {
  for (int i = 0; i < kMostTries; ++i) {
    Draft draft;
    {
      const MutexLock lock(mutex_);
      if (auto fresh = replica_.refresh(); !fresh) return fresh.error();
      begin_file(draft.file);
      draft.file.durable = true;
      if (!fill(draft.file, replica_)) return false;
      auto staged = dir::stage(place_, draft.file.number, draft.file.nonce);
      if (!staged) return staged.error();
      draft.staged = std::move(*staged);
      draft.below = replica_.last_facts();
    }
    const Placed placed = dir::put_in_place(place_, draft.staged, draft.file, draft.below);
    auto settled = settle(draft, placed);
    if (!settled) return settled.error();
    if (*settled == Attempt::Done) return true;
  }
  return unavailable(cat("other writers of the store ", quoted(place_.path), " were faster"));
}

void DirStore::clean(const Base& base, dir::Number base_at,
                     const std::vector<std::string>& before) {
  os::Fd hint;
  if (place_.root.open_file("head", place_.modes.file, hint) == 0) {
    os::overwrite(hint.get(), cat(dir::file_name(base_at), "\n"));
  }
  std::vector<std::string> names;
  if (place_.log.list(names) != 0) return;
  std::ranges::sort(names);
  for (const std::string& name : names) {
    const dir::Number number = dir::number_of(name);
    if (number == 0) continue;
    if (number + kKeptNumbers > base.number) break;
    const int e = place_.log.remove(name);
    if (e != 0 && e != ENOENT) return;  // never one while a lower one may stand
  }
  if (place_.tmp.list(names) != 0) return;
  for (const std::string& name : names) {
    const dir::Number number = dir::number_of(name.substr(0, name.find('.')));
    if (number != 0 && number < base.number) place_.tmp.remove(name);
  }
  if (place_.snap.list(names) != 0) return;
  for (const std::string& name : names) {
    const bool used = std::ranges::find(base.tables, name) != base.tables.end() ||
                      std::ranges::find(before, name) != before.end();
    const dir::Number number = dir::number_of(name.substr(0, name.find('-')));
    if (!used && number != 0 && number < base.number) place_.snap.remove(name);
  }
}

}  // namespace stint::store
