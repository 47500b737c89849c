// Where a file or a directory is guarded: the directory that holds it, its name there, and the
// guard's own files beside it. The steps that both guards share (LAW section 4); the recipe and why
// each step is where it is: docs/internals/guards.md.
//
// Nothing here waits for another process, but for the lock on a network mount (at most 5 s).
// Thread safety: each object belongs to one thread; any number of processes share the place.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "guard/fence_file.h"
#include "guard/guard.h"
#include "os/directory.h"
#include "os/fd.h"
#include "os/random.h"

namespace stint::guard {

enum class Artifact { File, Directory };

struct SiteOptions {
  std::string path;
  Artifact kind = Artifact::File;
  bool follow = false;  // symbolic links that lead out of their directory too
  // As if on a network mount: for tests, which have none.
  bool network = false;
};

// What a look at the directory shows.
struct Survey {
  std::vector<BesideName> names;
  std::vector<StandingFence> fences;
  std::vector<BesideName> torn;  // fences that cannot be understood
  std::string why_torn;
};

class Site {
 public:
  // Errors: no such directory, a link that leads out of it, a name that is too long or a guard's
  // own, an artifact of another kind.
  static Result<Site> open(const SiteOptions& options);

  // "file:/srv/www/index.html": the words of the target, with all links resolved.
  const std::string& target() const { return target_; }
  std::string path() const;
  const std::string& name() const { return name_; }
  const os::Directory& directory() const { return directory_; }
  Artifact kind() const { return kind_; }
  // Empty: there is none yet.
  const std::optional<os::FileFacts>& facts() const { return facts_; }
  Random& random() { return random_; }

  // Why the window is not zero here; empty: it is. Known after lock().
  const std::string& narrow() const { return narrow_; }
  // On a network mount listings may be old: those who guard there take turns as well. Waits at most
  // 5 s and then goes on without it: whoever has it may be frozen.
  Status lock();
  std::string lock_name() const;  // of its file, which stays

  // The names beside the artifact; fences are not read.
  Result<std::vector<BesideName>> list() const;
  Result<Survey> survey() const;
  // The same of a listing that was just made.
  Result<Survey> survey(std::vector<BesideName> names) const;
  Result<StandingFence> read_fence(const BesideName& name) const;
  // Code::Unavailable for one that makes no sense; empty: there is none.
  Result<std::optional<UsedMark>> read_used(const Pass& pass) const;

  // Makes a fence or a mark under that name: whole, durable and never over another. An errno:
  // EEXIST if the name is taken, ENOENT if a higher seal removed it before it got its name.
  Result<int> make(const std::string& name, const std::string& text, const Pass& pass);

  // A new name for a stage.
  std::string stage_name(const Pass& pass);
  // Whether the folder that was opened still stands in its place: a publish exchanges whole trees.
  bool stands() const { return directory_.stands_at(parent_); }
  // The one that stands there now, and the artifact in it.
  Status reopen();
  // That the folder was exchanged, in words; `what` became of no use. REQUIRES: !stands().
  Error exchanged(std::string_view what) const;

  // Takes a staged body or tree away: in one step it can no longer be put in place. One that is
  // gone already is NOT an error; one that cannot be taken away is. Fences in a tree are handed
  // over to the one that stands.
  Status discard(const BesideName& stage);
  // One's own, after which nothing depends on its going.
  void drop(const std::string& stage_name);

  Status sync(std::string_view after) const;

 private:
  Site() = default;
  Status resolve(const SiteOptions& options);

  std::string target_;
  std::string parent_;
  std::string name_;
  Artifact kind_ = Artifact::File;
  os::Directory directory_;
  std::optional<os::FileFacts> facts_;
  bool network_ = false;
  os::Fd lock_;
  std::string narrow_;
  os::SystemRandom random_;
};

// The fence that rules, as this pass sees it; empty: none stands. An error where fences of two
// stores' lives or of two resources stand side by side, which no order of guards can leave behind
// but two of them that began at the same moment.
Result<std::optional<StandingFence>> ruling(const Survey& survey);

// Whether the fence is this very pass's.
bool own(const StandingFence& fence, const Pass& pass);
inline Generation line_of(const Pass& pass) {
  return line_of(pass.generation, pass.resource.text());
}

// Raises the fence and removes what lower tokens have staged; the whole of `seal`.
Result<SealAnswer> seal_site(Site& site, const SealRequest& request, api::Fences* fences);

// Whether a fence of this pass may stand there; false only if it is seen that none does.
bool may_stand(const Site& site, const Pass& pass);

// Before a write: finds the fence of this pass standing, or seals first.
Result<SealAnswer> sealed_for_writing(Site& site, const Pass& pass, api::Fences* fences);

// The last look before a stage is put in place: no higher fence stands, and nothing of lower tokens
// is staged any more. Sealed: it may be put in place.
Result<SealAnswer> may_land(Site& site, const Pass& pass, api::Fences* fences);

// --require-live. Sealed: the lease is live.
Result<SealAnswer> is_live(const Site& site, const Pass& pass, api::Fences* fences);

}  // namespace stint::guard
