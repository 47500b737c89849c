// `stint guard install|uninstall PATH.git`: the hook in a repository of one's own.
#pragma once

#include <array>

#include "cli/command.h"
#include "cli/session.h"

namespace stint::cli {

constexpr Option kBranchOption = {
    "--branch", "NAME", "install in a git repository: guard this branch (default: all)", true};

// A path, not a URL: such a guard is installed beside the repository.
bool is_git_place(std::string_view word);
// The operands are the verb and the path; --branch and --resource narrow what is guarded.
int git_install(Session& session);
int git_uninstall(Session& session);

}  // namespace stint::cli
