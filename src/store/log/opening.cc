#include "store/log/opening.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/text.h"
#include "os/lock_holder.h"
#include "os/pause.h"
#include "store/log/group.h"

namespace stint::store::log {
namespace {

constexpr const char* kLock = "lock";
constexpr Millis kLockPause{5};

bool is_ours(std::string_view name) {
  constexpr std::array<std::string_view, 5> kOurs = {kLock, "snapshot", "snapshot.new", "spare",
                                                     "lost+found"};
  return segment_number(name) != 0 || std::ranges::find(kOurs, name) != kOurs.end();
}

Status check_alone(const os::Directory& root, const std::string& path) {
  std::vector<std::string> names;
  if (const int e = root.list(names)) return store_file_error("listing", path, e);
  for (const std::string& name : names) {
    if (is_ours(name)) continue;
    return unavailable(cat(quoted(path), " holds other files (", quoted(name),
                           ") and no Stint store; give the store a directory of its own"));
  }
  return {};
}

// With their names synced: a store whose directory a power cut takes would be made anew.
Status make_root(const std::string& path) {
  std::vector<std::string> parents;
  for (std::string at = path; at != "." && !os::exists(at); at = os::parent_of(at)) {
    parents.push_back(os::parent_of(at));
  }
  if (auto made = os::make_directories(path); !made) return made;
  for (const std::string& parent : parents) {
    os::Directory directory;
    int e = os::Directory::open(parent, directory);
    if (e == 0) e = directory.sync();
    if (e != 0) return store_file_error("making", path, e);
  }
  return {};
}

Status open_root(const LogOptions& options, Ground& ground) {
  const auto missing = [&] {
    return unavailable(cat("there is no store at ", quoted(options.path)));
  };
  int e = os::Directory::open(options.path, ground.root);
  if (e == ENOENT) {
    if (!options.may_create) return missing();
    if (auto made = make_root(options.path); !made) return made;
    e = os::Directory::open(options.path, ground.root);
  }
  if (e == ENOTDIR) return unavailable(cat(quoted(options.path), " is not a directory"));
  if (e != 0) return store_file_error("opening", options.path, e);
  if (auto ok = check_filesystem("log", options.path); !ok) return ok;
  if (has_snapshot(ground.root)) return {};
  return options.may_create ? check_alone(ground.root, options.path) : Status(missing());
}

Error in_use(const Ground& ground) {
  std::string pid;
  os::FileFacts facts;
  std::string who = "another process";
  if (ground.root.read(kLock, 64, pid, facts) == 0) {
    const auto number = parse_digits(trim(pid));
    const bool here = number && *number > 0 && *number < (1U << 30U) &&
                      os::process_state(static_cast<int>(*number)) != 0;
    // The number is of the container that wrote it, which may be another than this.
    if (here) {
      who = cat(os::describe_process(static_cast<int>(*number)), ", if it runs in this container");
    }
  }
  return unavailable(cat("the store ", quoted(ground.path), " is in use by ", who,
                         ": a log: store belongs to one process at a time. If that is a stint "
                         "serve, ask it: --store http://ADDRESS"));
}

// Locked as long as the descriptors are open: a process that dies frees them. The file says where
// the path leads; the directory itself is locked too, because nobody can put another in the place
// of that while its files are used.
Status take_lock(const LogOptions& options, Ground& ground) {
  if (const int e = ground.root.open_file(kLock, 0600, ground.lock)) {
    return store_file_error("opening", ground.path, e);
  }
  for (Nanos waited{0};; waited += kLockPause) {
    int e = os::try_lock(ground.lock.get());
    if (e == 0) e = os::try_lock(ground.root.fd());
    if (e == 0) break;
    if (e != EWOULDBLOCK && e != EINTR) return store_file_error("locking", ground.path, e);
    if (waited >= options.busy) return in_use(ground);
    os::pause_for(kLockPause);
  }
  if (const int e = os::facts_of(ground.lock.get(), ground.lock_facts)) {
    return store_file_error("locking", ground.path, e);
  }
  // For people alone: the lock is what counts.
  os::overwrite(ground.lock.get(), cat(::getpid(), "\n"));
  return {};
}

// The segment first: when the snapshot is there, so is the log that it begins with.
Status make_store(const LogOptions& options, Ground& ground, Nanos now) {
  auto lost = any_entry(ground.root, ground.path);
  if (!lost) return lost.error();
  if (*lost) return damaged_error(ground.path, "its snapshot is missing");
  auto all = list_segments(ground.root, ground.path);
  if (!all) return all.error();
  for (const std::uint64_t number : *all) ground.root.remove(segment_name(number));
  auto segment =
      make_segment(ground.root, ground.path, {.number = 1, .size = options.segment_size, .old = 0});
  if (!segment) return segment.error();
  SnapshotHead head;
  head.boots.push_back({.name = options.clock_name,
                        .boot = {.first_open = now, .last_commit = Nanos(0)},
                        .copied = false,
                        .prolonged = false});
  head.mark.last = now;
  head.from = {.segment = 1, .offset = kSegmentHead, .number = 0, .check = 0};
  SnapshotWriter snapshot(ground.root, ground.path);
  if (auto begun = snapshot.begin(head); !begun) return begun;
  if (auto done = snapshot.finish(0); !done) return done;
  ground.created = true;
  return {};
}

// Whether a timer was still running at the last commit.
bool any_timer_ran(const Recovered& recovered) {
  Boots boots;
  for (const BootRow& row : recovered.boots) boots.push_back(row.boot);
  bool ran = false;
  recovered.table.walk("", recovered.table.size(), [&](std::string_view, const Row& row) {
    ran |= row.timer && fires_now(*row.timer, boots) > recovered.mark.last;
  });
  return ran;
}

}  // namespace

bool Ground::in_place() const {
  os::FileFacts now;
  return os::facts_of(lock_path, now) == 0 && now.device == lock_facts.device &&
         now.inode == lock_facts.inode;
}

Result<std::unique_ptr<Ground>> take_ground(const LogOptions& options, Nanos now) {
  auto ground = std::make_unique<Ground>();
  ground->path = options.path;
  ground->lock_path = cat(options.path, "/", kLock);
  if (auto opened = open_root(options, *ground); !opened) return opened.error();
  if (auto locked = take_lock(options, *ground); !locked) return locked.error();
  if (!ground->in_place()) {
    return unavailable(
        cat("the store ", quoted(options.path), " was moved or deleted while it was opened"));
  }
  if (!has_snapshot(ground->root)) {
    if (!options.may_create) {
      return unavailable(cat("there is no store at ", quoted(options.path)));
    }
    if (auto made = make_store(options, *ground, now); !made) return made.error();
  }
  return ground;
}

Result<Entered> enter(Recovered& recovered, const LogOptions& options, Nanos now) {
  Entered out;
  std::vector<BootRow>& boots = recovered.boots;
  const Arrival kind =
      arrival_of(boots, options.clock_name, {.now = now, .last_commit = recovered.mark.last});
  switch (kind) {
    case Arrival::SameBoot: break;
    case Arrival::OtherNamespace:
      return namespace_error(options.path, boots.back().name, options.clock_name);
    case Arrival::UnnamedClock: return unnamed_clock_error(options.path);
    case Arrival::FirstBoot:
    case Arrival::Reboot:
    case Arrival::Copy: {
      const bool copy = kind == Arrival::Copy;
      if (copy && !options.accept_copy) return copied_error(options.path);
      const bool prolonged = any_timer_ran(recovered);
      if (!boots.empty()) {
        boots.back().boot.last_commit = recovered.mark.last;
        recovered.mark.seq += kVersionsAhead;
      }
      boots.push_back({.name = options.clock_name,
                       .boot = {.first_open = now, .last_commit = Nanos(0)},
                       .copied = copy,
                       .prolonged = prolonged});
      recovered.mark.last = now;
      out.changed = true;
      break;
    }
  }
  out.opening.copied = boots.back().copied;
  // Told at every opening of this boot: whoever entered it may have died before it was recorded.
  if (boots.back().prolonged) out.opening.prolonged = cat("boot-", boots.size());
  if (out.opening.copied && !options.accept_copy) return copied_error(options.path);
  return out;
}

}  // namespace stint::store::log
