// The plain cast of the simulation: workers that hold leases by hand, and an operator who moves
// them.
#pragma once

#include <optional>
#include <string>

#include "tests/support/sim_world.h"

namespace stint::test {

// Acquires, renews, then releases, or dies, or sleeps too long. It repeats a lost acquire with the
// same claim, and trusts a lease only as long as G6 allows.
class SimWorker final : public Actor {
 public:
  SimWorker(SimWorld& world, SimClock& clock, std::string name);
  std::string name() const override { return name_; }
  std::optional<MonoTime> step(MonoTime now) override;

 private:
  struct Bid {
    ResourceName resource;
    Claim claim;
    core::Terms terms;
    MonoTime first_sent;
    int tries = 0;
  };
  struct Holding {
    api::Grip grip;
    Millis ttl;
    MonoTime until;
    std::uint64_t renewals = 0;  // still to come
  };

  MonoTime try_acquire();
  MonoTime granted(const api::Granted& granted);
  MonoTime try_renew(MonoTime now);
  MonoTime leave();
  void trust(MonoTime sent, Millis ttl);
  Bid new_bid();
  MonoTime later(Millis least, Millis most);
  void maybe_disturb();
  void note(std::string_view what, std::string_view answer);

  SimWorld& world_;
  SimClock& clock_;
  const std::string name_;
  const Owner owner_;
  std::optional<Bid> bid_;
  std::optional<Holding> holding_;
};

class SimOperator final : public Actor {
 public:
  SimOperator(SimWorld& world, SimClock& clock) : world_(world), clock_(clock) {}
  std::string name() const override { return "operator"; }
  std::optional<MonoTime> step(MonoTime now) override;

 private:
  SimWorld& world_;
  SimClock& clock_;
};

}  // namespace stint::test
