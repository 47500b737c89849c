// Running git: in one repository, in a clean environment, never asking anybody, never for ever.
//
// Messages are always in English, because some of them must be understood; nothing of safety hangs
// on them. The user's own git configuration (credentials, proxies, rewritten URLs) stays in force,
// except what would change a push behind our back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "os/ended.h"

namespace stint::guard {

struct GitEnd {
  os::End how;
  std::string out;
  std::string talk;  // stderr
  bool ok() const { return how.good(); }
};

class Git {
 public:
  // Empty: the repository of the current directory, as git finds it.
  explicit Git(std::string git_dir = {}) : git_dir_(std::move(git_dir)) {}

  // Code::Failed: git is not there. Code::UnknownOutcome: it was killed after `limit`,
  // or nobody saw how it ended.
  Result<GitEnd> run(const std::vector<std::string>& words, Millis limit = kShort,
                     const std::string& input = {}) const;
  // The output without its last line end; `doing` and git's own words where it failed.
  Result<std::string> line(const std::vector<std::string>& words, std::string_view doing) const;

  // As if started in that folder: its repository, whatever the environment says. Empty: where we
  // are.
  static Git in(const std::string& folder);
  // A path that git told or was told, seen from where we are.
  std::string from_here(const std::string& path) const;

  // The same with more in its environment.
  Git with(std::vector<std::string> environment) const;
  // The same, all of whose calls together end within `limit` from now. With no time left nothing is
  // started: Code::Unavailable.
  Git within(Millis limit) const;
  // The same, with at least this much time left.
  Git at_least(Millis more) const;

  static constexpr Millis kShort{60'000};

 private:
  std::string git_dir_;
  std::string folder_;
  std::vector<std::string> more_;
  std::optional<MonoTime> until_;
};

// Older ones do not pass `atomic` on over HTTP (git 6f1194246a). G5
Status check_git_version(const Git& git);
bool git_version_suffices(std::string_view version_line);

// What git said, in one printable line: its last "fatal:", "error:" or "remote:" words.
std::string git_words(const std::string& talk);

}  // namespace stint::guard
