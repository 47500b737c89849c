// The guard of git repositories on servers that are not ours (LAW section 4, facts/git.md).
//
// A fence is a ref beside the branches. A seal raises it in a push of its own; a write pushes
// branch and fence in ONE atomic push that names the fence's old object: the server compares and
// writes under its locks, in one step. G5
//
//   the fence as read      seal                         push
//   none                   by the store's word          seal first; fault where it had been sealed
//   lower                  by the store's word          seal first
//   ours                   done already                 push from it
//   ours, by order         taken up                     taken up first
//   our token, another's
//   claim                  fault                        fault
//   higher, foreign        refused                      refused
//   unreadable             fault (an operator adopts)   fault
//
// This shuts out who is late. Who lies about a token, or pushes without us, is shut out only by the
// hook that `stint guard install PATH.git` puts into a repository of one's own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "guard/git_target.h"
#include "guard/guard.h"
#include "guard/targets.h"

namespace stint::guard {

// `words`: git:REMOTE/REF or git:URL#BRANCH. Does not remember the target: that is the caller's.
Result<SealAnswer> seal_git(const std::string& words, const SealRequest& request,
                            api::Fences* fences);

// The words that mean the same target everywhere: what is to be remembered as sealed.
Result<std::string> canonical_git_target(const std::string& words);

// The line of guard/targets.h.
Guard git_guard();

struct GitPush {
  Pass pass;
  std::string folder = {};  // whose repository; empty: where we are
  GitTarget target;         // where to; the branch as named there
  std::string source;       // what: a name or an object of this repository
  bool dry_run = false;
  bool plain = false;  // git_here.h
  // Git's settings beyond the repository's own, as they stand, to notice a change; none: not known.
  std::optional<std::string> settings = {};
  Millis limit{300'000};
  // Asked for only where a fence must be raised: a push from a fence of one's own needs no store.
  std::function<Result<api::Fences*>()> fences;
  // What git, the server and the user's hooks say, as each push ends.
  std::function<void(const std::string&)> tell;
};

struct GitPushed {
  WriteAnswer answer;
  std::string target;                  // canonical where the server was asked, else as given
  std::string oid;                     // of what was pushed
  bool sealed = false;                 // this push had to seal first
  std::optional<Refused> warned = {};  // Pass::warn: what it would have been refused for
};

// Code::Failed: a conflict (the branch moved on: fetch and rebase; the fence still stands), a
// hook's refusal, or a fence that is not what it should be. Code::UnknownOutcome: it may have
// landed.
Result<GitPushed> push_git(const GitPush& push);

}  // namespace stint::guard
