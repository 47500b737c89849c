// Files of Stint's own: small, private, written whole or not at all.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/fd.h"

namespace stint::os {

// The whole content; Code::Unavailable if it cannot be read or is larger than `limit`.
Result<std::string> read_file(const std::string& path, std::size_t limit = 1U << 20U);

// What comes from a descriptor until its end; at most `most` bytes are taken.
Result<std::string> read_descriptor(int fd, std::size_t most);

// Code::Unavailable, or Denied, if it cannot be read.
Result<Fd> open_to_read(const std::string& path);

// Each write to it goes to its end, whole, whoever else writes; made if it is missing.
Result<Fd> open_to_append(const std::string& path);

// False only if it is known to be missing: one that cannot be looked at may be there.
bool exists(const std::string& path);
// False only if the user's rights forbid it; of a missing one: to make it there.
bool may_write(const std::string& path);
// By this user's rights.
bool is_executable(const std::string& path);

// Creates missing parents too; `mode` as the umask leaves it.
Status make_directories(const std::string& path, unsigned mode = 0700);

enum class Durability { Synced, Unsynced };
// A new file beside it, then a rename: readers see the old content or the new.
Status write_file(const std::string& path, std::string_view content, Durability durability,
                  unsigned mode = 0600);
Status rename_file(const std::string& path, const std::string& new_path);

// Made whole, if it is not there; one that is there stays as it is.
Status make_file(const std::string& path, std::string_view content);
// `path` becomes another name of the file `existing`, in one step.
Status link_over(const std::string& existing, const std::string& path);

// Overwrites in place, mode 0600: for a few bytes that may be old but never torn for a local
// reader.
Status overwrite_file(const std::string& path, std::string_view content);

// The same again and again, on a descriptor that stays open. It never gets shorter: what is written
// says by itself where it ends.
class FixedFile {
 public:
  // False: the file is not there (it is not made), or cannot be written.
  bool overwrite(const std::string& path, std::string_view content);
  // What it holds now, as much as `out` has room for; empty: the file is not there.
  Result<std::optional<std::string_view>> look(const std::string& path, std::span<char> out);

 private:
  Fd file_;
};

// Device and inode: what a path names, whatever it is called.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileId&) const = default;
};
std::optional<FileId> file_id(const std::string& path);  // empty: not there, or not to be seen

void remove_file(const std::string& path);

// The directory part; "." if there is none.
std::string parent_of(const std::string& path);
std::string absolute(const std::string& path);
// `a/./b` and `a//b` are `a/b`; `a/../b` is `b` only where `a` is no symbolic link.
std::string without_detours(const std::string& path);

}  // namespace stint::os
