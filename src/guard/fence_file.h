// The files that a guard keeps beside an artifact FILE (or directory), in the same directory:
//
//   .FILE.fence.TOKEN              a fence; .FILE.fence.TOKEN.GENERATION where the short name is
//   taken
//                                  by another store's life
//   .FILE.used.TOKEN.GENERATION    mode once: this token's one write, and the stage that carries it
//   .FILE.stage.TOKEN.NONCE        a staged body or tree
//   .FILE.seal.TOKEN.NONCE         a fence or mark that has not got its name yet
//   .FILE.trash.TOKEN.NONCE        what a seal took out of the way; anybody may remove it
//
// A fence is made whole and durable under a name of its own before it gets the fence's name, and is
// never changed nor replaced. So one that is empty or makes no sense was not made by a guard, and
// everything is refused until an operator has looked: it is never taken for "no fence".
//
// A NONCE begins with half of the writer's generation: a seal removes what other lives staged too.
//
// Which fence rules: the highest (life, token). `life` counts how often the artifact went over to
// another store's life, by descent or by an operator's word; it makes fences of generations
// comparable whose tokens are not. A late fence of the former life stands below, whatever its
// number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "core/fence.h"

namespace stint {
class Random;
}

namespace stint::guard {

// The longest name of an artifact: what is kept beside it must find room in 255 bytes too.
constexpr std::size_t kLongestArtifactName = 198;

enum class Beside { Fence, Used, Stage, Seal, Trash };

struct BesideName {
  std::string name;
  Beside kind = Beside::Fence;
  Token token;
  // Of a used mark and of a long fence name: the generation. Of the others: the nonce.
  std::string rest;
};

// Names that are not of this artifact are empty. A fence whose number makes no sense
// (`.FILE.fence.007`): Code::Unavailable.
Result<std::optional<BesideName>> parse_beside(std::string_view artifact, std::string_view name);

// True for a name that a guard of some artifact may use itself: not to be written to as an
// artifact.
bool is_guards_own(std::string_view name);

// What tells tokens apart that do not compare: 32 digits of a store's life and a resource. Names of
// stages, seals and long fences have it in the place of GENERATION, so that a name of one resource
// is never taken for that of another to which an operator has moved the artifact.   G5
Generation line_of(const Generation& generation, std::string_view resource);

std::string fence_name(std::string_view artifact, Token token);
std::string long_fence_name(std::string_view artifact, Token token, const Generation& line);
std::string used_name(std::string_view artifact, Token token, const Generation& generation);
// Beside::Stage, Seal or Trash, with a fresh nonce.
std::string fresh_name(std::string_view artifact, Beside kind, Token token, const Generation& line,
                       Random& random);
// Whether the nonce of a stage was made by a writer of that line.
bool made_by(const BesideName& one, const Generation& line);

struct StandingFence {
  std::string name;  // of the file
  core::Fence fence;
  std::uint64_t life = 0;
  ClaimHash claim;  // of the holder that made it; empty: made by an operator's order
  Owner owner;
  std::string adopted;  // why and by whom, if an operator adopted the artifact with this fence
};

constexpr std::size_t kLargestFenceFile = 4096;

std::string fence_text(const StandingFence& fence);
// Strict: anything but what fence_text() makes is an error, Code::Unavailable.
Result<StandingFence> parse_fence(const BesideName& name, std::string_view text);

// One write of mode once.
struct UsedMark {
  Generation generation;
  Token token;
  std::string key;
  std::string digest;
  std::string stage;        // the name of the staged body
  std::uint64_t inode = 0;  // ... and what it was: after a publish the old tree has that name
};

std::string used_text(const UsedMark& mark);
Result<UsedMark> parse_used(std::string_view name, std::string_view text);

}  // namespace stint::guard
