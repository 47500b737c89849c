#include "store/dir/log_writer.h"

#include <cerrno>

#include "base/text.h"
#include "store/dir/replica.h"

namespace stint::store::dir {
namespace {

Error failing(std::string_view what, const Place& place, int number) {
  return os::file_error(cat(what, " the store ", quoted(place.path)), number);
}

// The server has answered that there is no such link; anything else may have been a lost reply.
bool surely_not_linked(int number) {
  switch (number) {
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOSPC:
    case EDQUOT:
    case EMLINK:
    case EXDEV:
    case EOPNOTSUPP:
    case ENOSYS: return true;
    default: return false;
  }
}

Error link_error(const Place& place, int number) {
  if (number == EPERM || number == EOPNOTSUPP || number == ENOSYS || number == EXDEV) {
    return unavailable(cat("the file system of ", quoted(place.path),
                           " has no hard links, and a dir: store needs them"));
  }
  return failing("writing to", place, number);
}

Placed linked(const Place& place, const LogFile& file, const os::FileFacts& below) {
  const auto unknown = [&](const Error& error) {
    return Placed{Placed::Kind::Unknown, {}, {Code::UnknownOutcome, error.message}};
  };
  // Syncs the names of all commits before it as well; their content was synced before they were
  // linked.   G11
  if (file.durable) {
    if (const int e = place.log.sync()) return unknown(failing("syncing", place, e));
  }
  Placed placed{Placed::Kind::Linked, {}, {}};
  os::FileFacts now;
  const int own = place.log.facts(file_name(file.number), placed.facts);
  const int under = place.log.facts(file_name(file.number - 1), now);
  for (const int e : {own, under}) {
    if (e != 0 && e != ENOENT && e != ESTALE) return unknown(failing("reading", place, e));
  }
  if (auto there = place.still_there(); !there) return unknown(there.error());
  if (own != 0 || under != 0 || !Replica::same_file(now, below)) placed.kind = Placed::Kind::Stray;
  return placed;
}

// EEXIST: somebody was first; or it was this very file, and the reply to it was lost.
Placed taken(const Place& place, const Staged& staged, const LogFile& file,
             const os::FileFacts& below) {
  std::string bytes;
  Placed placed;
  const std::string name = file_name(file.number);
  const int e = place.log.read(name, kMostFileBytes, bytes, placed.facts);
  if (e == ENOENT || e == ESTALE) {
    placed.kind = Placed::Kind::Stray;
    return placed;
  }
  const auto unknown = [](const Error& error) {
    return Placed{Placed::Kind::Unknown, {}, {Code::UnknownOutcome, error.message}};
  };
  if (e != 0) return unknown(failing("reading", place, e));
  const auto there = decode(bytes, place.log_path() + "/" + name);
  if (!there) return unknown(there.error());
  if (there->nonce == file.nonce) return linked(place, file, below);
  place.tmp.remove(staged.name);
  placed.kind = Placed::Kind::Beaten;
  return placed;
}

}  // namespace

Placed put_in_place(const Place& place, Staged& staged, const LogFile& file,
                    const os::FileFacts& below) {
  int e = os::write_whole(staged.file.get(), encode(file));
  // Also where the commit need not survive a power cut: a name in the log always leads to a whole
  // file.
  if (e == 0) e = os::sync_file(staged.file.get());
  staged.file.reset();
  if (e != 0) {
    place.tmp.remove(staged.name);
    return {Placed::Kind::Failed, {}, failing("writing to", place, e)};
  }
  e = place.tmp.link(staged.name, place.log, file_name(file.number));
  if (e == 0) return linked(place, file, below);
  if (e == EEXIST) return taken(place, staged, file, below);
  // The staged name is gone: very many others came first.
  if (e == ENOENT) return {Placed::Kind::Stray, {}, {}};
  if (surely_not_linked(e)) {
    place.tmp.remove(staged.name);
    return {Placed::Kind::Failed, {}, link_error(place, e)};
  }
  return {Placed::Kind::Unknown, {}, {Code::UnknownOutcome, link_error(place, e).message}};
}

}  // namespace stint::store::dir
