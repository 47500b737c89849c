#include "guard/file_guard.h"

#include <cerrno>

#include "base/sha256.h"
#include "base/text.h"
#include "guard/landing.h"
#include "os/artifact.h"

namespace stint::guard {
namespace {

constexpr std::string_view kNoFile = "none";

Result<std::string> digest_of_file(const Site& site) {
  os::Fd file;
  const int number = site.directory().open_existing(site.name(), file);
  if (number == ENOENT) return std::string(kNoFile);
  if (number != 0) return os::file_error(cat("reading ", quoted(site.path())), number);
  Sha256 digest;
  const int unread = os::read_bytes(file.get(), [&](std::string_view b) { digest.add(b); });
  if (unread != 0) return os::file_error(cat("reading ", quoted(site.path())), unread);
  return to_hex(digest.done());
}

// Refused, with what stands there: somebody who shares this token was quicker, or it was never so.
Result<std::optional<Refused>> mismatch(const Site& site, const FileWrite& write,
                                        const Pass& pass) {
  if (write.if_match.empty()) return std::optional<Refused>();
  auto present = digest_of_file(site);
  if (!present) return present.error();
  if (*present == write.if_match) return std::optional<Refused>();
  Refused why;
  why.target = site.target();
  why.verdict = core::Verdict::Stale;
  why.offered = pass.token;
  why.condition = Condition::IfMatch;
  why.detail = cat("its digest is ", *present);
  return std::optional(std::move(why));
}

Status check_if_match(const std::string& digest) {
  if (digest.empty() || digest == kNoFile) return {};
  if (digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == digest.npos) return {};
  return invalid(cat("--if-match ", quoted(digest),
                     " is not a sha256 digest: 64 hexadecimal digits, or 'none' for no file"));
}

// The body under a name of its own: whole, like the file that it replaces, and durable.
Result<Staged> stage(Site& site, const FileWrite& write, const Pass& pass) {
  Staged out;
  out.name = site.stage_name(pass);
  const bool digested = write.want_digest || pass.mode == core::FenceMode::Once;
  const std::string doing = cat("staging the new content of ", quoted(site.path()));
  os::Fd file;
  const unsigned mode = site.facts() ? 0600U : 0666U;
  if (const int number = site.directory().create_masked(out.name, mode, file)) {
    return os::file_error(doing, number);
  }
  Sha256 digest;
  os::Onlooker onlooker;
  if (digested) onlooker = [&](std::string_view bytes) { digest.add(bytes); };
  int number = 0;
  if (write.body_from >= 0) {
    number = os::copy_bytes(write.body_from, file.get(), onlooker);
  } else {
    if (digested) digest.add(write.body);
    number = os::write_whole(file.get(), write.body);
  }
  Status done = number == 0 ? Status() : os::file_error(doing, number);
  if (done && site.facts()) done = os::make_alike(file.get(), site.path(), *site.facts());
  os::FileFacts facts;
  if (done) {
    number = os::sync_file(file.get());
    if (number == 0) number = os::facts_of(file.get(), facts);
    if (number != 0) done = os::file_error(doing, number);
  }
  if (!done) {
    site.drop(out.name);
    return done.error();
  }
  out.inode = facts.inode;
  if (digested) out.digest = to_hex(digest.done());
  out.held = std::move(file);
  return out;
}

}  // namespace

Result<std::string> file_target(const std::string& path) {
  auto site = Site::open({.path = path, .kind = Artifact::File});
  if (!site) return site.error();
  return site->target();
}

Result<SealAnswer> seal_file(const std::string& path, const SealRequest& request,
                             api::Fences* fences) {
  auto site = Site::open({.path = path, .kind = Artifact::File});
  if (!site) return site.error();
  if (auto locked = site->lock(); !locked) return locked.error();
  return seal_site(*site, request, fences);
}

Result<WriteAnswer> write_file(const FileWrite& write, const Pass& pass, api::Fences* fences) {
  if (auto ok = check_key(pass); !ok) return ok.error();
  if (auto ok = check_if_match(write.if_match); !ok) return ok.error();
  auto site = Site::open({.path = write.path,
                          .kind = Artifact::File,
                          .follow = write.follow,
                          .network = write.network});
  if (!site) return site.error();
  if (auto locked = site->lock(); !locked) return locked.error();
  auto sealed = sealed_for_writing(*site, pass, fences);
  if (!sealed) return sealed.error();
  auto* refused = std::get_if<Refused>(&*sealed);
  if (refused != nullptr && !let_through(*refused, pass)) return std::move(*refused);
  auto staged = stage(*site, write, pass);
  if (!staged) return not_staged(*site, pass, fences, staged.error());
  const Moves moves = {
      .put = [&](const std::string& name) { return site->directory().rename(name, site->name()); },
      .condition = [&] { return mismatch(*site, write, pass); }};
  return refused == nullptr ? land(*site, pass, *staged, fences, moves)
                            : past_the_fence(*site, *staged, moves, std::move(*refused));
}

}  // namespace stint::guard
