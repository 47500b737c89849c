#include "guard/path_check.h"

#include <algorithm>

#include "base/text.h"
#include "guard/site.h"
#include "os/files.h"
#include "os/program.h"

namespace stint::guard {
namespace {

using Level = CheckLine::Level;

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
  if (end && end->how.good()) return std::nullopt;
  return CheckLine{Level::Warn,
                   "git would carry the fence files: they are not in .git/info/exclude, where the "
                   "first write puts them if it may. Add the line '.*.fence.[0-9]*' there or to "
                   ".gitignore (docs/guides/guard-files.md has all of them)"};
}

Artifact artifact_of(const Target& target) {
  return target.kind == TargetKind::File ? Artifact::File : Artifact::Directory;
}

}  // namespace

bool may_stand_at(const Target& target, const Pass& pass) {
  auto site = Site::open({.path = target.place, .kind = artifact_of(target)});
  return site && may_stand(*site, pass);
}

Result<PathGuardRemoved> uninstall_path(const Target& target) {
  PathGuardRemoved out;
  if (words_of_absent(target)) return out;
  auto site = Site::open({.path = target.place, .kind = artifact_of(target)});
  if (!site) return site.error();
  auto survey = site->survey();
  if (!survey) return survey.error();
  if (!survey->fences.empty()) out.resource = survey->fences.front().fence.resource;
  const auto last = [](const BesideName& one) {
    return one.kind == Beside::Fence || one.kind == Beside::Carried;
  };
  std::stable_partition(survey->names.begin(), survey->names.end(),
                        [&](const auto& one) { return !last(one); });
  for (const BesideName& one : survey->names) {
    if (auto gone = site->discard(one); !gone) return gone.error();
    ++out.files;
  }
  if (site->directory().remove(site->lock_name()) == 0) ++out.files;
  if (auto synced = site->sync("taking the guard away"); !synced) return synced.error();
  return out;
}

Result<std::vector<CheckLine>> check_path(const Target& target, api::Fences* fences) {
  auto site = Site::open({.path = target.place, .kind = artifact_of(target)});
  if (!site) return site.error();
  auto survey = site->survey();
  if (!survey) return survey.error();
  const auto rules = ruling(*survey);
  std::vector<CheckLine> out;
  // What cannot be understood may be the newest: then nobody knows where the fence stands.
  for (const BesideName& one : survey->torn) {
    auto fence = site->read_fence(one);
    out.push_back({Level::Fail, cat(fence ? survey->why_torn : fence.error().message,
                                    ". Everything is refused until then")});
  }
  if (!rules) {
    out.push_back({Level::Fail, rules.error().message});
  } else if (survey->torn.empty()) {
    out.push_back(
        {Level::Ok, *rules ? cat("the fence stands at token ", (*rules)->fence.token.number(),
                                 " of ", quoted((*rules)->fence.resource))
                           : std::string("it has no fence yet")});
  }
  const auto count = [&](Beside kind) {
    return std::ranges::count(survey->names, kind, &BesideName::kind);
  };
  const auto stages = count(Beside::Stage);
  const auto others = count(Beside::Seal) + count(Beside::Trash);
  if (stages > 0 || others > 0) {
    out.push_back(
        {Level::Ok, cat(stages, " staged and ", others,
                        " half-made file(s): of writers at work, or left by crashed ones; "
                        "the next seal removes what is older")});
  }
  const std::string fence = rules && *rules ? (*rules)->name : fence_name(site->name(), Token(1));
  if (auto carried = git_carries(os::parent_of(site->path()), fence)) {
    out.push_back(std::move(*carried));
  }
  if (fences == nullptr) {
    out.push_back({Level::Warn,
                   "the store cannot be asked: only the token that stands there can "
                   "write until it can"});
  }
  return out;
}

}  // namespace stint::guard
