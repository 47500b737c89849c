#include "store/dir/place.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/text.h"
#include "os/files.h"
#include "os/pause.h"

namespace stint::store::dir {
namespace {

constexpr std::array<std::string_view, 10> kOurs = {
    "log", "tmp", "snap", "records", "head", "clock", "lock", "wake", "README", "lost+found"};

constexpr std::string_view kReadme =
    "This directory is a Stint store (dir:). The store is log/, a file for each commit; nothing "
    "in\n"
    "it may be changed, removed or copied back by hand while the store is in use. records/ is a\n"
    "readable copy, one file a record; it may be late, and `stint show` decides.\n";

Error failing(std::string_view what, const std::string& path, int number) {
  return os::file_error(cat(what, " the store ", quoted(path)), number);
}

// Private, unless the directory is shared with a group.
os::FileModes modes_of(const os::FileFacts& root) {
  if ((root.mode & 020U) == 0) return {};
  return {.file = 0660, .directory = 0770U | (root.mode & 02000U)};
}

Status check_empty(const Place& place) {
  std::vector<std::string> names;
  if (const int e = place.root.list(names)) return failing("listing", place.path, e);
  for (const std::string& name : names) {
    if (name.starts_with('.') || std::ranges::find(kOurs, name) != kOurs.end()) continue;
    return unavailable(cat(quoted(place.path), " holds other files (", quoted(name),
                           ") and no Stint store; give the store a directory of its own"));
  }
  return {};
}

// Complete before it gets its name: the log appears with its first commit in it, and is never empty
// again. So of several makers one wins, and a late one finds a directory that cannot be replaced.
Status make_log(Place& place, Random& random) {
  const std::string staged = cat(".new-", random.id_hex());
  const auto failed = [&](int e) { return failing("making", place.path, e); };
  if (const int e = place.root.make_directory(staged, place.modes.directory)) return failed(e);
  os::Directory directory;
  if (const int e = place.root.open_directory(staged, directory)) return failed(e);
  os::FileFacts facts;
  if (const int e = directory.facts("", facts)) return failed(e);
  LogFile first;
  first.number = 1;
  first.nonce = random.next();
  first.base_at = 1;
  first.durable = true;
  first.base.emplace().identity = Identity::of(facts);
  const std::string name = file_name(1);
  os::Fd file;
  int e = directory.create(name, place.modes.file, file);
  if (e == 0) e = os::write_whole(file.get(), encode(first));
  if (e == 0) e = os::sync_file(file.get());
  if (e == 0) e = directory.sync();
  if (e == 0) e = place.root.rename(staged, "log");
  if (e == 0) {
    place.created = true;
    e = place.root.sync();
    return e == 0 ? Status() : Status(failed(e));
  }
  directory.remove(name);
  place.root.remove_directory(staged);
  // A lost reply to one's own rename shows as ENOENT; whoever opens the log next sees what is
  // there.
  return e == EEXIST || e == ENOTEMPTY || e == ENOENT ? Status() : Status(failed(e));
}

// The log that another has made: its absence, which was seen before, may be remembered here (NFS).
// Opening the directory above it anew makes the mount ask again.
int open_made_log(Place& place) {
  constexpr int kTries = 100;
  constexpr Millis kPause{20};
  int e = place.root.open_directory("log", place.log);
  for (int tries = 0; e == ENOENT && tries < kTries; ++tries) {
    if (tries > 0) os::pause_for(kPause);
    e = os::Directory::open(place.path, place.root);
    if (e == 0) e = place.root.open_directory("log", place.log);
  }
  return e;
}

Status open_part(const Place& place, const std::string& name, os::Directory& out) {
  int e = place.root.open_directory(name, out);
  if (e == ENOENT) {
    e = place.root.make_directory(name, place.modes.directory);
    if (e == 0 || e == EEXIST) e = place.root.open_directory(name, out);
  }
  return e == 0 ? Status() : Status(failing("opening", place.path, e));
}

Status open_parts(Place& place) {
  if (auto ok = open_part(place, "tmp", place.tmp); !ok) return ok;
  if (auto ok = open_part(place, "snap", place.snap); !ok) return ok;
  if (const int e = place.root.open_file("clock", place.modes.file, place.clock)) {
    return failing("opening", place.path, e);
  }
  return {};
}

void leave_readme(const Place& place) {
  os::Fd file;
  if (place.root.open_file("README", place.modes.file, file) == 0) {
    os::overwrite(file.get(), kReadme);
  }
}

}  // namespace

Status Place::still_there() const {
  os::FileFacts now;
  const int e = os::facts_of(log_path(), now);
  if (e != 0 && e != ENOENT && e != ENOTDIR) return failing("looking at", path, e);
  if (e == 0 && now.device == log_facts.device && now.inode == log_facts.inode) return {};
  return unavailable(
      cat("the store ", quoted(path), " was moved, deleted or replaced while in use"));
}

Result<Place> open_place(const std::string& path, bool may_create, Random& random) {
  Place place;
  place.path = path;
  int e = os::Directory::open(path, place.root);
  const auto missing = [&] { return unavailable(cat("there is no store at ", quoted(path))); };
  if (e == ENOENT) {
    if (!may_create) return missing();
    if (auto made = os::make_directories(path); !made) return made.error();
    e = os::Directory::open(path, place.root);
  }
  if (e == ENOTDIR) return unavailable(cat(quoted(path), " is not a directory"));
  if (e != 0) return failing("opening", path, e);
  os::FileFacts root;
  if ((e = place.root.facts("", root)) != 0) return failing("opening", path, e);
  place.modes = modes_of(root);
  e = place.root.open_directory("log", place.log);
  if (e == ENOENT) {
    if (!may_create) return missing();
    if (auto empty = check_empty(place); !empty) return empty.error();
    if (auto made = make_log(place, random); !made) return made.error();
    e = open_made_log(place);
    if (place.created) leave_readme(place);
  }
  if (e == 0) e = place.log.facts("", place.log_facts);
  if (e != 0) return failing("opening", path, e);
  if (auto opened = open_parts(place); !opened) return opened.error();
  return place;
}

std::string staged_name(Number number, Nonce nonce) { return cat(file_name(number), ".", nonce); }

Result<Staged> stage(const Place& place, Number number, Nonce nonce) {
  Staged staged;
  staged.name = staged_name(number, nonce);
  os::FileFacts facts;
  int e = place.tmp.create(staged.name, place.modes.file, staged.file);
  if (e == 0) e = os::facts_of(staged.file.get(), facts);
  if (e != 0) return failing("writing to", place.path, e);
  staged.changed = facts.changed;
  return staged;
}

}  // namespace stint::store::dir
