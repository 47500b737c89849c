// The repository that one stands in, looked at without starting git where that is safe.
//
// Starting git takes longer than all the rest of a push's preparations. What is read here ourselves
// are the simplest cases alone: a plain `.git` directory, a ref in a file of its own, objects named
// by SHA-1. Everything else is asked of git. A wrong guess could not harm: git looks for itself
// when it pushes, and refuses an object that it does not have.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "guard/git_command.h"

namespace stint::guard {

struct PlainRepository {
  std::string git_dir;
  std::string head;  // what HEAD names: "refs/heads/main"; empty: no branch
};
// `plain`: nothing in the environment moves the repository elsewhere (who may look says so).
std::optional<PlainRepository> find_plain_repository(bool plain);

// What stands here: where things are kept, and what is to be pushed.
struct Here {
  std::string git_dir;
  std::string oid;
  bool plain = false;  // objects may be put there by ourselves
};
Result<Here> look_here(const Git& git, const std::string& source, bool plain);

// A digest of all settings of git that count here: the repository's own and `others`. Empty: not
// known.
std::string settings_digest(const Here& here, const std::optional<std::string>& others);

// The name that git gives to a blob; `like`: another name of that repository, for its kind of hash.
std::string blob_name(std::string_view content, std::string_view like);
// Puts it there as git would. Empty: it could not be done this way; git is to be asked.
std::optional<std::string> put_blob(const std::string& git_dir, std::string_view content);
// The file of a loose blob: header and content in one stored block.
std::string loose_blob(std::string_view content);

}  // namespace stint::guard
