#include "guard/git_hook.h"

#include <algorithm>

#include "base/text.h"
#include "guard/git_command.h"
#include "guard/git_fence.h"
#include "os/artifact.h"
#include "os/directory.h"
#include "os/files.h"

namespace stint::guard {
namespace {

constexpr std::string_view kMark = "# stint-guard-hook ";

struct HookFile {
  std::string path;    // where git looks for it: core.hooksPath
  std::string before;  // what had been there
  std::string_view text;
};
struct HookPlace {
  Git git;
  std::string repository;  // its git directory
  HookFile refuses;
  HookFile clears;
};

HookFile file_in(const std::string& folder, std::string_view name, std::string_view text) {
  const std::string path = cat(folder, "/", name);
  return {path, cat(path, ".before-stint"), text};
}

Result<HookPlace> find_place(const std::string& repository) {
  // A folder that is no repository must not lead git up to one that contains it.
  std::string path = os::absolute(repository);
  if (!os::exists(cat(path, "/HEAD")) && os::exists(cat(path, "/.git/HEAD"))) path += "/.git";
  if (!os::exists(cat(path, "/HEAD")))
    return invalid(cat(quoted(repository), " is no git repository"));
  Git git(path);
  auto hooks = git.line({"rev-parse", "--git-path", "hooks"}, "looking for the hooks");
  if (!hooks) return hooks.error();
  // A core.hooksPath that is no absolute path counts from where the hooks of a push run.
  const std::string folder = hooks->starts_with('/') ? *hooks : cat(path, "/", *hooks);
  return HookPlace{git, path, file_in(folder, "reference-transaction", hook_text()),
                   file_in(folder, "pre-receive", clearing_hook_text())};
}

bool is_ours(const std::string& text) { return text.find(kMark) != text.npos; }

Status set(const Git& git, std::vector<std::string> words) {
  words.insert(words.begin(), "config");
  auto done = git.line(words, "configuring the repository");
  if (!done) return done.error();
  return {};
}

constexpr const char* kFsyncBefore = "stint.fsyncbefore";  // what core.fsync was
constexpr const char* kMadeHooks = "stint.madehooks";      // there was no folder for hooks

std::string with_references(std::string_view value) {
  return cat(value.empty() ? "committed" : value, ",loose-object,reference");
}

// Added to what the repository's administrator has set, not put in its place.
Result<std::string> add_fsync(const Git& git) {
  auto now = git.run({"config", "--get", "core.fsync"});
  if (!now) return now.error();
  std::string value(trim(now->out));
  if (syncs_refs(value)) return value;
  if (auto ok = set(git, {kFsyncBefore, value}); !ok) return ok.error();
  value = with_references(value);
  if (auto ok = set(git, {"core.fsync", value}); !ok) return ok.error();
  return value;
}

// True: it was ours, and is as it had been.
Result<bool> restore_fsync(const Git& git) {
  auto before = git.run({"config", "--get", kFsyncBefore});
  if (!before) return before.error();
  auto now = git.run({"config", "--get", "core.fsync"});
  if (!now) return now.error();
  const std::string was(trim(before->out));
  if (!before->ok() || trim(now->out) != with_references(was)) return false;
  auto done = was.empty() ? git.run({"config", "--unset", "core.fsync"})
                          : git.run({"config", "core.fsync", was});
  if (!done) return done.error();
  return done->ok();
}

// A symbolic ref is not what is written: who pushes to the branch that it leads to would not be
// asked for a fence.
Status check_plain(const Git& git, const std::vector<std::string>& branches) {
  for (const std::string& branch : branches) {
    if (branch.ends_with('*')) continue;
    auto leads_to = git.run({"symbolic-ref", "--quiet", branch});
    if (!leads_to) return leads_to.error();
    if (!leads_to->ok()) continue;
    return invalid(cat(quoted(branch), " is a symbolic ref and leads to ",
                       quoted(trim(leads_to->out)), ": guard that one. Nothing was changed"));
  }
  return {};
}

Result<bool> guard_branches(const Git& git, const HookOptions& options) {
  bool changed = false;
  auto now = git.run({"config", "--get-all", "stint.guarded"});
  if (!now) return now.error();
  // A second installation that names none keeps what the first one guards.
  if (options.branches.empty() && options.fence.empty() && !trim(now->out).empty()) return false;
  std::vector<std::string> branches = options.branches;
  if (branches.empty()) branches.emplace_back("refs/heads/*");
  for (const std::string& branch : branches) {
    const std::string line = cat(branch, " ", options.fence.empty() ? "*" : options.fence);
    if (cat("\n", now->out).find(cat("\n", line, "\n")) != std::string::npos) continue;
    if (auto ok = set(git, {"--add", "stint.guarded", line}); !ok) return ok.error();
    changed = true;
  }
  return changed;
}

// As the hook reads it: a pattern of refs and a fence, in each line.
std::string guarded_lines(const Git& git) {
  auto now = git.run({"config", "--get-all", "stint.guarded"});
  if (now && !trim(now->out).empty()) return std::move(now->out);
  return "refs/heads/* *";
}

std::vector<std::string> guarded_patterns(const Git& git) {
  std::vector<std::string> out;
  const std::string all = guarded_lines(git);
  for (const std::string_view line : split(all, '\n')) {
    const std::string_view pattern = line.substr(0, line.rfind(' '));
    if (!pattern.empty()) out.emplace_back(pattern);
  }
  return out;
}

std::vector<std::string> absent_branches(const Git& git, const std::vector<std::string>& branches) {
  std::vector<std::string> out;
  for (const std::string& branch : branches) {
    if (branch.ends_with('*')) continue;
    auto there = git.run({"show-ref", "--verify", "--quiet", branch});
    if (there && !there->ok()) out.push_back(branch);
  }
  return out;
}

std::vector<std::string> unbound_patterns(const Git& git) {
  const std::string all = guarded_lines(git);
  std::vector<std::string> out;
  const auto lines = split(all, '\n');
  for (const std::string_view line : lines) {
    if (!line.ends_with(" *")) continue;
    const std::string_view pattern = line.substr(0, line.size() - 1);
    // Every line that fits a ref must be met: one with a fence binds the pattern.
    const bool bound = std::ranges::any_of(
        lines, [&](std::string_view other) { return other.starts_with(pattern) && other != line; });
    if (!bound) out.emplace_back(trim(pattern));
  }
  return out;
}

bool says_only_git(const HookPlace& place) {
  auto now = place.git.run({"config", "--file", cat(place.repository, "/config"), "--type=bool",
                            "--get", "stint.onlygit"});
  return now && trim(now->out) == "true";
}

// Whether git runs it can only be tried: in a transaction that the hook refuses, and that ends
// without a commit in any case.
Result<HookState> try_hook(const HookPlace& place) {
  auto oid = place.git.line({"hash-object", "-t", "tree", "/dev/null"}, "naming an object");
  if (!oid) return oid.error();
  auto end =
      place.git.run({"-C", place.repository, "update-ref", "--stdin"}, Git::kShort,
                    cat("start\ncreate refs/replace/", *oid, " ", *oid, "\nprepare\nabort\n"));
  if (!end) return end.error();
  if (end->ok()) return HookState::NotRun;
  if (end->talk.find("stint: refused: refs/replace/") != end->talk.npos) return HookState::Runs;
  return Error{Code::Failed, git_words(end->talk)};
}

bool stands(const HookFile& hook) {
  const auto text = os::read_file(hook.path);
  return text && *text == hook.text && os::is_executable(hook.path);
}

// Puts it there; one that is not ours is kept beside it.
Status put(const HookFile& hook) {
  const auto present = os::read_file(hook.path);
  if (!present && os::exists(hook.path)) return present.error();
  if (present && !is_ours(*present)) {
    if (os::exists(hook.before)) {
      return Error{Code::Failed, cat(quoted(hook.before),
                                     " is there already: the hook that now "
                                     "stands there cannot be kept beside it. Nothing was changed "
                                     "in the hooks")};
    }
    if (auto ok = os::rename_file(hook.path, hook.before); !ok) return ok;
  }
  // Whoever pushes there must find it.
  if (auto ok = os::make_directories(os::parent_of(hook.path), 0755); !ok) return ok;
  return os::write_file(hook.path, hook.text, os::Durability::Synced, 0755);
}

// Records of pushes, and folders that were made for us: those that are empty.
void remove_folders(const HookPlace& place, bool hooks) {
  os::Directory repository;
  os::Directory ours;
  if (os::Directory::open(place.repository, repository) != 0) return;
  if (repository.open_directory("stint", ours) == 0) {
    for (const char* records : {"locks", "orphans"}) os::remove_tree(ours, records);
    repository.remove_directory("stint");
  }
  os::Directory above;
  const std::string folder = os::parent_of(place.refuses.path);
  if (hooks && os::Directory::open(os::parent_of(folder), above) == 0) {
    above.remove_directory(folder.substr(folder.find_last_of('/') + 1));
  }
}

// True: it was there.
Result<bool> take_away(const HookFile& hook, bool* restored) {
  const auto present = os::read_file(hook.path);
  if (!present || !is_ours(*present)) return false;
  if (os::exists(hook.before)) {
    if (auto ok = os::rename_file(hook.before, hook.path); !ok) return ok.error();
    *restored = true;
  } else {
    os::remove_file(hook.path);
  }
  return true;
}

}  // namespace

bool syncs_refs(std::string_view core_fsync) {
  bool out = false;
  for (const std::string_view part : split(core_fsync, ',')) {
    const std::string_view one = trim(part);
    if (one == "all" || one == "reference") out = true;
    if (one == "none" || one == "-all" || one == "-reference") out = false;
  }
  return out;
}

Result<std::string> fence_prefix_at(const std::string& repository) {
  auto place = find_place(repository);
  if (!place) return place.error();
  auto now = place->git.run({"config", "--get", "stint.fenceref"});
  if (!now) return now.error();
  const std::string_view set = trim(now->out);
  return std::string(set.empty() ? kFencePrefix : set);
}

bool HookFound::guards(std::string_view ref) const {
  return std::ranges::any_of(guarded, [&](std::string_view pattern) {
    return pattern.ends_with('*') ? ref.starts_with(pattern.substr(0, pattern.size() - 1))
                                  : ref == pattern;
  });
}

Result<HookFound> look_at_hook(const std::string& repository) {
  auto place = find_place(repository);
  if (!place) return place.error();
  const HookFile& hook = place->refuses;
  HookFound out{.state = HookState::None, .path = hook.path};
  out.guarded = guarded_patterns(place->git);
  out.unbound = unbound_patterns(place->git);
  out.only_git = says_only_git(*place);
  const auto text = os::read_file(hook.path);
  if (!text || !is_ours(*text)) {
    const auto usual = os::read_file(cat(place->repository, "/hooks/reference-transaction"));
    if (usual && is_ours(*usual)) out.state = HookState::Elsewhere;
    return out;
  }
  if (*text != hook.text || !stands(place->clears)) {
    out.state = HookState::AnotherVersion;
    return out;
  }
  auto tried = try_hook(*place);
  if (!tried) return std::move(tried.error()).during(cat("trying ", quoted(hook.path)));
  out.state = *tried;
  return out;
}

Result<HookInstalled> install_hook(const HookOptions& options) {
  auto place = find_place(options.repository);
  if (!place) return place.error();
  if (auto ok = check_plain(place->git, options.branches); !ok) return ok.error();
  HookInstalled out;
  out.path = place->refuses.path;
  out.absent = absent_branches(place->git, options.branches);
  auto fsync = add_fsync(place->git);
  if (!fsync) return fsync.error();
  out.fsync = *fsync;
  // What is guarded before who guards it: a hook without its list guards everything.
  auto changed = guard_branches(place->git, options);
  if (!changed) return changed.error();
  if (!options.prefix.empty()) {
    const auto now = fence_prefix_at(options.repository);
    *changed |= !now || *now != options.prefix;
    if (auto ok = set(place->git, {"stint.fenceref", options.prefix}); !ok) return ok.error();
  }
  out.only_git = says_only_git(*place);
  if (options.only_git && !out.only_git) {
    if (auto ok = set(place->git, {"stint.onlygit", "true"}); !ok) return ok.error();
    out.only_git = *changed = true;
  }
  out.unbound = unbound_patterns(place->git);
  const auto is_chained = [&] {
    return os::exists(place->refuses.before) || os::exists(place->clears.before);
  };
  out.chained = is_chained();
  // One that git does not run (its mode) is put there again.
  const auto tried = stands(place->refuses) && stands(place->clears)
                         ? try_hook(*place)
                         : Result<HookState>(HookState::None);
  if (tried && *tried == HookState::Runs) {
    out.already = !*changed;
    return out;
  }
  if (!os::exists(os::parent_of(place->refuses.path))) {
    if (auto ok = set(place->git, {kMadeHooks, "true"}); !ok) return ok.error();
  }
  // First who clears up: nothing is refused while only that one is there.
  for (const HookFile& hook : {place->clears, place->refuses}) {
    if (auto ok = put(hook); !ok) return ok.error();
  }
  out.chained = is_chained();
  return out;
}

Result<HookRemoved> uninstall_hook(const std::string& repository) {
  auto place = find_place(repository);
  if (!place) return place.error();
  HookRemoved out;
  for (const HookFile& hook : {place->refuses, place->clears}) {
    auto was_there = take_away(hook, &out.restored);
    if (!was_there) return was_there.error();
    out.was_there |= *was_there;
  }
  if (!out.was_there) return out;
  auto restored = restore_fsync(place->git);
  if (!restored) return restored.error();
  out.fsync_restored = *restored;
  const auto made = place->git.run({"config", "--get", kMadeHooks});
  for (const char* key : {"stint.guarded", "stint.descends", "stint.fenceref", "stint.onlygit",
                          kFsyncBefore, kMadeHooks}) {
    if (auto end = place->git.run({"config", "--unset-all", key}); !end) return end.error();
  }
  remove_folders(*place, made && made->ok());
  return out;
}

}  // namespace stint::guard
