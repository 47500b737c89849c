#include "lib/faces.h"

namespace stint {
namespace {

std::optional<SysTime> sys_time(const std::optional<WallTime>& time) {
  if (!time) return std::nullopt;
  return SysTime(time->time_since_epoch());
}

Cause face(core::Cause cause) {
  switch (cause) {
    case core::Cause::None:
    case core::Cause::NotHolder: return Cause::NotHolder;
    case core::Cause::Expired: return Cause::Expired;
    case core::Cause::Superseded: return Cause::Superseded;
    case core::Cause::Released: return Cause::Released;
    case core::Cause::Transferred: return Cause::Transferred;
    case core::Cause::Revoked: return Cause::Revoked;
    case core::Cause::Stalled: return Cause::Stalled;
    case core::Cause::MaxHold: return Cause::MaxHold;
    // A program of the library shows only what it was granted.
    case core::Cause::NeverIssued:
    case core::Cause::Restored: return Cause::Restored;
    case core::Cause::WrongToken: return Cause::WrongToken;
  }
  return Cause::NotHolder;
}

}  // namespace

std::string_view word(Cause cause) {
  switch (cause) {
    case Cause::Expired: return core::word(core::Cause::Expired);
    case Cause::Superseded: return core::word(core::Cause::Superseded);
    case Cause::Released: return core::word(core::Cause::Released);
    case Cause::Transferred: return core::word(core::Cause::Transferred);
    case Cause::Revoked: return core::word(core::Cause::Revoked);
    case Cause::Stalled: return core::word(core::Cause::Stalled);
    case Cause::MaxHold: return core::word(core::Cause::MaxHold);
    case Cause::Restored: return core::word(core::Cause::Restored);
    case Cause::NotHolder: return core::word(core::Cause::NotHolder);
    case Cause::WrongToken: return core::word(core::Cause::WrongToken);
    case Cause::Deadline: return "deadline";
  }
  return {};
}

namespace lib {

Lease face(const api::Lease& lease) {
  Lease out;
  out.resource = lease.resource;
  out.held = lease.held;
  out.state = core::word(lease.state);
  out.owner = lease.owner.text();
  out.token = lease.token.number();
  out.generation = lease.generation.hex();
  out.reason = core::word(lease.reason);
  out.by = lease.by;
  out.why = lease.why;
  out.ttl = lease.ttl;
  out.remaining = lease.remaining;
  out.acquired_at = sys_time(lease.acquired_at);
  out.renewed_at = sys_time(lease.renewed_at);
  out.note = lease.note;
  out.progress = lease.progress;
  out.progress_at = sys_time(lease.progress_at);
  return out;
}

Refused face(const api::Refused& refused) {
  const api::Lease& lease = refused.lease;
  Refused out;
  out.resource = lease.resource;
  out.owner = lease.owner.text();
  out.token = lease.token.number();
  out.state = core::word(lease.state);
  out.since = sys_time(lease.acquired_at);
  out.remaining = lease.remaining;
  out.note = lease.note;
  out.progress = lease.progress;
  out.retry_in = refused.retry_in;
  return out;
}

Lost face(const api::Lost& lost, Token offered) {
  return {.cause = stint::face(lost.cause),
          .token = offered.number(),
          .now = face(lost.lease),
          .trouble = {}};
}

Outcome<Lease, Lost> face(const Result<api::HoldAnswer>& answer, Token offered) {
  if (!answer) return answer.error();
  if (const auto* lost = std::get_if<api::Lost>(&*answer)) return face(*lost, offered);
  return face(std::get<api::Held>(*answer).lease);
}

}  // namespace lib
}  // namespace stint
