#include "os/block_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace stint::os {

int write_at(int fd, std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno;
    if (wrote == 0) return EIO;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
  return 0;
}

int read_into(int fd, std::uint64_t offset, std::span<char> out) {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return ENODATA;
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return 0;
}

void will_read(int fd, std::uint64_t offset, std::uint64_t length) {
  (void)::posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(length),
                        POSIX_FADV_WILLNEED);
}

int sync_data(int fd) { return ::fdatasync(fd) == 0 ? 0 : errno; }

int fill_with_zeros(int fd, std::uint64_t size) {
  constexpr std::uint64_t kPiece = 1U << 20U;
  const std::string zeros(std::min(size, kPiece), '\0');
  for (std::uint64_t at = 0; at < size; at += kPiece) {
    const std::string_view piece(zeros.data(), std::min(size - at, kPiece));
    if (const int e = write_at(fd, at, piece)) return e;
  }
  return ::fsync(fd) == 0 ? 0 : errno;
}

}  // namespace stint::os
