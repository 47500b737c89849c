// The last fence that was pushed from a repository, remembered in its git directory.
//
// A hint, never a proof: it saves asking the server before each push. What is kept are the bytes of
// the fence object, and its name is computed from them: a hint that lies about its token lies about
// its name too, and the server's comparison refuses it.
#pragma once

#include <optional>
#include <string>

#include "guard/git_remote.h"

namespace stint::guard {

class GitHint {
 public:
  // `remote` as told to git push.
  GitHint(const std::string& git_dir, const std::string& remote, const std::string& ref);

  // Empty: none, or unreadable. `like`: any object's name of that repository.
  std::optional<RemoteFence> read(std::string_view like) const;
  // What cannot be kept is asked for again next time.
  void keep(const std::string& raw) const;
  void forget() const;

 private:
  std::string path_;
  std::string ref_;
};

}  // namespace stint::guard
