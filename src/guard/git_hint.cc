#include "guard/git_hint.h"

#include "base/sha256.h"
#include "base/text.h"
#include "guard/git_here.h"
#include "os/files.h"

namespace stint::guard {

GitHint::GitHint(const std::string& git_dir, const std::string& remote, const std::string& ref,
                 const std::string& settings)
    : path_(cat(git_dir, "/stint/fence-", to_hex(sha256(cat(remote, "\n", ref))).substr(0, 32))),
      ref_(ref),
      settings_(settings) {}

// The first line of the file.
std::string GitHint::head() const {
  return cat("settings ", settings_.empty() ? std::string_view("-") : settings_, "\n");
}

std::optional<RemoteFence> GitHint::read(std::string_view like) const {
  // A commit names its parent, so that the name of the one before is needed first.
  if (object_kind(ref_) != GitObject::Blob) return std::nullopt;
  auto raw = os::read_file(path_, 1U << 14U);
  if (!raw || !raw->starts_with(head())) return std::nullopt;
  raw->erase(0, head().size());
  auto fence = GitRemote::parse(GitObject::Blob, blob_name(*raw, like), *raw);
  if (!fence.fence) return std::nullopt;
  return fence;
}

void GitHint::keep(const std::string& raw) const {
  if (object_kind(ref_) != GitObject::Blob) return;
  const std::string text = cat(head(), raw);
  auto kept = os::write_file(path_, text, os::Durability::Unsynced);
  if (!kept && os::make_directories(os::parent_of(path_)))
    kept = os::write_file(path_, text, os::Durability::Unsynced);
  if (!kept) forget();
}

void GitHint::forget() const { os::remove_file(path_); }

}  // namespace stint::guard
