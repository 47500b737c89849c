#include "guard/directory_guard.h"

#include <cerrno>

#include "base/sha256.h"
#include "base/text.h"
#include "guard/carrying.h"
#include "guard/landing.h"
#include "os/artifact.h"

namespace stint::guard {
namespace {

bool inside(const std::string& path, const std::string& of) {
  return path == of || path.starts_with(of == "/" ? of : of + "/");
}

Status check_staged(const Site& site, const Publication& publication) {
  const std::string staged = os::real_path(publication.staged);
  if (staged.empty()) {
    return invalid(cat("there is no directory ", quoted(publication.staged), " to publish"));
  }
  os::FileFacts facts;
  if (const int number = os::facts_of(staged, facts)) {
    return os::file_error(cat("looking at ", quoted(staged)), number);
  }
  if (facts.kind != os::FileKind::Directory) {
    return invalid(cat(quoted(publication.staged), " is not a directory"));
  }
  // A copy of a tree into itself would never end.
  const std::string beside = site.path();
  if (inside(staged, beside) || inside(beside, staged)) {
    return invalid(cat(quoted(publication.staged), " and ", quoted(site.path()),
                       " lie one within the other: stage the new tree elsewhere"));
  }
  return {};
}

Result<Staged> stage(Site& site, const Publication& publication, const Pass& pass) {
  Staged out;
  out.name = site.stage_name(pass);
  const bool digested = pass.mode == core::FenceMode::Once;
  Sha256 digest;
  os::Onlooker onlooker;
  if (digested) onlooker = [&](std::string_view bytes) { digest.add(bytes); };
  Status done =
      os::copy_tree(publication.staged, site.directory(), out.name, onlooker, is_guards_own);
  if (done) done = carry_fences({site.directory(), site.name(), out.name}, site.random());
  os::FileFacts facts;
  if (done) {
    int number = site.directory().open_existing(out.name, out.held);
    if (number == 0) number = os::facts_of(out.held.get(), facts);
    if (number != 0) done = os::file_error(cat("staging ", quoted(publication.staged)), number);
  }
  if (!done) {
    site.drop(out.name);
    return done.error();
  }
  out.inode = facts.inode;
  if (digested) out.digest = to_hex(digest.done());
  return out;
}

// One step. Which of the two it is can change meanwhile: another process of this token.
int put(const Site& site, const std::string& stage) {
  const os::Directory& directory = site.directory();
  constexpr int kMostSwaps = 16;
  for (int tries = 0; tries < kMostSwaps; ++tries) {
    const int exchanged = directory.exchange(stage, site.name());
    if (exchanged != ENOENT) return exchanged;
    const int moved = directory.rename_new(stage, site.name());
    if (moved != EEXIST) return moved;
  }
  return EBUSY;
}

}  // namespace

Result<std::string> directory_target(const std::string& path) {
  auto site = Site::open({.path = path, .kind = Artifact::Directory});
  if (!site) return site.error();
  return site->target();
}

Result<SealAnswer> seal_directory(const std::string& path, const SealRequest& request,
                                  api::Fences* fences) {
  auto site = Site::open({.path = path, .kind = Artifact::Directory});
  if (!site) return site.error();
  if (auto locked = site->lock(); !locked) return locked.error();
  return seal_site(*site, request, fences);
}

Result<WriteAnswer> publish_directory(const Publication& publication, const Pass& pass,
                                      api::Fences* fences) {
  if (auto ok = check_key(pass); !ok) return ok.error();
  auto site = Site::open({.path = publication.path,
                          .kind = Artifact::Directory,
                          .follow = publication.follow,
                          .network = publication.network});
  if (!site) return site.error();
  if (auto ok = check_staged(*site, publication); !ok) return ok.error();
  if (auto locked = site->lock(); !locked) return locked.error();
  auto sealed = sealed_for_writing(*site, pass, fences);
  if (!sealed) return sealed.error();
  auto* refused = std::get_if<Refused>(&*sealed);
  if (refused != nullptr && !let_through(*refused, pass)) return std::move(*refused);
  auto staged = stage(*site, publication, pass);
  if (!staged) return not_staged(*site, pass, fences, staged.error());
  int last = 0;
  const Moves moves = {.put = [&](const std::string& name) { return last = put(*site, name); }};
  auto answer = refused == nullptr ? land(*site, pass, *staged, fences, moves)
                                   : past_the_fence(*site, *staged, moves, std::move(*refused));
  // The stage's name has the former tree now.
  if (answer && std::holds_alternative<Written>(*answer)) site->drop(staged->name);
  if (!answer && (last == EINVAL || last == EXDEV)) {
    return unavailable(cat("the file system of ", quoted(site->path()),
                           " cannot exchange two directories in one step, so nothing was "
                           "published. Publish on another one (ext4, xfs, btrfs, tmpfs)"));
  }
  return answer;
}

}  // namespace stint::guard
