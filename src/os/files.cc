#include "os/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "os/fd.h"

namespace stint::os {
namespace {

Status write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t wrote = ::write(fd, content.data(), content.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return unavailable(errno_text(cat("writing ", quoted(path))));
    content.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

Status sync_directory(const std::string& path) {
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || ::fsync(directory.get()) != 0) {
    return unavailable(errno_text(cat("syncing ", quoted(path))));
  }
  return {};
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return unavailable(errno_text(cat("opening ", quoted(path))));
  std::string content;
  char buffer[4096];
  while (true) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unavailable(errno_text(cat("reading ", quoted(path))));
    if (got == 0) return content;
    content.append(buffer, static_cast<std::size_t>(got));
    if (content.size() > limit) {
      return unavailable(cat(quoted(path), " is larger than ", limit, " bytes"));
    }
  }
}

Result<std::string> read_descriptor(int fd, std::size_t most) {
  std::string content;
  char buffer[4096];
  while (content.size() < most) {
    const ssize_t got = ::read(fd, buffer, std::min(sizeof buffer, most - content.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unavailable(errno_text("reading standard input"));
    if (got == 0) break;
    content.append(buffer, static_cast<std::size_t>(got));
  }
  return content;
}

Result<Fd> open_to_read(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file) return file;
  return not_done("opening", path);
}

Result<Fd> open_to_append(const std::string& path) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (file) return file;
  return not_done("opening", path);
}

bool may_write(const std::string& path) {
  if (::access(path.c_str(), R_OK | W_OK) == 0) return true;
  if (errno != ENOENT) return errno != EACCES;
  const std::string folder = std::filesystem::path(path).parent_path();
  return ::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0 || errno != EACCES;
}

bool is_executable(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

Status make_directories(const std::string& path, unsigned mode) {
  if (path.empty() || path == "/" || path == ".") return {};
  if (::mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return {};
  if (errno == ENOENT) {
    if (auto parent = make_directories(parent_of(path), mode); !parent) return parent;
    if (::mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return {};
  }
  return not_done("making the directory", path);
}

Status rename_file(const std::string& path, const std::string& new_path) {
  if (::rename(path.c_str(), new_path.c_str()) == 0) return {};
  return unavailable(errno_text(cat("renaming ", quoted(path), " to ", quoted(new_path))));
}

Status write_file(const std::string& path, std::string_view content, Durability durability,
                  unsigned mode) {
  const std::string staged = cat(path, ".", ::getpid(), ".new");
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
  Fd file(::open(staged.c_str(), flags, 0600));
  if (!file) return unavailable(errno_text(cat("creating ", quoted(staged))));
  Status done = write_all(file.get(), content, staged);
  if (done && mode != 0600 && ::fchmod(file.get(), mode) != 0) {
    done = unavailable(errno_text(cat("setting the mode of ", quoted(staged))));
  }
  const bool synced = durability == Durability::Synced;
  if (done && synced && ::fsync(file.get()) != 0) {
    done = unavailable(errno_text(cat("syncing ", quoted(staged))));
  }
  file.reset();
  if (done && ::rename(staged.c_str(), path.c_str()) != 0) {
    done = unavailable(errno_text(cat("renaming to ", quoted(path))));
  }
  if (!done) {
    remove_file(staged);
    return done;
  }
  return synced ? sync_directory(parent_of(path)) : Status();
}

namespace {

std::string staged_name(const std::string& path) {
  static std::atomic<unsigned> count = 0;
  return cat(path, ".", ::getpid(), ".", count++, ".new");
}

}  // namespace

Status make_file(const std::string& path, std::string_view content) {
  const std::string staged = staged_name(path);
  if (auto ok = write_file(staged, content, Durability::Unsynced); !ok) return ok;
  const bool made = ::link(staged.c_str(), path.c_str()) == 0 || errno == EEXIST;
  Status done = made ? Status() : unavailable(errno_text(cat("making ", quoted(path))));
  remove_file(staged);
  return done;
}

// A rename onto another name of the same file does nothing: what it was to replace is gone then.
Status link_over(const std::string& existing, const std::string& path) {
  const std::string staged = staged_name(path);
  if (::link(existing.c_str(), staged.c_str()) != 0) {
    return unavailable(errno_text(cat("linking ", quoted(staged))));
  }
  Status done = rename_file(staged, path);
  remove_file(staged);
  return done;
}

Status overwrite_file(const std::string& path, std::string_view content) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return unavailable(errno_text(cat("opening ", quoted(path))));
  const ssize_t wrote = ::pwrite(file.get(), content.data(), content.size(), 0);
  if (wrote != static_cast<ssize_t>(content.size())) {
    return unavailable(errno_text(cat("writing ", quoted(path))));
  }
  return {};
}

bool FixedFile::overwrite(const std::string& path, std::string_view content) {
  if (!file_) file_ = Fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  return file_ && ::pwrite(file_.get(), content.data(), content.size(), 0) ==
                      static_cast<ssize_t>(content.size());
}

Result<std::optional<std::string_view>> FixedFile::look(const std::string& path,
                                                        std::span<char> out) {
  using Content = std::optional<std::string_view>;
  if (!file_) {
    file_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file_ && (errno == ENOENT || errno == ENOTDIR)) return Content();
    if (!file_) return unavailable(errno_text(cat("opening ", quoted(path))));
  }
  const ssize_t got = ::pread(file_.get(), out.data(), out.size(), 0);
  if (got < 0) return unavailable(errno_text(cat("reading ", quoted(path))));
  return Content(std::string_view(out.data(), static_cast<std::size_t>(got)));
}

// The number and nothing else. Who asks for a file's times makes the next write to it change them
// by less than a clock's tick, and then every sync of it writes its inode, too (Linux 6.13 and
// later): a commit took half as long again.
std::optional<FileId> file_id(const std::string& path) {
  struct statx file {};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_INO, &file) == 0) {
    return FileId{::makedev(file.stx_dev_major, file.stx_dev_minor), file.stx_ino};
  }
  // Some sandboxes refuse that call altogether.
  struct stat plain {};
  if ((errno != EPERM && errno != ENOSYS) || ::stat(path.c_str(), &plain) != 0) return std::nullopt;
  return FileId{plain.st_dev, plain.st_ino};
}

void remove_file(const std::string& path) { ::unlink(path.c_str()); }

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string absolute(const std::string& path) {
  if (path.starts_with('/')) return path;
  char* here = ::getcwd(nullptr, 0);
  if (here == nullptr) return path;
  std::string whole = cat(here, "/", path);
  std::free(here);  // NOLINT(cppcoreguidelines-no-malloc): getcwd allocates
  return whole;
}

std::string without_detours(const std::string& path) {
  if (path.find("/.") == path.npos && path.find("//") == path.npos) return path;
  std::error_code failed;
  const std::filesystem::path given(path);
  const bool up = std::ranges::find(given, "..") != given.end();
  const std::filesystem::path out = up ? std::filesystem::weakly_canonical(given, failed) : given;
  return (failed ? given : out).lexically_normal().string();
}

}  // namespace stint::os
