// The production holder in the simulation: its work is dead before the store can grant to another.
// EVIDENCE-OF: G6
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "holder/keeper.h"
#include "tests/support/sim_world.h"

namespace stint::test {
namespace {

constexpr std::uint64_t kSeeds = 300;

// Holds one lease after another with a Keeper; its work lives until it must be dead, at the worst.
class KeeperActor final : public Actor {
 public:
  KeeperActor(SimWorld& world, SimClock& clock, std::string name)
      : world_(world), clock_(clock), name_(std::move(name)), owner_(*Owner::parse(name_)) {}
  std::string name() const override { return name_; }

  std::optional<MonoTime> step(MonoTime now) override {
    if (world_.scheduler().random().below(30) == 0) {
      world_.scheduler().freeze(*this, Millis(world_.scheduler().random().below(2000)));
    }
    return keeper_ ? keep(now) : acquire(now);
  }

  int held() const { return held_; }

 private:
  MonoTime soon() { return clock_.mono() + Millis(1 + world_.scheduler().random().below(100)); }

  MonoTime acquire(MonoTime now) {
    Random& random = world_.scheduler().random();
    const ResourceName& resource = world_.resources()[random.below(world_.resources().size())];
    settings_.ttl = Millis(300 + random.below(700));
    settings_.grace = core::default_grace(settings_.ttl);
    settings_.margin = core::default_margin(settings_.ttl);
    const Claim claim = Claim::make(random);
    core::Terms terms{.ttl = settings_.ttl};
    if (random.below(4) == 0) terms.max_hold = terms.ttl + Millis(random.below(2000));
    settings_.max_hold = terms.max_hold;
    const auto answer = world_.leases().acquire({.resource = resource,
                                                 .owner = owner_,
                                                 .claim = claim,
                                                 .terms = terms,
                                                 .note = {},
                                                 .retake = {},
                                                 .count_refusal = false});
    const auto* granted = answer ? std::get_if<api::Granted>(&*answer) : nullptr;
    if (granted == nullptr) return soon();
    const api::Grip grip{.resource = resource,
                         .token = granted->lease.token,
                         .claim = claim,
                         .owner = owner_,
                         .hint = granted->hint};
    if (granted->replayed) {
      // Its answer is of an unknown age; not this one, then.
      return world_.leases().release(grip, false) ? soon() : soon() + settings_.ttl;
    }
    grip_ = grip;
    ++held_;
    keeper_.emplace(world_.leases(), clock_, random, settings_,
                    std::vector<holder::Kept>{
                        {.grip = grip, .sent_at = now, .granted_ttl = granted->granted_ttl}});
    leave_at_ = clock_.mono() + settings_.ttl * static_cast<int>(1 + random.below(6));
    return trust();
  }

  MonoTime trust() {
    const holder::KeeperState state = keeper_->state();
    dead_at_ = state.kill_at + settings_.margin;
    world_.invariants().trusts(name_, grip_->resource.text(), grip_->token,
                               clock_.true_time(dead_at_));
    return std::min({keeper_->next(), state.deadline, leave_at_});
  }

  MonoTime keep(MonoTime now) {
    if (now >= leave_at_ && now < keeper_->state().deadline) {
      drop();
      const auto released = world_.leases().release(*grip_, false);
      world_.scheduler().note(cat(name_, released ? " leaves" : " leaves without an answer"));
      return soon();
    }
    if (keeper_->state().standing == holder::KeeperState::Standing::Holding) keeper_->step();
    const auto standing = keeper_->state().standing;
    world_.scheduler().note(cat(name_, " stands ", static_cast<int>(standing)));
    if (standing == holder::KeeperState::Standing::Holding) return trust();
    if (standing == holder::KeeperState::Standing::Lost || clock_.mono() >= dead_at_) {
      drop();
      return soon();
    }
    return dead_at_;
  }

  void drop() {
    world_.invariants().trusts_nothing(name_);
    keeper_.reset();
  }

  SimWorld& world_;
  SimClock& clock_;
  const std::string name_;
  const Owner owner_;
  core::HoldSettings settings_;
  std::optional<api::Grip> grip_;
  std::optional<holder::Keeper> keeper_;
  MonoTime leave_at_;
  MonoTime dead_at_;
  int held_ = 0;
};

SimReport run_keepers(const SimOptions& options, int& held) {
  SimWorld world(options);
  std::vector<const KeeperActor*> actors;
  for (int i = 0; i < 3; ++i) {
    SimClock& clock = world.make_clock();
    auto actor = std::make_unique<KeeperActor>(world, clock, cat("keeper", i));
    actors.push_back(actor.get());
    world.add(std::move(actor), clock);
  }
  SimReport report = world.run();
  for (const KeeperActor* actor : actors) held += actor->held();
  return report;
}

TEST(SimKeeper, HasItsWorkDeadBeforeAnotherIsGranted) {
  int held = 0;
  int renewals = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimOptions options{.seed = seed, .steps = 200};
    SimReport report = run_keepers(options, held);
    renewals += report.renewals;
    if (report.problems.empty()) continue;
    options.keep_trace = true;
    ADD_FAILURE() << run_keepers(options, held).text();
    return;
  }
  EXPECT_GT(held, static_cast<int>(kSeeds));
  EXPECT_GT(renewals, static_cast<int>(kSeeds));
}

}  // namespace
}  // namespace stint::test
