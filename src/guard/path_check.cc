#include "guard/path_check.h"

#include <algorithm>

#include "base/text.h"
#include "os/directory.h"
#include "os/files.h"
#include "os/program.h"

namespace stint::guard {
namespace {

using Level = CheckLine::Level;

// What stands beside the artifact, by the names that LAW gives: `.FILE.fence.TOKEN` and the like.
struct NamesBeside {
  std::uint64_t highest = 0;
  std::string highest_name;
  std::size_t stages = 0;
  std::size_t others = 0;        // half-made fences, and what a seal took out of the way
  std::vector<std::string> odd;  // fences whose number makes no sense
};

NamesBeside sort_names(const std::vector<std::string>& names, const std::string& artifact) {
  NamesBeside out;
  for (const std::string& name : names) {
    const std::string own = cat('.', artifact, '.');
    if (!name.starts_with(own)) continue;
    const auto words = split(std::string_view(name).substr(own.size()), '.');
    if (words.size() < 2) continue;
    if (words[0] == "stage") ++out.stages;
    if (words[0] == "seal" || words[0] == "trash") ++out.others;
    if (words[0] != "fence") continue;
    const auto token = parse_digits(words[1]);
    if (!token || *token == 0) {
      out.odd.push_back(name);
    } else if (*token > out.highest) {
      out.highest = *token;
      out.highest_name = name;
    }
  }
  return out;
}

bool in_work_tree(std::string directory) {
  while (!os::exists(directory == "/" ? "/.git" : directory + "/.git")) {
    if (directory == "/" || directory.empty()) return false;
    directory = os::parent_of(directory);
  }
  return true;
}

// A clone or a checkout would take a fence to a place that it does not guard, or put an old one
// back.
std::optional<CheckLine> git_carries(const std::string& parent, const std::string& fence) {
  if (!in_work_tree(parent)) return std::nullopt;
  const auto end = os::run_program({.argv = {"git", "-C", parent, "check-ignore", "-q", fence},
                                    .environment = {"PATH=/usr/local/bin:/usr/bin:/bin"}});
  if (end && end->exit_code == 0) return std::nullopt;
  return CheckLine{Level::Warn,
                   "git would carry the fence files: add the line '.*.fence.*' to .gitignore (or "
                   ".git/info/exclude), and leave them out of backups too"};
}

}  // namespace

Result<std::vector<CheckLine>> check_path(const Target& target, api::Fences* fences) {
  const std::string parent = os::parent_of(target.place);
  const std::string artifact = target.place.substr(target.place.rfind('/') + 1);
  os::Directory directory;
  if (const int failed = os::Directory::open(parent, directory); failed != 0) {
    return os::file_error(cat("opening ", quoted(parent)), failed);
  }
  std::vector<std::string> names;
  if (const int failed = directory.list(names); failed != 0) {
    return os::file_error(cat("listing ", quoted(parent)), failed);
  }
  const NamesBeside beside = sort_names(names, artifact);
  std::vector<CheckLine> out;
  out.push_back({Level::Ok, beside.highest == 0
                                ? std::string("it has no fence yet")
                                : cat("the fence stands at token ", beside.highest)});
  for (const std::string& name : beside.odd) {
    out.push_back({Level::Fail, cat(quoted(name),
                                    " is no fence that a guard makes: everything is "
                                    "refused until an operator has looked at it")});
  }
  if (beside.stages > 0 || beside.others > 0) {
    out.push_back(
        {Level::Ok, cat(beside.stages, " staged and ", beside.others,
                        " half-made file(s): of writers at work, or left by crashed ones; "
                        "the next seal removes what is older")});
  }
  const std::string fence =
      beside.highest == 0 ? cat('.', artifact, ".fence.1") : beside.highest_name;
  if (auto carried = git_carries(parent, fence)) out.push_back(std::move(*carried));
  if (fences == nullptr) {
    out.push_back({Level::Warn,
                   "the store cannot be asked: only the token that stands there can "
                   "write until it can"});
  }
  return out;
}

}  // namespace stint::guard
