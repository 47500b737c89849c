// Targets in words, as `stint seal TARGET` takes them and as a lease's record remembers them, and
// which guard stands at which kind of target.
//
//   file:PATH  dir:PATH                    made absolute
//   git:REMOTE/REF  git:URL#BRANCH
//   postgres://HOST/DATABASE#RESOURCE
//   proxy:URL
//   admit:NAME                             what `stint admit NAME` fences
//
// A target's words are kept in the store and printed: one with a password in it is refused, and the
// refusal does not repeat it. What needs a password takes it from where the tool at hand looks for
// one (PGPASSFILE, git's credential helpers).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/fences.h"
#include "base/result.h"
#include "guard/guard.h"

namespace stint::guard {

enum class TargetKind { File, Directory, Git, Postgres, Proxy, Admit };
std::string_view word(TargetKind kind);

struct Target {
  TargetKind kind = TargetKind::File;
  std::string words;  // normalised; parse_target() of it is the same target, wherever it is asked
  std::string place;  // of that, what the guard needs: the path, REMOTE/REF, the URL, the name
};

// `here`: what relative paths start from; absolute itself. Nothing is looked at.
// Errors: Code::Invalid.
Result<Target> parse_target(std::string_view text, std::string_view here);

// One finding of `stint guard check TARGET`.
struct CheckLine {
  enum class Level { Ok, Warn, Fail };
  Level level = Level::Ok;
  std::string text;
};

// What stands at one kind of target. An empty function: not supported there.
struct Guard {
  // Words that mean the same wherever they are read (git: a remote's name becomes its URL).
  std::function<Result<std::string>(const Target&)> settle_words;
  std::function<Result<SealAnswer>(const Target&, const SealRequest&, api::Fences*)> seal;
  std::function<Result<std::vector<CheckLine>>(const Target&, api::Fences*)> check;
  // After a seal that failed with a fault: whether its fence may stand all the same. Empty: only
  // where the outcome is unknown.
  std::function<bool(const Target&, const Pass&)> may_stand = {};
};

// A table that app/ fills: one line for each guard.
using Guards = std::map<TargetKind, Guard>;

// Parses, and settles the words.
Result<Target> settle_target(const Guards& guards, std::string_view text, std::string_view here);
// The same for one that is to be sealed: Code::Invalid also for a kind that has no seal here.
Result<Target> find_target(const Guards& guards, std::string_view text, std::string_view here);

Result<SealAnswer> seal(const Guards& guards, const Target& target, const SealRequest& request,
                        api::Fences* fences);
Result<std::vector<CheckLine>> check(const Guards& guards, const Target& target,
                                     api::Fences* fences);

// The seal failed, and it is certain that it has left no fence.
bool surely_failed(const Guards& guards, const Target& target, const Pass& pass,
                   const Result<SealAnswer>& answer);

// Of a file: or dir: target whose folder does not exist here, and of no other: its words, as they
// would be if it did. What cannot be looked at may exist.
std::optional<std::string> words_of_absent(const Target& target);

// The guard of targets whose fence is in the store itself.
Guard store_guard();

}  // namespace stint::guard
