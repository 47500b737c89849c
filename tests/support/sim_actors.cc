#include "tests/support/sim_actors.h"

#include "base/text.h"

namespace stint::test {
namespace {

std::string_view answer_word(const Result<api::HoldAnswer>& answer) {
  if (!answer) return word(answer.error().code);
  if (const auto* lost = std::get_if<api::Lost>(&*answer)) return core::word(lost->cause);
  return "ok";
}

constexpr int kMostTries = 4;

}  // namespace

SimWorker::SimWorker(SimWorld& world, SimClock& clock, std::string name)
    : world_(world), clock_(clock), name_(std::move(name)), owner_(*Owner::parse(name_)) {}

void SimWorker::note(std::string_view what, std::string_view answer) {
  world_.scheduler().note(cat(name_, ' ', what, ": ", answer));
}

MonoTime SimWorker::later(Millis least, Millis most) {
  const auto spread = static_cast<std::uint64_t>(Nanos(most - least).count());
  return clock_.mono() + least + Nanos(world_.scheduler().random().below(spread));
}

// Its wall clock is set anew, or the process is stopped for a while: wherever that hits.
void SimWorker::maybe_disturb() {
  Random& random = world_.scheduler().random();
  const std::uint64_t dice = random.below(100);
  if (dice < 3) clock_.step_wall(Millis(random.below(20'000)) - Millis(10'000));
  if (dice >= 97) {
    note("is frozen", "");
    world_.scheduler().freeze(*this, Millis(random.below(1500)));
  }
}

std::optional<MonoTime> SimWorker::step(MonoTime now) {
  maybe_disturb();
  if (holding_ && now >= holding_->until) {
    note("stops at its deadline", "");
    holding_.reset();
    world_.invariants().trusts_nothing(name_);
    return later(Millis(1), Millis(100));
  }
  if (!holding_) return try_acquire();
  return holding_->renewals > 0 ? try_renew(now) : leave();
}

SimWorker::Bid SimWorker::new_bid() {
  Random& random = world_.scheduler().random();
  const auto& resources = world_.resources();
  core::Terms terms{.ttl = Millis(50 + random.below(450))};
  if (random.below(5) == 0) terms.max_hold = terms.ttl + Millis(random.below(600));
  if (random.below(6) == 0) terms.at_least = terms.ttl / 2;
  if (random.below(6) == 0) terms.cooldown = Millis(1 + random.below(200));
  return {.resource = resources[random.below(resources.size())],
          .claim = Claim::make(random),
          .terms = terms,
          .first_sent = clock_.mono()};
}

MonoTime SimWorker::try_acquire() {
  if (!bid_) bid_ = new_bid();
  const auto answer = world_.leases().acquire({.resource = bid_->resource,
                                               .owner = owner_,
                                               .claim = bid_->claim,
                                               .terms = bid_->terms,
                                               .note = name_,
                                               .retake = {},
                                               .count_refusal = true});
  if (!answer) {
    note("acquire", word(answer.error().code));
    if (++bid_->tries == kMostTries) bid_.reset();
    return later(Millis(1), Millis(40));
  }
  if (const auto* refused = std::get_if<api::Refused>(&*answer)) {
    note("acquire", "refused");
    bid_.reset();
    return later(Millis(1), refused->retry_in.value_or(Millis(50)) + Millis(50));
  }
  return granted(std::get<api::Granted>(*answer));
}

MonoTime SimWorker::granted(const api::Granted& granted) {
  Random& random = world_.scheduler().random();
  note(cat(granted.lease.resource, " token ", granted.lease.token.number(), " ttl ",
           granted.lease.ttl.count()),
       granted.replayed ? "replayed" : "granted");
  const Bid bid = *bid_;
  bid_.reset();
  holding_ = Holding{.grip = {.resource = bid.resource,
                              .token = granted.lease.token,
                              .claim = bid.claim,
                              .owner = owner_,
                              .hint = granted.hint},
                     .ttl = granted.lease.ttl,
                     .until = bid.first_sent + granted.lease.ttl,
                     .renewals = random.below(6)};
  if (random.below(2) == 0) holding_->grip.hint.reset();
  // G6: a replayed grant counts from a renewal, not from this answer.
  if (granted.replayed) {
    holding_->renewals += 1;
    return clock_.mono();
  }
  trust(bid.first_sent, granted.granted_ttl);
  return clock_.mono() + granted.lease.ttl / 3;
}

void SimWorker::trust(MonoTime sent, Millis ttl) {
  // A thousandth for drift.
  holding_->until = sent + ttl - Nanos(ttl) / 1000;
  world_.invariants().trusts(name_, holding_->grip.resource.text(), holding_->grip.token,
                             clock_.true_time(holding_->until));
}

MonoTime SimWorker::try_renew(MonoTime now) {
  const auto answer = world_.leases().renew(holding_->grip, holding_->ttl);
  note("renew", answer_word(answer));
  if (!answer) return later(Millis(1), holding_->ttl / 10 + Millis(2));
  if (std::holds_alternative<api::Lost>(*answer)) {
    holding_.reset();
    world_.invariants().trusts_nothing(name_);
    return later(Millis(1), Millis(100));
  }
  --holding_->renewals;
  trust(now, std::get<api::Held>(*answer).granted_ttl);
  return clock_.mono() + holding_->ttl / 3;
}

// Released, or just gone: a crash tells nobody.
MonoTime SimWorker::leave() {
  world_.invariants().trusts_nothing(name_);
  if (world_.scheduler().random().below(4) == 0) {
    note("dies", "");
    holding_.reset();
    return later(Millis(1), Millis(300));
  }
  const auto answer =
      world_.leases().release(holding_->grip, world_.scheduler().random().below(5) == 0);
  note("release", answer_word(answer));
  holding_.reset();
  return later(Millis(1), Millis(100));
}

std::optional<MonoTime> SimOperator::step(MonoTime /*now*/) {
  Random& random = world_.scheduler().random();
  const MonoTime next = clock_.mono() + Millis(100 + random.below(1500));
  const ResourceName& resource = world_.resources()[random.below(world_.resources().size())];
  const auto lease = world_.leases().get(resource);
  if (!lease || !lease->token.issued()) return next;
  const api::OrderRequest order{
      .resource = resource, .expected = lease->token, .why = "drill", .by = "operator"};
  const bool give = random.below(2) == 0;
  const auto answer =
      give ? world_.leases().transfer(order, *Owner::parse(cat("worker", random.below(3))),
                                      Millis(20 + random.below(200)))
           : world_.leases().revoke(order, core::Reason::Revoked);
  world_.scheduler().note(cat("operator ", give ? "transfer: " : "revoke: ", answer_word(answer)));
  return next;
}

}  // namespace stint::test
