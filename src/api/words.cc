#include "api/words.h"

#include "base/text.h"

namespace stint::api {

std::string describe_holder(const Lease& lease, WallTime now) {
  const std::string what = quoted(lease.resource);
  if (lease.state == core::State::Resting) {
    return cat(what, " is resting",
               lease.remaining ? cat(" for another ", rough_duration(*lease.remaining)) : "",
               ": nobody may acquire it yet");
  }
  const std::string who = quoted(lease.owner.text());
  if (lease.state == core::State::Reserved) {
    return cat(what, " is reserved for ", who,
               lease.remaining ? cat(" for another ", rough_duration(*lease.remaining)) : "");
  }
  std::string out = cat(what, " is held by ", who, " with token ", lease.token.number());
  if (lease.acquired_at) {
    out += cat(" since ", format_utc(*lease.acquired_at));
  }
  if (lease.remaining) {
    out += cat(", for another ", rough_duration(*lease.remaining), " unless renewed (until ",
               format_utc(now + *lease.remaining), ")");
  }
  if (!lease.note.empty()) out += cat("; it is running ", printable(lease.note));
  if (!lease.progress.empty()) out += cat("; its progress: ", printable(lease.progress));
  return out;
}

std::string describe_loss(const Lost& lost, Token offered) {
  const Lease& now = lost.lease;
  const std::string what = cat(quoted(now.resource), " with token ", offered.number());
  const std::string order = cat(now.by.empty() ? "" : cat(" by ", quoted(now.by)),
                                now.why.empty() ? "" : cat(": ", printable(now.why)));
  const std::string next = now.held ? cat("; it is held by ", quoted(now.owner.text()),
                                          " with token ", now.token.number())
                                    : "";
  switch (lost.cause) {
    case core::Cause::None: return cat(what, " is not held");
    case core::Cause::Expired: return cat(what, " has expired; acquire it anew to go on");
    case core::Cause::Superseded: return cat(what, " was superseded", next);
    case core::Cause::Released: return cat(what, " was released", next);
    case core::Cause::Transferred: return cat(what, " was transferred", order);
    case core::Cause::Revoked: return cat(what, " was revoked", order);
    case core::Cause::Stalled: return cat(what, " was ended for lack of progress");
    case core::Cause::MaxHold: return cat(what, " reached its longest time to be held");
    case core::Cause::Restored:
      return cat(what, " is newer than anything that the store knows: the store went back in time");
    case core::Cause::NeverIssued:
      return cat(what, " was never issued",
                 now.token.issued() ? cat("; the newest is ", now.token.number()) : "");
    case core::Cause::NotHolder: return cat(what, " is not yours: claim or owner do not match");
    case core::Cause::WrongToken:
      return now.token.issued() ? cat(quoted(now.resource), " stands at token ", now.token.number(),
                                      ", not ", offered.number(), ": look again before you decide")
                                : cat(quoted(now.resource), " was never acquired");
  }
  return what;
}

std::string describe_loss(const ItemLost& lost, const core::ItemId& id, Token offered) {
  const std::string what = offered.issued()
                               ? cat(quoted(id.text()), " with epoch ", offered.number())
                               : quoted(id.text());
  if (!lost.item) return cat("there is no item ", quoted(id.text()));
  const core::Item& now = lost.item->item;
  const std::string stands =
      cat("; it is ", core::word(now.state), " at epoch ", now.epoch.number());
  const std::string order = cat(now.by.empty() ? "" : cat(" by ", quoted(now.by)),
                                now.why.empty() ? "" : cat(": ", printable(now.why)));
  switch (lost.cause) {
    case core::ItemCause::None:
    case core::ItemCause::NotYet:
    case core::ItemCause::Taken:
    case core::ItemCause::NotWaiting: return cat(what, " cannot be claimed", stands);
    case core::ItemCause::Expired: return cat(what, ": the claim has run out", stands);
    case core::ItemCause::Stalled:
      return cat(what, ": the claim was ended for lack of progress", stands);
    case core::ItemCause::Superseded:
      return cat(what, " was superseded: it was claimed again by ", quoted(now.owner.text()),
                 stands, ". Nothing was changed");
    case core::ItemCause::Ordered: return cat(what, " was moved", order, stands);
    case core::ItemCause::Spoken:
      return cat(what, " was ", core::word(now.last), " already, and not with this", stands);
    case core::ItemCause::NeverIssued: return cat(what, " was never given to a worker", stands);
    case core::ItemCause::WrongEpoch:
      return cat(quoted(id.text()), " stands at epoch ", now.epoch.number(), ", not ",
                 offered.number(), ": look again before you decide");
    case core::ItemCause::Live:
      return cat(
          quoted(id.text()), " is claimed by ", quoted(now.owner.text()), " with epoch ",
          now.epoch.number(),
          lost.item->remaining ? cat(" for another ", rough_duration(*lost.item->remaining)) : "",
          now.progress.empty() ? "" : cat("; its progress: ", printable(now.progress)),
          ": wait for its end, or look at it with 'stint queue show' first");
    case core::ItemCause::Finished:
      return cat(quoted(id.text()), " is ", core::word(now.state), ": it is finished");
    case core::ItemCause::NotFinished:
      return cat(quoted(id.text()), " is ", core::word(now.state), ": it is not finished");
    case core::ItemCause::NotThere: return cat("there is no item ", quoted(id.text()));
  }
  return what;
}

}  // namespace stint::api
