// The files that a guard keeps beside an artifact FILE (or directory), in the same directory:
//
//   .FILE.fence.TOKEN              a fence; .FILE.fence.TOKEN.GENERATION where the short name is
//   taken
//                                  by another store's life
//   .FILE.carried.TOKEN.GENERATION a fence that came along when the whole folder was published
//                                  (guard/carrying.h): its own token asks the store once more
//   .FILE.used.TOKEN.GENERATION    mode once: this token's one write, and the stage that carries it
//   .FILE.stage.TOKEN.NONCE        a staged body or tree
//   .FILE.seal.TOKEN.NONCE         a fence or mark that has not got its name yet
//   .FILE.trash.TOKEN.NONCE        what a seal took out of the way; anybody may remove it
//
// A fence is made whole and durable under a name of its own before it gets the fence's name, and is
// never changed nor replaced. So one that is empty or makes no sense was not made by a guard, and
// everything is refused until an operator has looked: it is never taken for "no fence".
//
// A fence says token, generation, resource and life, and nobody's name or proof: it has the
// permissions of its artifact, and a web server or a repository may show it to anybody (ADR 0039).
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

enum class Beside { Fence, Carried, Used, Stage, Seal, Trash };

struct BesideName {
  std::string name;
  Beside kind = Beside::Fence;
  Token token;
  // Of a used mark, a carried fence and a long fence name: the generation. Of the others: the
  // nonce.
  std::string rest;
};

// Names that are not of this artifact are empty. A fence whose number makes no sense
// (`.FILE.fence.007`): Code::Unavailable.
Result<std::optional<BesideName>> parse_beside(std::string_view artifact, std::string_view name);

// A name that a guard of some artifact may use itself.
struct OwnName {
  std::string artifact;
  std::optional<BesideName> parsed;  // empty: a fence whose number makes no sense
};
std::optional<OwnName> find_own(std::string_view name);
// Not to be written to as an artifact, nor to be published.
bool is_guards_own(std::string_view name);

// What tells tokens apart that do not compare: 32 digits of a store's life and a resource. Names of
// stages, seals and long fences have it in the place of GENERATION, so that a name of one resource
// is never taken for that of another to which an operator has moved the artifact.   G5
Generation line_of(const Generation& generation, std::string_view resource);

std::string fence_name(std::string_view artifact, Token token);
std::string long_fence_name(std::string_view artifact, Token token, const Generation& line);
std::string carried_name(std::string_view artifact, Token token, const Generation& line);
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
  // holder_check() of the holder that made it; empty: it showed no claim, or an operator's order
  std::string check;
  bool carried = false;  // came along with a publish: it refuses, and lets nobody in by itself
};

// By life, then token. Where both are equal, the one that was made there above the one that came
// along.
bool above(const StandingFence& a, const StandingFence& b);
// Of the same store's life and the same resource.
bool same_line(const StandingFence& a, const StandingFence& b);

constexpr std::size_t kLargestFenceFile = 4096;

// Tells the claims of one token apart, and says nothing to who does not have the claim: it is of
// this token alone, and neither the claim nor what the store keeps of it can be known from it. G12
std::string holder_check(const Claim& claim, const core::Fence& fence);

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
