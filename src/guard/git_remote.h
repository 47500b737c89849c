// One fence at one git server: read it, and push with it. Knows git, decides nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "guard/git_command.h"
#include "guard/git_fence.h"
#include "guard/git_look.h"
#include "guard/git_porcelain.h"

namespace stint::guard {

struct RemoteFence {
  std::string oid;                // empty: there is no fence
  std::optional<GitFence> fence;  // empty: none, or unreadable
  std::string unreadable;         // why
  std::string raw;                // the object's own bytes
  std::string leads_to = {};      // where Place::branch, a symbolic ref there, leads to
};

// A branch or tag to be pushed with the fence.
struct BranchUpdate {
  std::string oid;
  std::string ref;
};

enum class PushFate {
  Landed,     // fence and branches
  Moved,      // nothing: the fence was not where we expected it
  Locked,     // nothing: somebody else's push was in the way, or a branch moved meanwhile
  Conflict,   // nothing: the branch has moved on, the fence stands
  Refused,    // nothing: the server, or the user's hook, said no
  Unreached,  // nothing was sent
  Unknown,    // sent, no answer
};

struct PushEnd {
  PushFate fate = PushFate::Unknown;
  std::string why;         // in git's words
  std::string talk;        // all that git and the hooks said
  std::string oid;         // of the fence object that was to be put there
  std::string raw;         // its bytes
  bool not_shown = false;  // Unknown: told as done, and the refs do not show it
};

struct PushPlan {
  std::string expected;  // the fence's object now; empty: there must be none
  GitFence fence;
  std::vector<BranchUpdate> branches = {};
  bool verify = false;  // runs the user's pre-push hook
  Millis limit{300'000};
};

class GitRemote {
 public:
  struct Place {
    std::string remote;  // what `git push` is told
    std::string url;     // where the fence is read: the push URL
    std::string ref;     // of the fence
    bool scratch = false;
    std::string objects_in = {};  // the git directory where we may put objects; empty: git does
    GitLook look = GitLook::ByServer;
    std::string branch = {};  // what will be pushed to; empty: read() does not look at it
  };
  GitRemote(Git git, Place place) : git_(std::move(git)), place_(std::move(place)) {}

  const Git& git() const { return git_; }
  const Place& place() const { return place_; }

  // Asks the server. Code::Unavailable: it could not be asked.
  Result<RemoteFence> read() const;
  // What a ref of the server leads to; empty: it is no symbolic one, or the server does not tell.
  Result<std::string> leads_to(const std::string& ref) const;
  // The object of a ref at the server; empty: there is none.
  Result<std::string> oid_at_server(const std::string& ref) const;
  // Whether `tip`, which stands at `ref` there, is `oid` or stands on it.
  Result<bool> contains(const std::string& ref, const std::string& tip,
                        const std::string& oid) const;
  // What git says of our bytes: a fence that is stored here already.
  static RemoteFence parse(GitObject kind, std::string oid, std::string raw);

  // Where the server may be more than git, Landed is what its refs show.
  // REQUIRES: plan.fence is unlike every fence that ever stood there (its nonce).
  Result<PushEnd> push(const PushPlan& plan) const;
  // A push that git told as done, to `url`: looked at where that may not be so.
  void look_at(PushEnd& end, const std::vector<BranchUpdate>& refs, std::string_view url) const;
  // Takes the fence away if it is `oid`: for the probe's own scratch fence.
  Result<GitEnd> remove(const std::string& oid) const;

 private:
  struct Prepared {
    std::string oid;
    std::string raw;
  };
  Result<std::vector<std::string>> ask(const std::vector<std::string>& words) const;
  Result<Prepared> prepare(const PushPlan& plan) const;
  Result<std::string> object(const std::string& oid) const;
  Result<std::string> url() const;
  bool shows(const std::vector<BranchUpdate>& refs) const;

  Git git_;
  Place place_;
};

// What the hook of `stint guard install` said, if it refused; empty: it did not. No proof of what
// was done.
std::string words_of_hook(const std::string& talk);

// Whether git ended a push without a word of why, as it does when the user's pre-push hook failed.
// That hook may print anything: no proof of what was sent.
bool only_git_gave_up(const std::string& talk);

// Pure: from what `git push --porcelain` printed. `Moved` and `Locked` are guesses by words, which
// a read of the fence must confirm.
PushFate fate_of_push(int exit_code, const std::vector<RefLine>& lines, const std::string& talk,
                      const std::string& fence, std::string* why);

}  // namespace stint::guard
