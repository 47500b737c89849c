// The directory of a dir: store.
//
//   log/<number>          the commits: the store itself
//   tmp/<number>.<nonce>  commits on their way into the log
//   snap/<number>-<nonce> tables that a commit in the log names
//   records/...           a readable copy of every record, for people
//   head                  where the newest base was once: saves a listing, decides nothing
//   clock, lock, wake/    the server's time; a courtesy between writers; wake-ups on one machine
#pragma once

#include <string>

#include "base/random.h"
#include "os/directory.h"
#include "store/dir/log_file.h"

namespace stint::store::dir {

struct Place {
  std::string path;
  os::FileModes modes;
  os::Directory root;
  os::Directory log;
  os::Directory tmp;
  os::Directory snap;
  os::Fd clock;
  os::FileFacts log_facts;
  bool created = false;

  // An error if the path no longer leads to the log that was opened.
  Status still_there() const;
  std::string log_path() const { return path + "/log"; }
};

// Makes the store if it is missing and that is allowed. Never makes one among other files.
Result<Place> open_place(const std::string& path, bool may_create, Random& random);

// Writes and syncs a file in `tmp` for that number; `changed` is the server's time of its creation.
struct Staged {
  std::string name;
  os::Fd file;
  Nanos changed{0};
};
Result<Staged> stage(const Place& place, Number number, Nonce nonce);
std::string staged_name(Number number, Nonce nonce);

}  // namespace stint::store::dir
