// The gate of one resource at the HTTP guard: which requests may go to the upstream now. No
// network, no store, no thread: the proxy asks it, on one thread.
//
// Two marks are kept in the store. The *fence* is raised first, before anything is waited for: from
// then on nothing older is let in. The *passed* mark is raised when a token's first request is let
// through, that is when nothing older is under way any more. A proxy that starts trusts only what
// has passed: had it only the fence, then a token that had raised it and was still waiting when the
// proxy died would pass the next proxy at once, beside what it was waiting for.
//
//   a token below the fence            stale
//   equal to it, and not known to be   ask the store: its newest token may be a revocation's
//     the newest (any more)
//   something older is under way       wait
//   just started, and not the token    wait, until the drain time has passed since the start
//     that had passed before
//   not passed yet                     raise the mark, then
//   else                               open
//
// Under way is what the upstream has not answered. What ended without an answer counts as under way
// for the drain time: the upstream may still be at it. G5
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "base/time.h"
#include "core/fence.h"

namespace stint::guard::http {

// For how long the store's word on the newest token counts while a watch tells of changes: what a
// watch that hears nothing any more may cost.
constexpr Millis kHearing{1'000};

enum class Way { Open, Wait, Overtaken, Mark };

class Gate {
 public:
  // As the store had them when this proxy began to admit, at `begun`.
  Gate(std::optional<core::Fence> fence, const std::optional<core::Fence>& passed, MonoTime begun,
       Millis drain);

  // What can be said of the offer without asking the store. Empty: ask it.
  std::optional<core::Verdict> known(const core::Offer& offer, MonoTime now) const;
  // The fence as the store has it; an older one of its resource is taken no notice of.
  void learn(const core::Fence& fence);
  // The store, asked at `asked`, said that the token is its resource's newest. That counts for a
  // while, unless a change was heard of since hearing() was `hearing`: before the store was asked.
  void newest(Token token, std::uint64_t hearing, MonoTime asked);
  // The resource has changed, or may have.
  void changed();
  std::uint64_t hearing() const { return hearing_; }
  void passed(Token token);

  Way way(Token token, MonoTime now) const;
  // When way() may change by itself; empty: only by leave().
  std::optional<MonoTime> next_change(MonoTime now) const;

  std::uint64_t enter(Token token, std::function<void()> cut);
  // `answered` false: the upstream may still be at it.
  void leave(std::uint64_t id, bool answered, MonoTime now);
  // `--cut`: ends what is older, and takes no notice of what the upstream makes of it.
  bool cut_older(Token token);

  const std::optional<core::Fence>& fence() const { return fence_; }
  // Nothing is under way, and nothing will change: it may be forgotten and read anew.
  bool idle(MonoTime now) const;

 private:
  struct UnderWay {
    Token token;
    std::optional<MonoTime> until;  // ended without an answer
    std::function<void()> cut;
  };
  bool older_under_way(Token token, MonoTime now) const;

  std::optional<core::Fence> fence_;
  Token newest_;
  MonoTime newest_until_{};
  std::uint64_t hearing_ = 0;
  Token passed_;
  Token trusted_;  // had passed before we began
  MonoTime trusting_from_{};
  const Millis drain_;
  std::map<std::uint64_t, UnderWay> under_way_;
  std::uint64_t next_ = 1;
};

}  // namespace stint::guard::http
