// Keeps what guards leave beside files out of git: `git add -A` would commit a fence, and a clone
// or a checkout would carry it to where it guards nothing, or put an old one back.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stint::guard {

// Lines for .gitignore or .git/info/exclude. Only names with a number fit: `.env.stage.local` is
// the user's own.
std::span<const std::string_view> git_patterns();

// If the folder lies in a work tree: adds those lines to the repository's info/exclude that are not
// there yet, in one step. Nothing is done, and `stint guard check` says so, where that file cannot
// be written, is a link, or belongs to another user than the folder. Waits for nobody.
void keep_out_of_git(const std::string& folder);

}  // namespace stint::guard
