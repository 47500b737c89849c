#include "guard/carrying.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "guard/fence_file.h"
#include "os/artifact.h"

namespace stint::guard {
namespace {

// What a folder of the one tree has, and the other is to have.
struct Piece {
  std::string artifact;
  std::string name;  // there; it is made under it, or as a carried fence
  std::string text;
  os::FileFacts facts;
  std::optional<StandingFence> fence;  // empty: a mark of mode once, or what cannot be understood
};

Status not_carried(std::string_view doing, const std::string& what, int number) {
  if (number == 0) return {};
  return os::file_error(cat(doing, ' ', quoted(what)), number);
}

Result<std::vector<Piece>> pieces_in(const os::Directory& folder,
                                     const std::vector<std::string>& names) {
  std::vector<Piece> out;
  for (const std::string& name : names) {
    const auto own = find_own(name);
    if (!own) continue;
    const bool used = own->parsed && own->parsed->kind == Beside::Used;
    const bool fence =
        !own->parsed || own->parsed->kind == Beside::Fence || own->parsed->kind == Beside::Carried;
    if (!used && !fence) continue;
    Piece piece{own->artifact, name, {}, {}, {}};
    const int number = folder.read(name, kLargestFenceFile, piece.text, piece.facts);
    if (number == ENOENT) continue;  // a higher seal removed it since
    if (number != 0) return not_carried("reading the fence", name, number).error();
    if (own->parsed && fence) {
      if (auto parsed = parse_fence(*own->parsed, piece.text)) piece.fence = std::move(*parsed);
    }
    out.push_back(std::move(piece));
  }
  return out;
}

class Carrier {
 public:
  // `after`: the trees have changed places already.
  Carrier(const Carriage& carriage, Random& random, bool after)
      : carriage_(carriage), random_(random), after_(after) {}

  Status run() {
    return os::walk_folders(carriage_.beside, carriage_.from, is_guards_own,
                            [&](const os::Directory& folder, const std::string& path,
                                const std::vector<std::string>& names) {
                              auto done = carry(folder, path, names);
                              return after_ ? Status() : done;
                            });
  }

 private:
  Status carry(const os::Directory& folder, const std::string& path,
               const std::vector<std::string>& names);
  Result<bool> open_there(const std::string& path, bool make, os::Directory& out) const;
  Status place(const os::Directory& to, const Piece& piece);

  const Carriage& carriage_;
  Random& random_;
  const bool after_;
};

// False: it is not there. Each step by itself, so that no link leads out of the tree.
Result<bool> Carrier::open_there(const std::string& path, bool make, os::Directory& out) const {
  os::Directory from;
  if (const int number = carriage_.beside.open_directory(carriage_.to, out)) {
    if (number == ENOENT && after_) return false;
    return not_carried("opening", carriage_.to, number).error();
  }
  if (path.empty()) return true;
  if (const int number = carriage_.beside.open_directory(carriage_.from, from)) {
    return not_carried("opening", carriage_.from, number).error();
  }
  for (const std::string_view part : split(path, '/')) {
    const std::string name(part);
    os::Directory inner;
    os::Directory inner_from;
    os::FileFacts facts;
    int number = from.open_directory(name, inner_from);
    if (number == 0) number = inner_from.facts("", facts);
    if (number != 0) return not_carried("reading", path, number).error();
    number = out.open_directory(name, inner);
    if (number == ENOENT && !make) return false;
    if (number == ENOENT) {
      number = out.make_directory(name, facts.mode);
      if (number == 0 || number == EEXIST) number = out.open_directory(name, inner);
      if (number == 0) os::give_owner(inner.fd(), facts);
      if (number == 0) number = out.sync();
    }
    if (number == ENOTDIR || number == ELOOP) {
      return invalid(cat("fences stand in the folder ", quoted(path),
                         ", and what is to be published has something else there: they have no "
                         "place in it. Nothing was published"));
    }
    if (number != 0) return not_carried("making", path, number).error();
    out = std::move(inner);
    from = std::move(inner_from);
  }
  return true;
}

// Whole and durable before it has its name, and never over another.
Status Carrier::place(const os::Directory& to, const Piece& piece) {
  const bool fence = piece.fence.has_value();
  const Generation line = fence
                              ? line_of(piece.fence->fence.generation, piece.fence->fence.resource)
                              : Generation::make(random_);
  const Token token = fence ? piece.fence->fence.token : Token(1);
  const std::string name = fence ? carried_name(piece.artifact, token, line) : piece.name;
  const std::string unnamed = fresh_name(piece.artifact, Beside::Seal, token, line, random_);
  os::Fd file;
  int number = to.create(unnamed, piece.facts.mode, file);
  if (number == 0) os::give_owner(file.get(), piece.facts);
  if (number == 0) number = os::write_whole(file.get(), piece.text);
  if (number == 0) number = os::sync_file(file.get());
  if (number == 0) number = to.rename_new(unnamed, name);
  if (number == 0) return {};
  to.remove(unnamed);
  // It stands there already, or a higher seal has removed it on its way.
  return number == EEXIST || number == ENOENT ? Status() : not_carried("making", name, number);
}

// Whether `one` is to stand there as well.
bool needed(const Piece& one, const std::vector<Piece>& here, const std::vector<Piece>& there) {
  for (const Piece& other : there) {
    if (other.artifact != one.artifact) continue;
    if (!one.fence || !other.fence) {
      if (other.name == one.name) return false;
      continue;
    }
    if (!above(*one.fence, *other.fence)) return false;
    // As high, made there or come along; or another's, who was let in there.
    if (other.fence->life == one.fence->life &&
        (other.fence->fence.token == one.fence->fence.token ||
         !same_line(*other.fence, *one.fence))) {
      return false;
    }
  }
  // Two lines side by side refuse everything until an operator has decided: both.
  return !one.fence || std::ranges::none_of(here, [&](const Piece& other) {
    return other.artifact == one.artifact && other.fence && above(*other.fence, *one.fence) &&
           (same_line(*other.fence, *one.fence) || other.fence->life > one.fence->life);
  });
}

Status Carrier::carry(const os::Directory& folder, const std::string& path,
                      const std::vector<std::string>& names) {
  auto here = pieces_in(folder, names);
  if (!here) return here.error();
  if (here->empty()) return {};
  const bool make = !after_ || std::ranges::any_of(*here, [](const Piece& piece) {
    return piece.fence && !piece.fence->carried;
  });
  os::Directory to;
  auto opened = open_there(path, make, to);
  if (!opened) return opened.error();
  if (!*opened) return {};
  std::vector<std::string> listed;
  if (const int number = to.list(listed)) return not_carried("reading", path, number);
  auto there = pieces_in(to, listed);
  if (!there) return there.error();
  for (const Piece& piece : *here) {
    if (!needed(piece, *here, *there)) continue;
    if (auto done = place(to, piece); !done) return done;
  }
  return not_carried("syncing", path, to.sync());
}

}  // namespace

Status carry_fences(const Carriage& carriage, Random& random) {
  return Carrier(carriage, random, false).run();
}

void hand_over_fences(const Carriage& carriage, Random& random) {
  constexpr int kMostTrees = 16;
  for (int tries = 0; tries < kMostTrees; ++tries) {
    os::Directory tree;
    os::FileFacts before;
    os::FileFacts after;
    // Held open: its number is not another's then.
    if (carriage.beside.open_directory(carriage.to, tree) != 0) return;
    if (tree.facts("", before) != 0) return;
    static_cast<void>(Carrier(carriage, random, true).run());
    if (carriage.beside.facts(carriage.to, after) == 0 && after.inode == before.inode) return;
  }
}

}  // namespace stint::guard
