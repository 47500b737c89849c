#include "os/artifact.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/text.h"

namespace stint::os {
namespace {

constexpr std::size_t kPiece = 256U << 10U;
constexpr int kDeepest = 200;  // each level holds a descriptor

Status failed(std::string_view doing, const std::string& what, int number) {
  if (number == 0) return {};
  return file_error(cat(doing, ' ', quoted(what)), number);
}

std::string through_proc(int fd) { return cat("/proc/self/fd/", fd); }

// Labels that the system gives by itself (security.*) are left to it.
int copy_attribute(const std::string& path, int fd, const char* name) {
  const ssize_t size = ::getxattr(path.c_str(), name, nullptr, 0);
  if (size < 0) return errno == ENODATA ? 0 : errno;
  std::string value(static_cast<std::size_t>(size), '\0');
  const ssize_t got = ::getxattr(path.c_str(), name, value.data(), value.size());
  if (got < 0) return errno == ENODATA ? 0 : errno;
  if (::fsetxattr(fd, name, value.data(), static_cast<std::size_t>(got), 0) == 0) return 0;
  const bool systems_own = std::string_view(name).starts_with("security.");
  return systems_own ? 0 : errno;
}

int copy_attributes(const std::string& path, int fd) {
  const ssize_t size = ::listxattr(path.c_str(), nullptr, 0);
  if (size < 0) return errno == ENOTSUP || errno == ENOENT ? 0 : errno;
  if (size == 0) return 0;
  std::string names(static_cast<std::size_t>(size), '\0');
  const ssize_t got = ::listxattr(path.c_str(), names.data(), names.size());
  if (got < 0) return errno;
  names.resize(static_cast<std::size_t>(got));
  for (std::size_t at = 0; at < names.size(); at = names.find('\0', at) + 1) {
    if (const int number = copy_attribute(path, fd, names.c_str() + at)) return number;
  }
  return 0;
}

// One level of a copy.
struct Level {
  const Directory& from;
  const Directory& to;
  std::string path;  // of `from`, for words
  const Onlooker& onlooker;
  NamePredicate skip;
  int depth = 0;
};

Status copy_level(const Level& level);

void tell(const Level& level, char kind, const std::string& name, unsigned mode,
          std::string_view more) {
  // Lengths before texts: no two trees read the same.
  if (level.onlooker) {
    level.onlooker(cat(kind, mode, ' ', name.size(), ' ', name, ' ', more.size(), ' ', more, '\n'));
  }
}

// Owners are kept where that is allowed: a tree that was unpacked by another is common.
int finish(int fd, int from, const FileFacts& facts) {
  unsigned mode = facts.mode;
  if (::fchown(fd, facts.owner, facts.group) != 0) {
    if (errno != EPERM) return errno;
    // A program that runs as its owner must not become one that runs as who copied it.
    constexpr unsigned kRunsAs = 06000;
    if (facts.kind == FileKind::Regular) mode &= ~kRunsAs;
  }
  if (::fchmod(fd, mode) != 0) return errno;
  if (const int number = copy_attributes(through_proc(from), fd)) return number;
  timespec times[2];
  times[0].tv_nsec = UTIME_OMIT;
  times[0].tv_sec = 0;
  const auto whole = std::chrono::floor<std::chrono::seconds>(facts.modified);
  times[1].tv_sec = whole.count();
  times[1].tv_nsec = (facts.modified - whole).count();
  if (::futimens(fd, times) != 0) return errno;
  return ::fsync(fd) == 0 ? 0 : errno;
}

Status copy_file(const Level& level, const std::string& name, const FileFacts& facts) {
  const std::string path = cat(level.path, '/', name);
  tell(level, 'f', name, facts.mode, cat(facts.size));
  Fd in;
  if (const int number = level.from.open_existing(name, in)) {
    return failed("reading", path, number);
  }
  Fd out;
  if (const int number = level.to.create_masked(name, 0600, out)) {
    return failed("copying", path, number);
  }
  if (const int number = copy_bytes(in.get(), out.get(), level.onlooker)) {
    return failed("copying", path, number);
  }
  return failed("copying", path, finish(out.get(), in.get(), facts));
}

Status copy_link(const Level& level, const std::string& name) {
  std::string text;
  const std::string path = cat(level.path, '/', name);
  if (const int number = level.from.read_link(name, text)) return failed("reading", path, number);
  tell(level, 'l', name, 0, text);
  const int made = ::symlinkat(text.c_str(), level.to.fd(), name.c_str());
  return failed("copying", path, made == 0 ? 0 : errno);
}

Status copy_directory(const Level& level, const std::string& name, const FileFacts& facts) {
  const std::string path = cat(level.path, '/', name);
  if (level.depth >= kDeepest) return invalid(cat(quoted(path), " lies too deep to be copied"));
  tell(level, 'd', name, facts.mode, "");
  Directory in;
  Directory out;
  if (const int number = level.from.open_directory(name, in)) {
    return failed("reading", path, number);
  }
  if (::mkdirat(level.to.fd(), name.c_str(), 0700) != 0) return failed("copying", path, errno);
  if (const int number = level.to.open_directory(name, out)) {
    return failed("copying", path, number);
  }
  if (auto done = copy_level({in, out, path, level.onlooker, level.skip, level.depth + 1}); !done) {
    return done;
  }
  return failed("copying", path, finish(out.fd(), in.fd(), facts));
}

Status copy_level(const Level& level) {
  std::vector<std::string> names;
  if (const int number = level.from.list(names)) return failed("reading", level.path, number);
  std::ranges::sort(names);
  for (const std::string& name : names) {
    if (level.skip(name)) continue;
    FileFacts facts;
    const std::string path = cat(level.path, '/', name);
    if (const int number = level.from.facts(name, facts)) return failed("reading", path, number);
    Status done;
    switch (facts.kind) {
      case FileKind::Regular: done = copy_file(level, name, facts); break;
      case FileKind::Directory: done = copy_directory(level, name, facts); break;
      case FileKind::Link: done = copy_link(level, name); break;
      case FileKind::Other:
        return invalid(cat(quoted(path), " is neither a file nor a directory nor a link"));
    }
    if (!done) return done;
  }
  // The end of the directory, so that what follows is not taken for a part of it.
  if (level.onlooker) level.onlooker("e\n");
  return {};
}

}  // namespace

int read_bytes(int from, const Onlooker& onlooker) { return copy_bytes(from, -1, onlooker); }

int copy_bytes(int from, int to, const Onlooker& onlooker) {
  const auto buffer = std::make_unique<char[]>(kPiece);
  while (true) {
    const ssize_t got = ::read(from, buffer.get(), kPiece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return 0;
    const std::string_view piece(buffer.get(), static_cast<std::size_t>(got));
    if (onlooker) onlooker(piece);
    if (to < 0) continue;
    if (const int number = write_whole(to, piece)) return number;
  }
}

Status make_alike(int fd, const std::string& path, const FileFacts& facts) {
  // The owner first: changing it takes away the set-user-id bit.
  if (::fchown(fd, facts.owner, facts.group) != 0) {
    return file_error(cat("keeping the owner of ", quoted(path)), errno);
  }
  if (::fchmod(fd, facts.mode) != 0) {
    return file_error(cat("keeping the mode of ", quoted(path)), errno);
  }
  const int number = copy_attributes(path, fd);
  return number == 0 ? Status()
                     : file_error(cat("keeping the attributes of ", quoted(path)), number);
}

void give_owner(int fd, const FileFacts& facts) {
  if (::fchown(fd, facts.owner, facts.group) == 0) return;
  // Another's file: its group at least.
  if (::fchown(fd, static_cast<uid_t>(-1), facts.group) != 0) return;
}

Status copy_tree(const std::string& from, const Directory& to, const std::string& name,
                 const Onlooker& onlooker, NamePredicate skip) {
  Directory above;
  const std::string whole = real_path(from);
  if (whole.empty()) return failed("reading", from, ENOENT);
  if (const int number = Directory::open(whole, above)) return failed("reading", from, number);
  FileFacts facts;
  if (const int number = above.facts("", facts)) return failed("reading", from, number);
  if (::mkdirat(to.fd(), name.c_str(), 0700) != 0) return failed("making", name, errno);
  Directory out;
  if (const int number = to.open_directory(name, out)) return failed("making", name, number);
  if (auto done = copy_level({above, out, from, onlooker, skip}); !done) return done;
  return failed("copying", from, finish(out.fd(), above.fd(), facts));
}

namespace {

struct Walk {
  NamePredicate skip;
  const FolderVisitor& visit;
};

Status walk_level(const Walk& walk, const Directory& folder, const std::string& path, int depth) {
  if (depth >= kDeepest) return invalid(cat(quoted(path), " lies too deep to be looked at"));
  std::vector<std::string> names;
  std::vector<std::string> folders;
  if (const int number = folder.list(names, &folders)) return failed("reading", path, number);
  if (auto done = walk.visit(folder, path, names); !done) return done;
  for (const std::string& name : folders) {
    if (walk.skip(name)) continue;
    Directory inner;
    const int number = folder.open_directory(name, inner);
    if (number == ENOENT || number == ENOTDIR || number == ELOOP) continue;  // since then
    const std::string below = path.empty() ? name : cat(path, '/', name);
    if (number != 0) return failed("reading", below, number);
    if (auto done = walk_level(walk, inner, below, depth + 1); !done) return done;
  }
  return {};
}

}  // namespace

Status walk_folders(const Directory& in, const std::string& name, NamePredicate skip,
                    const FolderVisitor& visit) {
  Directory top;
  const int number = in.open_directory(name, top);
  if (number == ENOENT || number == ENOTDIR || number == ELOOP) return {};
  if (number != 0) return failed("reading", name, number);
  return walk_level({skip, visit}, top, "", 0);
}

void remove_tree(const Directory& in, const std::string& name) {
  if (in.remove(name) == 0) return;
  Directory inner;
  if (in.open_directory(name, inner) != 0) return;
  // A directory that nobody may write to is in the way of removing what is in it.
  ::fchmod(inner.fd(), 0700);
  std::vector<std::string> names;
  if (inner.list(names) == 0) {
    for (const std::string& one : names) remove_tree(inner, one);
  }
  in.remove_directory(name);
}

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  return real ? std::string(real.get()) : std::string();
}

}  // namespace stint::os
