// A directory that others change meanwhile, from other machines too: names are looked up afresh,
// and times are those of the file server.
//
// Every call answers with an errno (0: done), because what a failure means hangs on which one it
// is: a name that exists already is somebody else's success.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "os/fd.h"

namespace stint::os {

enum class FileKind { Regular, Directory, Link, Other };

struct FileFacts {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  Nanos changed{0};   // the server's clock when content, attributes or links last changed
  Nanos modified{0};  // ... when the content last changed
  std::optional<Nanos> born;
  unsigned mode = 0;
  unsigned owner = 0;
  unsigned group = 0;
  FileKind kind = FileKind::Other;
};

struct FileModes {
  unsigned file = 0600;
  unsigned directory = 0700;
};

class Directory {
 public:
  static int open(const std::string& path, Directory& out);

  int read(const std::string& name, std::size_t limit, std::string& content,
           FileFacts& facts) const;
  // A new file; EEXIST if there is one.
  int create(const std::string& name, unsigned mode, Fd& out) const;
  // The same, but the process's creation mask takes from the mode.
  int create_masked(const std::string& name, unsigned mode, Fd& out) const;
  int open_existing(const std::string& name, Fd& out) const;
  // An existing or new file, for reading and writing.
  int open_file(const std::string& name, unsigned mode, Fd& out) const;
  int make_directory(const std::string& name, unsigned mode) const;
  int open_directory(const std::string& name, Directory& out) const;
  // A second name in `to` for a file of this directory; EEXIST if that name is taken.
  int link(const std::string& name, const Directory& to, const std::string& new_name) const;
  int rename(const std::string& name, const std::string& new_name) const;
  // The same, but EEXIST if the new name is taken. For directories only where the file system can.
  int rename_new(const std::string& name, const std::string& new_name) const;
  // Both names change places in one step; EINVAL where the file system cannot.
  int exchange(const std::string& name, const std::string& other) const;
  // Where a symbolic link points to.
  int read_link(const std::string& name, std::string& out) const;
  // Asks the server, whatever is cached. An empty name: the directory itself.
  int facts(const std::string& name, FileFacts& out) const;
  // `folders`, if wanted: those of the names that are directories.
  int list(std::vector<std::string>& names, std::vector<std::string>* folders = nullptr) const;
  int remove(const std::string& name) const;
  int remove_directory(const std::string& name) const;
  int sync() const;
  // Whether the path names this very directory now: another may have taken its place.
  bool stands_at(const std::string& path) const;
  int fd() const { return fd_.get(); }

 private:
  Fd fd_;
};

int facts_of(const std::string& path, FileFacts& out);
int facts_of(int fd, FileFacts& out);
int write_whole(int fd, std::string_view content);
int read_at(int fd, std::uint64_t offset, std::size_t length, std::string& out);
int sync_file(int fd);
// Overwrites from the start and cuts off what stood behind.
int overwrite(int fd, std::string_view content);
// Sets the times of the file to the server's present.
int touch(int fd);
// Takes the advisory lock of the file, or says EWOULDBLOCK. It goes with the descriptor.
int try_lock(int fd);

// "reading 'x': No such file or directory", Denied where permission was refused, else Unavailable.
Error file_error(std::string_view doing, int number);

}  // namespace stint::os
