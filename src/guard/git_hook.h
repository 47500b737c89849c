// The hook for repositories that one runs oneself: the server refuses by itself whoever lies about
// a token, forces, deletes, or writes without one.
//
// A reference-transaction hook, because only there the fence and the branch are both locked while
// it decides (pre-receive and update leave a window, facts/git.md A5). Plain sh: our program does
// not run there. tests/guard_git compares each of its decisions with core/fence.h. G5
//
// A second one, pre-receive, refuses nothing: it clears away what a git process that was killed in
// this repository has left locked (ADR 0022, ADR 0026). Else the next holder would not get in.
//
// The first cannot ask the store: that a raised token was really issued is the client's word. What
// it keeps is that no fence ever goes down, and that nothing is written beside it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stint::guard {

constexpr std::string_view kHookVersion = "5";

struct HookOptions {
  std::string repository;             // the path of a repository: bare, or its .git
  std::vector<std::string> branches;  // full names; '*' at the end: all that begin so; empty: all
  std::string fence;                  // the fence's ref; empty: any fence
  std::string prefix = {};            // of all fences; empty: as it is
  // The operator's word that whatever writes refs there is git, on this machine, and seen in /proc
  // from the hooks (ADR 0026). False: as it is.
  bool only_git = false;
};

struct HookInstalled {
  bool already = false;   // nothing had to be changed
  bool chained = false;   // another hook was there, and is run first (pre-receive: last)
  std::string path;       // of the hook that refuses
  std::string fsync;      // what core.fsync is now
  bool only_git = false;  // that word stands
  // Patterns of refs that are bound to no resource: the fence of any opens them.
  std::vector<std::string> unbound = {};
  std::vector<std::string> absent = {};  // branches that were named and are not there
};

std::string_view hook_text();           // reference-transaction
std::string_view clearing_hook_text();  // pre-receive
std::string_view lock_words();          // what both have in them
std::string_view orphan_words();        // of locks that nobody recorded (pre-receive)
// Where the hook of this repository looks for fences.
Result<std::string> fence_prefix_at(const std::string& repository);
Result<HookInstalled> install_hook(const HookOptions& options);

// Whether refs survive a power cut with that value of core.fsync: by git's default they do not.
bool syncs_refs(std::string_view core_fsync);

enum class HookState {
  Runs,            // tried
  None,            // none of ours
  Elsewhere,       // in hooks/, and core.hooksPath makes git look in another folder
  AnotherVersion,  // ours, and not this text; or without its pre-receive
  NotRun,          // this text, and git does not run it: no right to execute it, or git before 2.28
};
struct HookFound {
  HookState state = HookState::None;
  std::string path;                       // where git looks for it
  bool only_git = false;                  // as above
  std::vector<std::string> unbound = {};  // as above
  std::vector<std::string> guarded = {};  // patterns of refs

  bool guards(std::string_view ref) const;
};
// Changes nothing.
Result<HookFound> look_at_hook(const std::string& repository);

struct HookRemoved {
  bool was_there = false;
  bool fsync_restored = false;  // core.fsync was ours, and is what it had been
  bool restored = false;        // a hook that had been there before
};
Result<HookRemoved> uninstall_hook(const std::string& repository);

}  // namespace stint::guard
