// Wake-ups between processes of one machine: a waiter watches a small file, a writer touches it.
//
// Keys fall into 256 buckets, one file each, made by the first waiter and never removed. A writer
// pays one failing system call for a bucket that nobody ever waited on, and nobody polls.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "base/watch.h"
#include "os/directory.h"
#include "os/fd.h"

namespace stint::os {

class WakeFiles {
 public:
  // `directory` is made by the first waiter.
  explicit WakeFiles(std::string directory, FileModes modes = {})
      : directory_(std::move(directory)), modes_(modes) {}

  // Wakes on every touch of `topic`'s bucket; where other machines touch it unseen, also each time
  // that `poll` has passed.
  Result<std::unique_ptr<Watch>> watch(std::string_view topic,
                                       std::optional<Millis> poll = std::nullopt) const;
  // False: nobody has ever waited for anything here. One look for many touches.
  bool anyone() const;
  void touch(std::string_view topic) const;

 private:
  std::string bucket_path(std::string_view topic) const;
  std::string directory_;
  FileModes modes_;
};

}  // namespace stint::os
