// Random verbs by three clients and an operator, on a simulated clock, against a second, naive
// telling of the law: who has it until when, and from when on may another.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>

#include "base/text.h"
#include "core/lease.h"
#include "tests/conformance/lease_model.h"

namespace stint::core {
namespace {

using stint::testing::LeaseModel;

struct Action {
  int kind = 0;    // a verb, or 0: only time passes
  int client = 0;  // 0..2
  int pause = 0;   // ms before it
  int ttl = 100;
  int max_hold = 0;
  int at_least = 0;
  int cooldown = 0;
};

void showValue(const Action& a, std::ostream& out) {
  out << cat("{kind ", a.kind, ", client ", a.client, ", pause ", a.pause, ", ttl ", a.ttl,
             ", max_hold ", a.max_hold, ", at_least ", a.at_least, ", cooldown ", a.cooldown, "}");
}

rc::Gen<Action> any_action() {
  using rc::gen::inRange;
  return rc::gen::build<Action>(
      rc::gen::set(&Action::kind, inRange(0, 11)), rc::gen::set(&Action::client, inRange(0, 3)),
      rc::gen::set(&Action::pause, inRange(0, 120)), rc::gen::set(&Action::ttl, inRange(1, 100)),
      rc::gen::set(&Action::max_hold, rc::gen::element(0, 0, 150)),
      rc::gen::set(&Action::at_least, rc::gen::element(0, 0, 60, 140)),
      rc::gen::set(&Action::cooldown, rc::gen::element(0, 0, 50)));
}

struct Client {
  ClaimHash claim;
  Token token;
};

// The law told a second time, with plain moments instead of timers and states.
struct Oracle {
  std::optional<int> holder;  // who holds it, as long as now < until
  Millis until{0};
  std::optional<Millis> cap;
  Millis rest_until{0};  // at_least, and the cooldown of a use that was re-taken
  Millis cool_until{0};  // a cooldown that has begun
  Millis cooldown{0};    // of the present grant, if it ends uncleanly
  std::optional<int> heir;
  Millis reserved_until{0};
  Token last;

  // An expiry that has passed is an unclean end.
  void pass(Millis now) {
    if (holder) {
      const Millis end = cap ? std::min(until, *cap) : until;
      if (now < end) return;
      end_unclean(end);
    }
    if (heir && now >= reserved_until) heir.reset();
  }
  void end_unclean(Millis at) {
    cool_until = at + cooldown;
    holder.reset();
  }
  bool ended() const { return !holder && !heir; }
  bool rests(Millis now) const { return now < rest_until || now < cool_until; }
};

class Play {
 public:
  void act(const Action& a) {
    lease_.now += Millis(a.pause);
    oracle_.pass(lease_.now);
    const Token before = token();
    step(a);
    RC_ASSERT(token() >= before);  // G1
    check_agreement();
  }

 private:
  Token token() const { return lease_.record().own ? lease_.record().own->token : Token(); }
  static Owner label(int client) { return Owner::parse(cat("client-", client)).value(); }
  ClaimHash fresh_claim() { return ClaimHash(cat("claim-", ++claims_)); }
  Proof proof(int client) const {
    const Client& c = clients_.at(static_cast<std::size_t>(client));
    return {c.token, c.claim, label(client)};
  }

  void step(const Action& a) {
    switch (a.kind) {
      case 1:
      case 2: return acquire(a, false);
      case 3: return acquire(a, true);
      case 4:
      case 5: return renew(a);
      case 6: return release(a, false);
      case 7: return release(a, true);
      case 8: return transfer(a);
      case 9: return revoke();
      case 10: return stall(a);
      default: return;
    }
  }

  void acquire(const Action& a, bool retake) {
    Client& me = clients_.at(static_cast<std::size_t>(a.client));
    const Terms terms{Millis(a.ttl), Millis(a.max_hold), Millis(a.at_least), Millis(a.cooldown)};
    const ClaimHash claim = fresh_claim();
    const Decision d =
        lease_.play(Acquire{label(a.client), claim, terms, "", retake ? me.claim : ClaimHash()});
    const Millis now = lease_.now;
    const bool again = retake && oracle_.holder == a.client;
    const bool open =
        !oracle_.holder && !oracle_.rests(now) && (!oracle_.heir || *oracle_.heir == a.client);
    RC_ASSERT((d.outcome == Outcome::Granted) == (again || open));  // G2
    if (d.outcome != Outcome::Granted) return;
    const bool taken_up = oracle_.heir.has_value();
    if (taken_up) {
      RC_ASSERT(d.change.own->token == oracle_.last);
    } else {
      RC_ASSERT(d.change.own->token > oracle_.last);
    }
    if (again) oracle_.rest_until = std::max(oracle_.rest_until, now + oracle_.cooldown);
    oracle_.heir.reset();
    oracle_.holder = a.client;
    oracle_.last = d.change.own->token;
    oracle_.until = now + terms.ttl;
    if (!(again && oracle_.cap)) {
      oracle_.cap = a.max_hold > 0 ? std::optional(now + terms.max_hold) : std::nullopt;
    }
    if (a.at_least > 0) oracle_.rest_until = std::max(oracle_.rest_until, now + terms.at_least);
    oracle_.cooldown = terms.cooldown;
    me = {claim, d.change.own->token};
  }

  void renew(const Action& a) {
    const Decision d = lease_.play(Renew{proof(a.client), Millis(a.ttl)});
    RC_ASSERT((d.outcome == Outcome::Renewed) == (oracle_.holder == a.client));  // G3
    if (oracle_.holder == a.client)
      oracle_.until = std::max(oracle_.until, lease_.now + Millis(a.ttl));
  }

  void release(const Action& a, bool fence) {
    const Decision d = lease_.play(Release{proof(a.client), fence});
    const bool mine = oracle_.holder == a.client;
    if (mine) RC_ASSERT(d.outcome == Outcome::Ended);
    if (mine) oracle_.holder.reset();
    if (d.change.own) oracle_.last = d.change.own->token;
    if (!mine && oracle_.holder) RC_ASSERT(d.outcome == Outcome::Lost);
  }

  void stall(const Action& a) {
    const Decision d = lease_.play(Stall{proof(a.client)});
    if (oracle_.holder != a.client) return;
    RC_ASSERT(d.outcome == Outcome::Ended);
    oracle_.end_unclean(lease_.now);
  }

  void transfer(const Action& a) {
    if (!token().issued()) return;
    const Millis ttl(a.ttl);
    const Millis cooldown = lease_.record().own->terms.cooldown;
    const Decision d =
        lease_.play(Transfer{{token(), "w", "b", cat("o", ++orders_)}, label(a.client), ttl});
    RC_ASSERT(d.outcome == Outcome::Moved);
    if (!oracle_.ended()) oracle_.cool_until = lease_.now + cooldown;
    oracle_.holder.reset();
    oracle_.heir = a.client;
    // The whole ttl after everything that has to pass before it can be taken up.
    oracle_.reserved_until = ttl + std::max({lease_.now, oracle_.rest_until, oracle_.cool_until});
    oracle_.last = d.change.own->token;
  }

  void revoke() {
    if (!token().issued()) return;
    const Millis cooldown = lease_.record().own->terms.cooldown;
    const Decision d =
        lease_.play(Revoke{{token(), "w", "b", cat("o", ++orders_)}, Reason::Revoked});
    RC_ASSERT(d.outcome == Outcome::Moved);
    if (!oracle_.ended()) oracle_.cool_until = lease_.now + cooldown;
    oracle_.rest_until = Millis(0);
    oracle_.holder.reset();
    oracle_.heir.reset();
    oracle_.last = d.change.own->token;
  }

  void check_agreement() const {
    const Record record = lease_.record();
    const bool held = state_of(record) == State::Held;
    RC_ASSERT(held == oracle_.holder.has_value());
    if (held) RC_ASSERT(record.own->owner == label(*oracle_.holder));
    for (int client = 0; client < 3; ++client) {
      const Outcome outcome =
          decide(record, Check{proof(client)}, {.floor = {}, .now_wall = {}}).outcome;
      RC_ASSERT((outcome == Outcome::Holds) == (oracle_.holder == client));
    }
  }

  LeaseModel lease_;
  Oracle oracle_;
  std::array<Client, 3> clients_;
  int claims_ = 0;
  int orders_ = 0;
};

// EVIDENCE-OF: G1 G2 G3
TEST(LeaseProperty, TokensGrowAndGrantsAreDisjointWhateverHappens) {
  const bool held = rc::check("random verbs", [] {
    const auto actions =
        *rc::gen::scale(8.0, rc::gen::container<std::vector<Action>>(any_action()));
    Play play;
    for (const Action& action : actions) play.act(action);
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace stint::core
