// What the lease-level conformance tests share: a LeaseService on the store of the case at hand.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "os/random.h"
#include "service/fence_service.h"
#include "service/lease_service.h"
#include "tests/conformance/served.h"
#include "tests/conformance/stores.h"

namespace stint::testing {

constexpr Millis kHour{3'600'000};

inline ResourceName resource(std::string_view name) { return ResourceName::parse(name).value(); }
inline Owner owner(std::string_view name) { return Owner::parse(name).value(); }

inline core::Terms plain_terms(Millis ttl) {
  return {.ttl = ttl, .max_hold = {}, .at_least = {}, .cooldown = {}};
}

// One client of a site: its own opening of the store, its own ledger; where the site is served, a
// server of its own on them, asked over HTTP.
class Client {
 public:
  explicit Client(Site& site)
      : store(site.open()),
        ledger(*store, site.clock(), 10'000),
        local(*store, ledger,
              service::begin_life(*store, random, site.clock().wall(), nullptr, {}).value(),
              site.clock(), random, nullptr),
        local_fences(*store, site.clock()),
        served(site.served() ? serve({local, local_fences, ledger}, random, site.clock())
                             : nullptr),
        leases(served ? served->leases() : local),
        fences(served ? served->fences() : local_fences),
        events(served ? served->events() : ledger) {}

  Claim claim() { return Claim::make(random); }

  Result<api::AcquireAnswer> bid(std::string_view name, std::string_view who, const Claim& claim,
                                 const core::Terms& terms,
                                 std::optional<Claim> retake = std::nullopt) {
    return leases.acquire({.resource = resource(name),
                           .owner = owner(who),
                           .claim = claim,
                           .terms = terms,
                           .note = "",
                           .retake = std::move(retake),
                           .count_refusal = true});
  }

  std::unique_ptr<store::Store> store;
  os::SystemRandom random;
  service::Ledger ledger;
  service::LeaseService local;
  service::FenceService local_fences;
  std::unique_ptr<Served> served;
  api::Leases& leases;
  api::Fences& fences;
  api::Events& events;
};

class LeaseTest : public ::testing::TestWithParam<StoreCase> {
 protected:
  struct Grant {
    api::Grip grip;
    api::Granted answer;
    Token token() const { return grip.token; }
  };

  Millis brief() const { return std::max(site_->short_ttl(), client_.leases.smallest_ttl()); }

  Grant granted(Result<api::AcquireAnswer> answer, std::string_view name, std::string_view who,
                const Claim& claim) {
    EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
    EXPECT_TRUE(answer && std::holds_alternative<api::Granted>(*answer)) << name << " was refused";
    if (!answer || !std::holds_alternative<api::Granted>(*answer)) std::abort();
    auto& yes = std::get<api::Granted>(*answer);
    return {{resource(name), yes.lease.token, claim, owner(who), yes.hint}, yes};
  }
  Grant acquire(std::string_view name, std::string_view who, const core::Terms& terms) {
    const Claim claim = client_.claim();
    return granted(client_.bid(name, who, claim, terms), name, who, claim);
  }
  Grant acquire(std::string_view name, std::string_view who = "ann", Millis ttl = kHour) {
    return acquire(name, who, plain_terms(ttl));
  }
  // Nothing: it was granted after all.
  std::optional<api::Refused> refused(std::string_view name, std::string_view who = "bob") {
    auto answer = client_.bid(name, who, client_.claim(), plain_terms(kHour));
    EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
    if (!answer || std::holds_alternative<api::Granted>(*answer)) return std::nullopt;
    return std::get<api::Refused>(*answer);
  }
  // None: it was done.
  static core::Cause lost(const Result<api::HoldAnswer>& answer) {
    EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
    if (!answer) return core::Cause::None;
    const auto* no = std::get_if<api::Lost>(&*answer);
    return no == nullptr ? core::Cause::None : no->cause;
  }
  static bool done(const Result<api::HoldAnswer>& answer) {
    return lost(answer) == core::Cause::None;
  }
  api::Lease get(std::string_view name) { return client_.leases.get(resource(name)).value(); }
  core::State state(std::string_view name) { return get(name).state; }
  bool wait_for(std::string_view name, core::State wanted) {
    return site_->eventually([&] { return state(name) == wanted; });
  }
  api::OrderRequest order(std::string_view name, Token expected) {
    return {.resource = resource(name), .expected = expected, .why = "because", .by = "op"};
  }
  std::vector<api::Event> events(const std::string& prefix = "") {
    return client_.events.list({.after = "", .prefix = prefix, .limit = 1000, .newest = false})
        .value();
  }
  std::vector<std::string> kinds(const std::string& prefix = "") {
    std::vector<std::string> out;
    for (const api::Event& event : events(prefix)) out.push_back(event.kind);
    return out;
  }

  std::unique_ptr<Site> site_ = GetParam().make();
  Client client_{*site_};
};

#define STINT_LEASES_ON_EVERY_STORE(Suite)                                   \
  INSTANTIATE_TEST_SUITE_P(Store, Suite, ::testing::ValuesIn(lease_sites()), \
                           [](const auto& each) { return each.param.name; })

}  // namespace stint::testing
