#include "guard/git_command.h"

#include <algorithm>

#include "base/text.h"
#include "os/clock.h"
#include "os/files.h"
#include "os/program.h"

namespace stint::guard {
namespace {

// What the user may have configured for pushes by hand and must not happen in a fenced one.
constexpr const char* kSettings[] = {
    "push.followTags=false",     "push.pushOption=",          "push.recurseSubmodules=no",
    "submodule.recurse=false",   "push.useForceIfIncludes=0", "fetch.writeCommitGraph=false",
    "fetch.recurseSubmodules=0", "maintenance.auto=false",    "gc.auto=0",
    "push.gpgSign=false"};

std::vector<std::string> environment(bool own_repository) {
  std::vector<std::string> out = {"LC_ALL=C",
                                  "LANGUAGE",
                                  "GIT_TERMINAL_PROMPT=0",
                                  "GIT_EDITOR=",
                                  "GIT_PUSH_OPTION_COUNT",
                                  "GIT_QUARANTINE_PATH"};
  if (own_repository) {
    for (const char* name : {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
                             "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_NAMESPACE"})
      out.emplace_back(name);
  }
  return out;
}

}  // namespace

Result<GitEnd> Git::run(const std::vector<std::string>& words, Millis limit,
                        const std::string& input) const {
  if (until_) {
    const auto left = std::chrono::duration_cast<Millis>(*until_ - os::system_clock().mono());
    if (left <= Millis(0)) return unavailable("the server took too long; no time is left");
    limit = std::min(limit, left);
  }
  os::ProgramCall call{.argv = {"git"},
                       .environment = environment(!git_dir_.empty() || !folder_.empty()),
                       .limit = limit,
                       .inherits = true,
                       .apart = true,
                       .input = input};
  call.environment.insert(call.environment.end(), more_.begin(), more_.end());
  if (!folder_.empty()) call.argv.insert(call.argv.end(), {"-C", folder_});
  if (!git_dir_.empty()) call.argv.push_back(cat("--git-dir=", git_dir_));
  for (const char* setting : kSettings) {
    call.argv.emplace_back("-c");
    call.argv.emplace_back(setting);
  }
  call.argv.insert(call.argv.end(), words.begin(), words.end());
  auto end = os::run_program(call);
  if (!end) return end.error();
  if (end->how.code() == 127 && end->out.empty())
    return Error{Code::Failed, "git was not found in PATH"};
  return GitEnd{end->how, std::move(end->out), std::move(end->talk)};
}

Git Git::in(const std::string& folder) {
  Git out;
  out.folder_ = folder.empty() ? folder : os::absolute(folder);
  return out;
}

std::string Git::from_here(const std::string& path) const {
  if (path.starts_with('/')) return path;
  return os::absolute(folder_.empty() ? path : cat(folder_, "/", path));
}

Git Git::with(std::vector<std::string> environment) const {
  Git out = *this;
  out.more_ = std::move(environment);
  return out;
}

Git Git::within(Millis limit) const {
  Git out = *this;
  out.until_ = os::system_clock().mono() + limit;
  return out;
}

Git Git::at_least(Millis more) const {
  Git out = *this;
  if (until_) out.until_ = std::max(*until_, os::system_clock().mono() + more);
  return out;
}

Result<std::string> Git::line(const std::vector<std::string>& words, std::string_view doing) const {
  auto end = run(words);
  if (!end) return std::move(end.error()).during(doing);
  if (!end->ok()) return Error{Code::Failed, git_words(end->talk)}.during(doing);
  while (!end->out.empty() && end->out.back() == '\n') end->out.pop_back();
  return std::move(end->out);
}

bool git_version_suffices(std::string_view version_line) {
  constexpr std::string_view kPrefix = "git version ";
  if (!version_line.starts_with(kPrefix)) return false;
  const auto parts = split(version_line.substr(kPrefix.size()), '.');
  if (parts.size() < 2) return false;
  const auto major = parse_digits(parts[0]);
  const auto minor = parse_digits(parts[1]);
  if (!major || !minor) return false;
  return *major > 2 || (*major == 2 && *minor >= 24);
}

Status check_git_version(const Git& git) {
  auto version = git.line({"version"}, "asking git for its version");
  if (!version) return version.error();
  if (git_version_suffices(*version)) return {};
  return Error{Code::Failed,
               cat(quoted(*version),
                   " is too old for fenced pushes: over HTTP it leaves out what makes "
                   "them atomic; use git 2.24 or newer. Nothing was changed")};
}

std::string git_words(const std::string& talk) {
  // These follow what was the matter, or say nothing of it.
  constexpr std::string_view kEmpty[] = {"failed to push some refs", "hung up unexpectedly",
                                         "atomic push failed for ref"};
  std::string_view best;
  std::string_view empty;
  for (const std::string_view line : split(talk, '\n')) {
    if (trim(line).empty() || line.starts_with("hint:")) continue;
    const bool telling = line.starts_with("fatal:") || line.starts_with("error:") ||
                         line.starts_with("remote: error:") || line.starts_with("remote: fatal:") ||
                         line.starts_with("remote: stint: refused:") ||
                         line.starts_with("remote: stint: lock:");
    const bool nothing = std::ranges::any_of(
        kEmpty, [&](std::string_view words) { return line.find(words) != line.npos; });
    if (nothing) {
      empty = line;
    } else if (best.empty() || (telling && best.find(": ") == best.npos)) {
      best = line;
    }
  }
  if (best.empty()) best = empty;
  return best.empty() ? std::string("git said nothing") : cat("git: ", printable(trim(best)));
}

}  // namespace stint::guard
