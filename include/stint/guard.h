// Guards: a write with an old token is refused at the target. For programs that hold a lease by a
// stint::Holder; inside `stint run` the commands (`stint seal`, `stint admit` ...) do the same.
//
//   auto holder = stint::Holder::acquire(client, {.resource = "site"});
//   // Seal, then read, then write: from here on nothing older lands there.
//   auto sealed = stint::guard::seal(*holder, "git:https://git.example/site.git#main");
//   if (const auto* refused = sealed.get_if<stint::guard::Refusal>()) return
//   stop(refused->message); if (!sealed) return fail(sealed.error()->message);
//
// Targets are words, as `stint seal TARGET` takes them; `stint help seal` lists the kinds. Never
// with a password in them: they are kept in the store. STINT_GUARD=warn means nothing here.
//
// Nothing here throws. Thread safety: any thread. A call waits as long as its target takes; the
// Holder goes on renewing meanwhile.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "stint/error.h"
#include "stint/outcome.h"
#include "stint/stint.h"

namespace stint::guard {

// An answer, no fault: the target did not take our token.
struct Refusal {
  std::string target = {};
  Code code = Code::Stale;    // Stale, Used, NeverIssued, NeverGranted, Foreign or NoToken
  std::string message = {};   // what happened, and the safe next step
  std::uint64_t offered = 0;  // the token that was shown
  std::uint64_t fence = 0;    // the one that stands there; zero: none, or not known
  bool ran = false;           // admit: the act had run already; its result does not count
};

struct SealedTarget {
  std::string target = {};  // in the words under which it is remembered
};

// Raises the fence of the target to the Holder's token. The target is remembered with the lease
// first: later runs of the resource, transfer and revoke seal it too.
// Errors: Invalid (no such target), Unavailable (not reached), UnknownOutcome.
Outcome<SealedTarget, Refusal> seal(const Holder& holder, std::string_view target);

struct WriteOptions {
  std::string path = {};
  std::string_view body = {};  // the whole new content
  std::string if_match = {};   // only if the sha256 of the present content is this; "none": no file
  bool once = false;           // one write per token
  std::string key = {};        // with `once`: what makes a repeat the same write; empty: the body
  bool follow = false;         // symbolic links that lead out of their directory too
  bool require_live = false;   // refuse also once the lease has run out: narrow, not zero
};

struct WrittenTarget {
  std::string digest = {};  // sha256 of what was written, where it is known
  bool already = false;     // `once`: this very write had been made before
  std::string narrow = {};  // why the window was not zero this time; empty: it was
};

// Replaces the file's content, unless a newer holder has sealed or written it; check and write are
// one step. Seals first where our fence does not stand yet.
// Errors: Invalid, Denied, Unavailable, UnknownOutcome.
Outcome<WrittenTarget, Refusal> write(const Holder& holder, const WriteOptions& options);

struct PublishOptions {
  std::string path = {};
  std::string staged = {};  // the new tree; it is copied and left as it is
  bool once = false;        // as in WriteOptions, these four
  std::string key = {};
  bool follow = false;
  bool require_live = false;
};

// The same for a whole directory, which changes places with the new one in one step.
Outcome<WrittenTarget, Refusal> publish(const Holder& holder, const PublishOptions& options);

struct PushOptions {
  std::string directory = {};  // in the repository to push from; empty: the current one
  std::string remote = {};     // its name or URL; empty: where `git push` would go
  std::string ref = {};        // BRANCH, SOURCE:BRANCH or a full name; empty: the current branch
  bool once = false;           // as in WriteOptions, these three
  std::string key = {};
  bool require_live = false;
  std::string fence_ref = {};      // where fences are kept there; empty: refs/stint/fence/
  bool seal_commits = false;       // for servers without atomic pushes; not with `once`
  std::chrono::minutes within{5};  // gives up waiting for the server, seal and push together
  // "always" or "never": whether the server's refs are looked at after a push that it told as done;
  // empty: over ssh and HTTP, where it may be a forge with machinery around git.
  std::string look = {};
};

struct PushedTarget {
  std::string target =
      {};                // as WrittenTarget's words for it: git:URL#BRANCH where it was asked for
  std::string oid = {};  // of what was pushed
  bool sealed = false;   // no fence of our token stood there: it was sealed first
  bool already = false;  // `once`: this very write had been made before
};

// Pushes branch and fence to a git server in one atomic push, which refuses both if a newer holder
// has sealed or pushed. Never forces. Runs `git` and the user's pre-push hook; asks nobody for a
// password. Seals first, in a push of its own, where our fence does not stand yet.
// Errors: Failed (a conflict: fetch, rebase and push again; or the server or a hook said no),
// Invalid, Unavailable, UnknownOutcome (it may have landed; the same push again does no harm).
Outcome<PushedTarget, Refusal> push(const Holder& holder, const PushOptions& options);

struct ActOptions {
  std::string name = {};  // what is acted on; its fence is that of the target admit:NAME
  std::string key = {};   // what makes a repeat the same act
  bool once = false;      // one key per token
};

struct Acted {
  int result = 0;           // what the act returned
  bool already = false;     // the key had a result: the act was not run now
  std::uint64_t token = 0;  // whose result it is
};

// For what has no guard of its own: narrow, not zero. Runs `act` if the store takes our token, and
// records what it returns, from 0 to 255, under that token. Only the result of the highest token
// counts. REQUIRES: `act` does not throw.
// Errors: as seal(). UnknownOutcome also when, with `once`, this key was begun before and left no
// result, and when the result could not be recorded for sure.
Outcome<Acted, Refusal> admit(const Holder& holder, const ActOptions& options,
                              const std::function<int()>& act);

}  // namespace stint::guard
