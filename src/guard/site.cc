#include "guard/site.h"

#include <cerrno>

#include "base/text.h"
#include "guard/carrying.h"
#include "os/artifact.h"
#include "os/clock.h"
#include "os/files.h"
#include "os/filesystem.h"
#include "os/pause.h"

namespace stint::guard {
namespace {

constexpr int kMostLinks = 40;
constexpr Millis kLockWait{5000};
constexpr Millis kLockStep{20};
constexpr int kMostLooks = 64;

bool is_network(const std::string& filesystem) {
  for (const std::string_view one : {"nfs", "cifs", "smb2", "fuse", "9p"}) {
    if (filesystem == one) return true;
  }
  return false;
}

std::string_view scheme(Artifact kind) { return kind == Artifact::File ? "file:" : "dir:"; }

Status check_name(const std::string& name, const std::string& path) {
  if (name.empty() || name == "." || name == "..") {
    return invalid(cat(quoted(path), " does not name a file or directory in a directory"));
  }
  if (name.size() > kLongestArtifactName) {
    return invalid(cat("the name ", quoted(name), " is too long to be guarded: at most ",
                       kLongestArtifactName,
                       " bytes, so that its fences find room in the same directory"));
  }
  if (is_guards_own(name)) {
    return invalid(cat(quoted(name), " has the form of a guard's own file; choose another name"));
  }
  return {};
}

Status check_kind(Artifact kind, const os::FileFacts& facts, const std::string& path) {
  if (kind == Artifact::File && facts.kind != os::FileKind::Regular) {
    return invalid(cat(quoted(path), " is not a regular file"));
  }
  if (kind == Artifact::Directory && facts.kind != os::FileKind::Directory) {
    return invalid(cat(quoted(path), " is not a directory"));
  }
  return {};
}

}  // namespace

Status Site::resolve(const SiteOptions& options) {
  std::string path = os::absolute(options.path);
  for (int links = 0; links <= kMostLinks; ++links) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    name_ = path.substr(path.find_last_of('/') + 1);
    if (auto ok = check_name(name_, options.path); !ok) return ok;
    parent_ = os::real_path(os::parent_of(path));
    if (parent_.empty()) {
      return unavailable(cat("there is no directory ", quoted(os::parent_of(path)),
                             ", or it cannot be reached: nothing was written"));
    }
    if (const int number = os::Directory::open(parent_, directory_)) {
      return os::file_error(cat("opening ", quoted(parent_)), number);
    }
    os::FileFacts facts;
    const int number = directory_.facts(name_, facts);
    if (number == ENOENT) return {};
    if (number != 0) return os::file_error(cat("looking at ", quoted(path)), number);
    if (facts.kind != os::FileKind::Link) {
      facts_ = facts;
      return check_kind(options.kind, facts, path);
    }
    std::string text;
    if (const int unread = directory_.read_link(name_, text)) {
      return os::file_error(cat("reading the link ", quoted(path)), unread);
    }
    if (!options.follow && text.find('/') != text.npos) {
      return invalid(cat(quoted(path), " is a symbolic link out of its directory, to ",
                         quoted(text), ". Name that, or follow it with --follow"));
    }
    path = text.starts_with('/') ? text : cat(parent_, '/', text);
  }
  return invalid(cat(quoted(options.path), " is a chain of too many symbolic links"));
}

Result<Site> Site::open(const SiteOptions& options) {
  Site site;
  site.kind_ = options.kind;
  if (auto ok = site.resolve(options); !ok) return ok.error();
  site.target_ = cat(scheme(options.kind), site.path());
  site.network_ = options.network;
  if (!site.network_) {
    auto filesystem = os::filesystem_of(site.parent_);
    if (!filesystem) return filesystem.error();
    site.network_ = is_network(*filesystem);
  }
  return site;
}

Status Site::reopen() {
  if (const int number = os::Directory::open(parent_, directory_)) {
    return os::file_error(cat("opening ", quoted(parent_)), number);
  }
  os::FileFacts facts;
  facts_.reset();
  const int number = directory_.facts(name_, facts);
  if (number == ENOENT) return {};
  if (number != 0) return os::file_error(cat("looking at ", quoted(path())), number);
  facts_ = facts;
  return check_kind(kind_, facts, path());
}

Error Site::exchanged(std::string_view what) const {
  return unavailable(cat("the folder of ", quoted(target_), " was replaced as a whole meanwhile: ",
                         what, " does not stand there. It can be repeated"));
}

std::string Site::path() const { return cat(parent_ == "/" ? "" : parent_, '/', name_); }

std::string Site::lock_name() const { return cat('.', name_, ".guard.lock"); }

Status Site::lock() {
  if (!network_ || lock_) return {};
  const std::string name = lock_name();
  if (const int number = directory_.open_file(name, facts_ ? facts_->mode & 0666U : 0666U, lock_)) {
    return os::file_error(cat("opening the lock ", quoted(name)), number);
  }
  const os::SystemClock clock;
  const MonoTime until = clock.mono() + kLockWait;
  int number = os::try_lock(lock_.get());
  while (number == EWOULDBLOCK && clock.mono() < until) {
    os::pause_for(kLockStep);
    number = os::try_lock(lock_.get());
  }
  if (number == 0) return {};
  narrow_ = number == EWOULDBLOCK
                ? "a network mount, and its lock was not free within 5 s: narrow, not zero"
                : "a network mount without locks: narrow, not zero";
  return {};
}

Result<std::vector<BesideName>> Site::list() const {
  std::vector<std::string> all;
  if (const int number = directory_.list(all)) {
    return os::file_error(cat("listing ", quoted(parent_)), number);
  }
  std::vector<BesideName> out;
  for (const std::string& one : all) {
    auto parsed = parse_beside(name_, one);
    // A fence with a number that is none is kept, unread: survey() says so.
    if (!parsed) {
      out.push_back({one, Beside::Fence, Token(), {}});
    } else if (*parsed) {
      out.push_back(std::move(**parsed));
    }
  }
  return out;
}

Result<StandingFence> Site::read_fence(const BesideName& one) const {
  if (!one.token.issued()) return parse_beside(name_, one.name).error();
  std::string text;
  os::FileFacts facts;
  const int number = directory_.read(one.name, kLargestFenceFile, text, facts);
  if (number == ENOENT) return Error{Code::Lost, {}};  // survey() looks again
  if (number == EFBIG || number == ELOOP || number == EISDIR) return parse_fence(one, "?");
  if (number != 0) return os::file_error(cat("reading the fence ", quoted(one.name)), number);
  return parse_fence(one, text);
}

Result<Survey> Site::survey() const {
  auto names = list();
  if (!names) return names.error();
  return survey(std::move(*names));
}

Result<Survey> Site::survey(std::vector<BesideName> names) const {
  for (int look = 0; look < kMostLooks; ++look) {
    Survey out;
    out.names = std::move(names);
    bool gone = false;
    for (const BesideName& one : out.names) {
      if (one.kind != Beside::Fence && one.kind != Beside::Carried) continue;
      auto fence = read_fence(one);
      if (fence) {
        out.fences.push_back(std::move(*fence));
      } else if (fence.error().code == Code::Lost) {
        gone = true;  // removed by a higher seal since it was listed: that one is to be seen
      } else if (fence.error().code == Code::Denied) {
        return fence.error();
      } else {
        out.torn.push_back(one);
        out.why_torn = fence.error().message;
      }
    }
    if (!gone) return out;
    auto again = list();
    if (!again) return again.error();
    names = std::move(*again);
  }
  return unavailable(
      cat("the fences of ", quoted(target_), " change faster than they can be read"));
}

Result<std::optional<UsedMark>> Site::read_used(const Pass& pass) const {
  const std::string name = used_name(name_, pass.token, pass.generation);
  std::string text;
  os::FileFacts facts;
  const int number = directory_.read(name, kLargestFenceFile, text, facts);
  if (number == ENOENT) return std::optional<UsedMark>();
  if (number != 0) return os::file_error(cat("reading the mark ", quoted(name)), number);
  auto mark = parse_used(name, text);
  if (!mark) return mark.error();
  return std::optional(std::move(*mark));
}

Result<int> Site::make(const std::string& name, const std::string& text, const Pass& pass) {
  const std::string unnamed = fresh_name(name_, Beside::Seal, pass.token, line_of(pass), random_);
  os::Fd file;
  // Whoever may write the artifact must be able to read its fences, also where it may not read it.
  const unsigned mode = facts_ ? (facts_->mode & 0666U) | 0400U : 0666U;
  int number = facts_ ? directory_.create(unnamed, mode, file)
                      : directory_.create_masked(unnamed, mode, file);
  if (number == 0 && facts_) os::give_owner(file.get(), *facts_);
  if (number == 0) number = os::write_whole(file.get(), text);
  if (number == 0) number = os::sync_file(file.get());
  if (number == 0) {
    number = directory_.rename_new(unnamed, name);
    if (number == 0) return 0;
    directory_.remove(unnamed);
    if (number == EEXIST || number == ENOENT) return number;
  }
  directory_.remove(unnamed);
  return os::file_error(cat("making ", quoted(name), " beside ", quoted(path())), number);
}

std::string Site::stage_name(const Pass& pass) {
  return fresh_name(name_, Beside::Stage, pass.token, line_of(pass), random_);
}

Status Site::discard(const BesideName& one) {
  int number = 0;
  const bool stage = one.kind == Beside::Stage;
  const auto remove_tree = [&](const std::string& tree) {
    if (kind_ == Artifact::Directory) hand_over_fences({directory_, tree, name_}, random_);
    os::remove_tree(directory_, tree);
  };
  if (one.kind == Beside::Trash) {
    remove_tree(one.name);
  } else if (kind_ == Artifact::File || !stage) {
    number = directory_.remove(one.name);
  }
  // What is a file now may have been a directory when it was staged.
  if (stage && (kind_ == Artifact::Directory || number == EISDIR)) {
    // A tree is removed file by file. Under a name of its own it is out of everybody's reach first:
    // half of a tree can never be published.
    std::string trash = one.name;
    trash.replace(trash.rfind(".stage."), std::string_view(".stage.").size(), ".trash.");
    number = directory_.rename(one.name, trash);
    if (number == 0) remove_tree(trash);
  }
  if (number == 0 || number == ENOENT) return {};
  return os::file_error(cat("removing ", quoted(one.name), " from ", quoted(parent_)), number);
}

void Site::drop(const std::string& stage_name) {
  auto parsed = parse_beside(name_, stage_name);
  // What stays behind is removed by the next seal.
  if (parsed && *parsed) static_cast<void>(discard(**parsed));
}

Status Site::sync(std::string_view after) const {
  if (const int number = directory_.sync()) {
    return os::file_error(cat("syncing ", quoted(parent_), " after ", after), number);
  }
  return {};
}

}  // namespace stint::guard
