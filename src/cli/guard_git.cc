#include "cli/guard_git.h"

#include "api/json.h"
#include "base/text.h"
#include "cli/exit_codes.h"
#include "guard/git_fence.h"
#include "guard/git_hook.h"
#include "guard/git_target.h"

namespace stint::cli {

bool is_git_place(std::string_view word) { return word.find("://") == word.npos; }

int git_install(Session& session) {
  const Words& words = session.words();
  guard::HookOptions options{.repository = words.operands()[1], .branches = {}, .fence = {}};
  for (const std::string& name : words.values("--branch")) {
    auto branch = guard::full_branch(name);
    if (!branch) return session.fail(branch.error());
    options.branches.push_back(*branch);
  }
  if (const auto prefix = words.value("--fence-ref")) {
    if (auto ok = guard::check_fence_prefix(*prefix); !ok) return session.fail(ok.error());
    options.prefix = *prefix;
  }
  if (const auto name = words.value("--resource")) {
    auto resource = ResourceName::parse(*name);
    if (!resource) return session.fail(resource.error());
    auto prefix = options.prefix.empty() ? guard::fence_prefix_at(options.repository)
                                         : Result<std::string>(options.prefix);
    if (!prefix) return session.fail(prefix.error());
    options.fence = guard::fence_ref(*prefix, *resource);
  }
  options.only_git = words.has("--only-git");
  auto done = guard::install_hook(options);
  if (!done) return session.fail(done.error());
  std::string absent;
  for (const std::string& name : done->absent) absent += cat(absent.empty() ? "" : " ", name);
  if (session.json()) {
    session.print(
        api::to_json(std::vector<api::JsonField>{{"hook", done->path},
                                                 {"version", std::string(guard::kHookVersion)},
                                                 {"already", done->already},
                                                 {"chained", done->chained},
                                                 {"core_fsync", done->fsync},
                                                 {"bound", done->unbound.empty()},
                                                 {"only_git", done->only_git},
                                                 {"absent", absent}}));
    return kDone;
  }
  session.say(done->already ? cat("the hook was there already: ", printable(done->path))
                            : cat("installed: ", printable(done->path)));
  if (done->chained) session.say("the hook that was there before is kept, and runs first");
  session.say(cat("core.fsync is ", printable(done->fsync),
                  ": a fence survives a power cut (needs git 2.36 or newer on the server)"));
  if (done->only_git)
    session.say("by your word nothing but git writes refs there: locks of killed ones are cleared");
  for (const std::string& name : done->absent) {
    session.say(cat("there is no branch ", printable(name),
                    " there yet; if that is not its name, nothing else guards what you meant"));
  }
  for (const std::string& pattern : done->unbound) {
    session.say(cat("any resource's lease opens ", printable(pattern),
                    "; bind it: stint guard install ", quoted(options.repository),
                    " --resource R"));
  }
  return kDone;
}

int git_uninstall(Session& session) {
  auto done = guard::uninstall_hook(session.words().operands()[1]);
  if (!done) return session.fail(done.error());
  const std::string_view fsync =
      done->fsync_restored ? "core.fsync is as it was before" : "core.fsync is left as it is";
  return session.done(
      {{"was_there", done->was_there},
       {"restored", done->restored},
       {"core_fsync_restored", done->fsync_restored}},
      !done->was_there ? std::string("there was no hook of stint")
      : done->restored
          ? cat("removed; the hook that was there before is back. Fences stay, and ", fsync)
          : cat("removed: this server no longer refuses by itself. Fences stay, and ", fsync));
}

}  // namespace stint::cli
