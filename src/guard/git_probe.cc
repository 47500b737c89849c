#include "guard/git_probe.h"

#include <algorithm>

#include "base/text.h"
#include "guard/git_guard.h"
#include "guard/git_hidden.h"
#include "guard/git_hook.h"
#include "guard/git_remote.h"
#include "guard/git_sealing.h"
#include "os/files.h"
#include "os/random.h"

namespace stint::guard {
namespace {

using Level = CheckLine::Level;

class Probe {
 public:
  Probe(GitTarget target, std::string url, Git git)
      : target_(std::move(target)), url_(std::move(url)), git_(std::move(git)) {}

  std::vector<CheckLine> run() {
    if (capabilities() && scratch_fence() && branch()) {
      // What remains can only be seen beside the repository.
      power_cut();
      work_tree();
      hook();
    }
    return std::move(findings_);
  }

 private:
  void tell(Level level, std::string_view what, std::string_view words) {
    findings_.push_back({level, cat(what, ": ", words)});
  }
  std::string remote() const { return target_.named ? target_.remote : url_; }
  std::string option(const std::string& key) const;
  bool capabilities();
  bool scratch_fence();
  bool branch();
  void power_cut();
  void work_tree();
  void hook();

  const GitTarget target_;
  const std::string url_;
  const Git git_;
  std::vector<CheckLine> findings_;
};

// All of one probe are of one holder, as a hook on the server expects.
GitFence scratch(const std::string& nonce, std::uint64_t seq) {
  os::SystemRandom random;
  return {.fence = {.generation = Generation::parse(nonce).value_or(Generation()),
                    .resource = cat("stint-probe-", nonce.substr(0, 12)),
                    .token = Token(1),
                    .key = {},
                    .digest = {}},
          .seq = seq,
          .claim = {},
          .owner = "probe",
          .nonce = random.id_hex()};
}

// What the server announces before a push, seen without pushing anything.
bool Probe::capabilities() {
  const Git traced = git_.with({"GIT_TRACE_PACKET=1"});
  auto end = traced.run({"push", "--dry-run", "--porcelain", "--no-verify", "--", remote(),
                         cat(":", target_.fence_prefix, "stint-probe-nothing")});
  if (!end) {
    tell(Level::Fail, "reached", end.error().message);
    return false;
  }
  const std::size_t at = end->talk.find("report-status");
  if (at == end->talk.npos) {
    tell(Level::Fail, "reached", cat("the server did not answer: ", git_words(end->talk)));
    return false;
  }
  const std::string_view line =
      std::string_view(end->talk).substr(at, end->talk.find('\n', at) - at);
  std::string agent = "a git server that does not say which";
  bool atomic = false;
  for (const std::string_view word : split(line, ' ')) {
    atomic |= word == "atomic";
    if (word.starts_with("agent=")) agent = printable(word.substr(6));
  }
  tell(Level::Ok, "server", agent);
  if (atomic) {
    tell(Level::Ok, "atomic", "branch and fence can be pushed in one step");
    return true;
  }
  const bool asked = target_.fallback == GitFallback::SealCommit;
  tell(asked ? Level::Warn : Level::Fail, "atomic",
       asked ? "not offered; the fallback seals with commits on the branch"
             : "the server cannot push several refs at once, so a fence cannot be checked with the "
               "write; --fallback seal-commit seals with commits on the branch instead");
  return false;
}

bool Probe::scratch_fence() {
  os::SystemRandom random;
  const std::string nonce = random.id_hex();
  const std::string ref = cat(target_.fence_prefix, "stint-probe-", nonce.substr(0, 12));
  const GitRemote at(git_, {.remote = remote(),
                            .url = url_,
                            .ref = ref,
                            .scratch = true,
                            .objects_in = {},
                            .look = target_.look});
  auto made = at.push({.expected = {}, .fence = scratch(nonce, 0), .limit = Git::kShort});
  if (made && (made->fate == PushFate::Landed || made->not_shown)) {
    // What the next holder would read.
    const auto shown = at.oid_at_server(ref);
    if (!shown || shown->empty()) {
      tell(Level::Fail, "read back",
           shown ? cat(words_of_hidden(ref), ". ", take_back_fence(at, made->oid))
                 : shown.error().message);
      return false;
    }
  }
  if (!made || made->fate != PushFate::Landed) {
    tell(Level::Fail, "create",
         cat("a fence under ", target_.fence_prefix,
             " was refused: ", made ? made->why : made.error().message,
             "; another prefix may be allowed (--fence-ref)"));
    return false;
  }
  tell(Level::Ok, "create", cat("a fence was made under ", target_.fence_prefix));
  auto moved = at.push({.expected = made->oid, .fence = scratch(nonce, 1), .limit = Git::kShort});
  const bool good = moved && moved->fate == PushFate::Landed;
  const std::string now = good ? moved->oid : made->oid;
  tell(good ? Level::Ok : Level::Fail, "update",
       good ? "it was moved from the expected value" : "it could not be moved");
  auto wrong = at.push({.expected = made->oid, .fence = scratch(nonce, 2), .limit = Git::kShort});
  const bool refused = wrong && wrong->fate != PushFate::Landed && good;
  tell(refused ? Level::Ok : Level::Fail, "compare",
       refused ? "a push from an older value was refused"
               : "a push from an older value got through");
  auto removed = at.remove(wrong && wrong->fate == PushFate::Landed ? wrong->oid : now);
  if (!removed || !removed->ok()) {
    tell(Level::Warn, "delete",
         cat("the scratch fence ", ref,
             " could not be taken away (a hook or "
             "rule forbids it, which is good for real fences)"));
  }
  return good && refused;
}

bool Probe::branch() {
  const GitRemote at(git_, {.remote = remote(), .url = url_, .ref = {}});
  const auto leads_to = at.leads_to(target_.branch);
  if (!leads_to) {
    tell(Level::Fail, "branch", leads_to.error().message);
    return false;
  }
  if (leads_to->empty()) return true;
  tell(Level::Fail, "branch",
       cat(target_.branch, " is a symbolic ref and leads to ", printable(*leads_to),
           ", which the server would put in place after the fence; guard and push that one"));
  return false;
}

std::string Probe::option(const std::string& key) const {
  auto end = Git(url_).run({"config", "--get", key});
  return end ? std::string(trim(end->out)) : std::string();
}

void Probe::power_cut() {
  if (!os::exists(cat(url_, "/HEAD"))) {
    tell(Level::Warn, "power cut",
         "whether fences survive one cannot be seen from here; on a server of your own set "
         "core.fsync to include reference");
    return;
  }
  const bool synced =
      syncs_refs(option("core.fsync")) && option("core.fsyncMethod") != "writeout-only";
  const bool table = option("extensions.refstorage") == "reftable";
  if (synced || table) {
    tell(Level::Ok, "power cut", "refs are synced: fences survive one");
  } else {
    tell(Level::Warn, "power cut",
         "git does not sync refs here: a power cut may roll a fence back; "
         "'git config core.fsync committed,loose-object,reference' in that repository mends it");
  }
}

void Probe::work_tree() {
  const bool beside = os::exists(cat(url_, "/.git/HEAD"));
  if (!beside && !os::exists(cat(url_, "/HEAD"))) return;
  const Git there(beside ? cat(url_, "/.git") : url_);
  const auto bare = there.run({"config", "--type=bool", "--get", "core.bare"});
  const auto set = there.run({"config", "--get", "receive.denyCurrentBranch"});
  if (!bare || !set || trim(bare->out) == "true") return;
  constexpr std::string_view kInstead = "updateinstead";
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; };
  if (!std::ranges::equal(trim(set->out), kInstead, same)) return;
  tell(Level::Warn, "work tree",
       "receive.denyCurrentBranch is updateInstead: git writes the server's files before it looks "
       "at the fence, so that those of a late push stay there though its branch is refused");
}

void Probe::hook() {
  if (!os::exists(cat(url_, "/HEAD"))) return;
  constexpr std::string_view kSo =
      ": late writers are refused, but not those who lie about a token or push without stint";
  auto found = look_at_hook(url_);
  if (!found) return tell(Level::Warn, "hook", found.error().message);
  if (found->state != HookState::None) {
    for (const std::string& pattern : found->unbound) {
      tell(Level::Warn, "binding",
           cat("any resource's lease opens ", pattern,
               ", also a made-up one's; bind it: stint "
               "guard install PATH.git --resource R"));
    }
  }
  switch (found->state) {
    case HookState::Runs:
      tell(Level::Ok, "locks",
           found->only_git
               ? "what a killed git left is cleared by the next push: nothing but git writes refs "
                 "here, by the word of who installed the hooks"
               : "what a killed git left is cleared by the next push, unless it died before it was "
                 "recorded whose that is ('stint guard install --only-git' has these cleared too)");
      // A hook that guards others does as much for this branch as none.
      if (!found->guards(target_.branch)) {
        std::string others;
        for (const std::string& one : found->guarded) {
          others += cat(others.empty() ? "" : ", ", printable(one));
        }
        return tell(Level::Fail, "hook",
                    cat("it guards ", others, " and not ", target_.branch, kSo,
                        " ('stint guard install PATH.git --branch' adds one)"));
      }
      return tell(Level::Ok, "hook",
                  "the server itself refuses lower tokens, force, deletion and pushes without a "
                  "fence");
    case HookState::None:
      return tell(Level::Warn, "hook",
                  cat("no hook", kSo, " ('stint guard install' puts one there)"));
    case HookState::Elsewhere:
      return tell(Level::Warn, "hook",
                  cat("it is in the repository's hooks/, and git looks for ", quoted(found->path),
                      " (core.hooksPath)", kSo, " ('stint guard install' puts one there)"));
    case HookState::AnotherVersion:
      return tell(Level::Warn, "hook",
                  cat(quoted(found->path),
                      " is of another version of stint, or was changed; 'stint "
                      "guard install' puts this version's there"));
    case HookState::NotRun:
      return tell(Level::Warn, "hook",
                  cat(quoted(found->path), " is there, and git does not run it", kSo,
                      ". It must be executable ('stint guard install' makes it so), and git 2.28 "
                      "or newer"));
  }
}

}  // namespace

Result<std::vector<CheckLine>> probe_git(const std::string& words) {
  auto target = parse_git_target(words);
  if (!target) return target.error();
  auto from = repository_for(*target);
  if (!from) return from.error();
  return Probe(*target, from->url, from->git).run();
}

}  // namespace stint::guard
