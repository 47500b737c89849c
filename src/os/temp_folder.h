// A folder for a short while, removed with all that is in it; a file that has no name.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "os/fd.h"

namespace stint::os {

class TempFolder {
 public:
  // Under $TMPDIR or /tmp; the name begins with `prefix`.
  static Result<TempFolder> make(const std::string& prefix);
  TempFolder(TempFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TempFolder& operator=(TempFolder&&) = delete;
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();

  const std::string& path() const { return path_; }

 private:
  explicit TempFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// A new file there, to read and write, that no name leads to: it goes with its last descriptor.
Result<Fd> unnamed_file();

}  // namespace stint::os
