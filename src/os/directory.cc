#include "os/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/text.h"
#include "os/block_file.h"

namespace stint::os {
namespace {

Nanos nanos(const statx_timestamp& t) {
  return std::chrono::seconds(t.tv_sec) + Nanos(static_cast<std::int64_t>(t.tv_nsec));
}

FileKind kind_of(unsigned mode) {
  if (S_ISREG(mode)) return FileKind::Regular;
  if (S_ISDIR(mode)) return FileKind::Directory;
  return S_ISLNK(mode) ? FileKind::Link : FileKind::Other;
}

int look(int fd, const char* path, FileFacts& out) {
  struct statx found {};
  const int flags = AT_STATX_FORCE_SYNC | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;
  if (::statx(fd, path, flags, STATX_BASIC_STATS | STATX_BTIME, &found) != 0) return errno;
  out.device = static_cast<std::uint64_t>(found.stx_dev_major) << 32U | found.stx_dev_minor;
  out.inode = found.stx_ino;
  out.size = found.stx_size;
  out.changed = nanos(found.stx_ctime);
  out.modified = nanos(found.stx_mtime);
  out.born.reset();
  if ((found.stx_mask & STATX_BTIME) != 0) out.born = nanos(found.stx_btime);
  out.mode = found.stx_mode & 07777U;
  out.owner = found.stx_uid;
  out.group = found.stx_gid;
  out.kind = kind_of(found.stx_mode);
  return 0;
}

int made(int fd, Fd& out) {
  if (fd < 0) return errno;
  out = Fd(fd);
  return 0;
}

// What a creation mask took away is given back: a shared directory is meant to be shared.
int made_with(int fd, unsigned mode, Fd& out) {
  if (const int failed = made(fd, out)) return failed;
  if ((mode & 077U) != 0) ::fchmod(fd, mode);
  return 0;
}

int errno_of(int result) { return result == 0 ? 0 : errno; }

}  // namespace

int Directory::open(const std::string& path, Directory& out) {
  return made(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), out.fd_);
}

int Directory::read(const std::string& name, std::size_t limit, std::string& content,
                    FileFacts& facts) const {
  // Not to be held up by what is no file at all: a pipe without a writer.
  const Fd file(::openat(fd_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return errno;
  if (const int failed = facts_of(file.get(), facts)) return failed;
  if (facts.size > limit) return EFBIG;
  // One byte more, so that a file that grew is not taken for whole.
  content.resize(facts.size + 1);
  std::size_t have = 0;
  while (have < content.size()) {
    const ssize_t got = ::read(file.get(), content.data() + have, content.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  content.resize(have);
  return 0;
}

int Directory::create(const std::string& name, unsigned mode, Fd& out) const {
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  return made_with(::openat(fd_.get(), name.c_str(), flags, mode), mode, out);
}

int Directory::create_masked(const std::string& name, unsigned mode, Fd& out) const {
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  return made(::openat(fd_.get(), name.c_str(), flags, mode), out);
}

int Directory::open_existing(const std::string& name, Fd& out) const {
  return made(::openat(fd_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW), out);
}

int Directory::open_file(const std::string& name, unsigned mode, Fd& out) const {
  const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  const int failed = made(::openat(fd_.get(), name.c_str(), flags), out);
  if (failed != ENOENT) return failed;
  return made_with(::openat(fd_.get(), name.c_str(), flags | O_CREAT, mode), mode, out);
}

int Directory::make_directory(const std::string& name, unsigned mode) const {
  if (::mkdirat(fd_.get(), name.c_str(), mode) != 0) return errno;
  if ((mode & 077U) != 0) ::fchmodat(fd_.get(), name.c_str(), mode, 0);
  return 0;
}

int Directory::open_directory(const std::string& name, Directory& out) const {
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
  return made(::openat(fd_.get(), name.c_str(), flags), out.fd_);
}

int Directory::link(const std::string& name, const Directory& to,
                    const std::string& new_name) const {
  return errno_of(::linkat(fd_.get(), name.c_str(), to.fd_.get(), new_name.c_str(), 0));
}

int Directory::rename(const std::string& name, const std::string& new_name) const {
  return errno_of(::renameat(fd_.get(), name.c_str(), fd_.get(), new_name.c_str()));
}

int Directory::rename_new(const std::string& name, const std::string& new_name) const {
  const int here = fd_.get();
  if (::renameat2(here, name.c_str(), here, new_name.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // A file system that cannot (NFS): a second name, then without the first.
  if (::linkat(here, name.c_str(), here, new_name.c_str(), 0) != 0) return errno;
  ::unlinkat(here, name.c_str(), 0);
  return 0;
}

int Directory::exchange(const std::string& name, const std::string& other) const {
  const int here = fd_.get();
  return errno_of(::renameat2(here, name.c_str(), here, other.c_str(), RENAME_EXCHANGE));
}

int Directory::read_link(const std::string& name, std::string& out) const {
  out.resize(PATH_MAX);
  const ssize_t got = ::readlinkat(fd_.get(), name.c_str(), out.data(), out.size());
  if (got < 0) return errno;
  out.resize(static_cast<std::size_t>(got));
  return 0;
}

int Directory::facts(const std::string& name, FileFacts& out) const {
  return look(fd_.get(), name.c_str(), out);
}

int Directory::list(std::vector<std::string>& names, std::vector<std::string>* folders) const {
  const int again = ::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return errno;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(again), ::closedir);
  if (!stream) {
    const int failed = errno;
    ::close(again);
    return failed;
  }
  names.clear();
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) return errno;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    names.emplace_back(name);
    if (folders == nullptr) continue;
    FileFacts told;  // some file systems do not tell in the listing
    const bool asks = entry->d_type == DT_UNKNOWN && facts(names.back(), told) == 0;
    if (entry->d_type == DT_DIR || (asks && told.kind == FileKind::Directory)) {
      folders->emplace_back(name);
    }
  }
}

int Directory::remove(const std::string& name) const {
  return errno_of(::unlinkat(fd_.get(), name.c_str(), 0));
}

int Directory::remove_directory(const std::string& name) const {
  return errno_of(::unlinkat(fd_.get(), name.c_str(), AT_REMOVEDIR));
}

int Directory::sync() const { return errno_of(::fsync(fd_.get())); }

bool Directory::stands_at(const std::string& path) const {
  FileFacts here;
  FileFacts there;
  return facts_of(fd_.get(), here) == 0 && facts_of(path, there) == 0 &&
         here.inode == there.inode && here.device == there.device;
}

int facts_of(const std::string& path, FileFacts& out) { return look(AT_FDCWD, path.c_str(), out); }

int facts_of(int fd, FileFacts& out) { return look(fd, "", out); }

int write_whole(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t wrote = ::write(fd, content.data(), content.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno;
    if (wrote == 0) return EIO;
    content.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return 0;
}

int read_at(int fd, std::uint64_t offset, std::size_t length, std::string& out) {
  out.resize(length);
  return read_into(fd, offset, out);
}

int sync_file(int fd) { return errno_of(::fsync(fd)); }

int overwrite(int fd, std::string_view content) {
  const ssize_t wrote = ::pwrite(fd, content.data(), content.size(), 0);
  if (wrote != static_cast<ssize_t>(content.size())) return wrote < 0 ? errno : EIO;
  return errno_of(::ftruncate(fd, static_cast<off_t>(content.size())));
}

int touch(int fd) { return errno_of(::futimens(fd, nullptr)); }

int try_lock(int fd) { return errno_of(::flock(fd, LOCK_EX | LOCK_NB)); }

Error file_error(std::string_view doing, int number) {
  const bool denied = number == EACCES || number == EPERM || number == EROFS;
  return {denied ? Code::Denied : Code::Unavailable, cat(doing, ": ", std::strerror(number))};
}

}  // namespace stint::os
