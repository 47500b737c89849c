// The last fence that was pushed from a repository, remembered in its git directory.
//
// A hint, never a proof: it saves asking the server before each push. What is kept are the bytes of
// the fence object, and its name is computed from them: a hint that lies about its token lies about
// its name too, and the server's comparison refuses it. A hint counts only under the settings of
// git that it was made under: where the remote leads to was looked at then.
#pragma once

#include <optional>
#include <string>

#include "guard/git_remote.h"

namespace stint::guard {

class GitHint {
 public:
  // `remote` as told to git push; `settings`: a digest of them, empty: not known.
  GitHint(const std::string& git_dir, const std::string& remote, const std::string& ref,
          const std::string& settings);

  bool knows_settings() const { return !settings_.empty(); }

  // Empty: none, or unreadable. `like`: any object's name of that repository.
  std::optional<RemoteFence> read(std::string_view like) const;
  // What cannot be kept is asked for again next time.
  void keep(const std::string& raw) const;
  void forget() const;

 private:
  std::string head() const;

  std::string path_;
  std::string ref_;
  std::string settings_;
};

}  // namespace stint::guard
