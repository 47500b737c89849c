#include "probe/recorded_leases.h"

namespace stint::probe {

HistoryEvent RecordedLeases::invoke(std::string_view verb, const ResourceName& resource,
                                    Token token, Token ends) {
  HistoryEvent event;
  event.op = history_.next_op(client_);
  event.client = client_;
  event.verb = verb;
  event.resource = resource.text();
  event.token = token;
  event.ends = ends;
  event.local = clock_.mono().time_since_epoch();
  history_.write(event);
  return event;
}

// A fault that is known to have come before the sending is a failure; every other is unknown.
void RecordedLeases::failed(HistoryEvent event, const Error& error) {
  const bool definite = error.code == Code::Invalid || error.code == Code::Denied;
  event.phase = definite ? Phase::Fail : Phase::Info;
  event.cause = word(error.code);
  event.local = clock_.mono().time_since_epoch();
  history_.write(event);
}

void RecordedLeases::answered(HistoryEvent event, const Result<api::HoldAnswer>& answer,
                              Token token) {
  if (!answer) return failed(std::move(event), answer.error());
  event.local = clock_.mono().time_since_epoch();
  if (const auto* lost = std::get_if<api::Lost>(&*answer)) {
    event.phase = Phase::Fail;
    event.cause = core::word(lost->cause);
  } else {
    const auto& held = std::get<api::Held>(*answer);
    event.phase = Phase::Ok;
    event.token = token.issued() ? token : held.lease.token;
    event.replayed = held.replayed;
    // The time of a look is no time of an effect. In PostgreSQL a release that was settled by
    // looking carried a time after the next grant's: that one was on its way, and not yet seen.
    if (!held.replayed) event.store_time = held.store_time;
    if (held.granted_ttl.count() > 0) event.ttl = held.granted_ttl;
  }
  history_.write(event);
}

Result<api::AcquireAnswer> RecordedLeases::acquire(const api::AcquireRequest& request,
                                                   Token retaken) {
  HistoryEvent event = invoke(verbs::kAcquire, request.resource, {}, retaken);
  auto answer = leases_.acquire(request);
  if (!answer) {
    failed(std::move(event), answer.error());
    return answer;
  }
  event.local = clock_.mono().time_since_epoch();
  if (const auto* refused = std::get_if<api::Refused>(&*answer)) {
    event.phase = Phase::Fail;
    event.cause = refused->lease.state == core::State::Resting ? "resting" : "held";
    event.holder = refused->lease.token;
  } else {
    const auto& granted = std::get<api::Granted>(*answer);
    event.phase = Phase::Ok;
    event.token = granted.lease.token;
    event.cause = core::word(granted.lease.reason);
    event.replayed = granted.replayed;
    event.store_time = granted.store_time;
    event.ttl = granted.lease.ttl;
    if (granted.replayed && granted.lease.remaining) {
      // It was granted before; what is left is rounded up.
      event.ttl = *granted.lease.remaining - Millis(1);
    }
  }
  history_.write(event);
  return answer;
}

Result<api::HoldAnswer> RecordedLeases::renew(const api::Grip& grip, Millis ttl) {
  HistoryEvent event = invoke(verbs::kRenew, grip.resource, grip.token, {});
  auto answer = leases_.renew(grip, ttl);
  answered(std::move(event), answer, grip.token);
  return answer;
}

Result<api::HoldAnswer> RecordedLeases::release(const api::Grip& grip) {
  HistoryEvent event = invoke(verbs::kRelease, grip.resource, grip.token, {});
  auto answer = leases_.release(grip, false);
  answered(std::move(event), answer, grip.token);
  return answer;
}

Result<api::HoldAnswer> RecordedLeases::check(const api::Grip& grip) {
  HistoryEvent event = invoke(verbs::kCheck, grip.resource, grip.token, {});
  auto answer = leases_.check(grip);
  answered(std::move(event), answer, grip.token);
  return answer;
}

Result<api::HoldAnswer> RecordedLeases::transfer(const api::OrderRequest& order, const Owner& to,
                                                 Millis ttl) {
  HistoryEvent event = invoke(verbs::kTransfer, order.resource, {}, order.expected);
  auto answer = leases_.transfer(order, to, ttl);
  answered(std::move(event), answer, {});
  return answer;
}

Result<api::HoldAnswer> RecordedLeases::revoke(const api::OrderRequest& order) {
  HistoryEvent event = invoke(verbs::kRevoke, order.resource, {}, order.expected);
  auto answer = leases_.revoke(order, core::Reason::Revoked);
  answered(std::move(event), answer, {});
  return answer;
}

}  // namespace stint::probe
