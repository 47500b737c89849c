// G1, G2, G3 and G6, checked against what the store really holds: after each commit and each step.
//
// It knows nothing of how the law is written: it reads the records and compares them with what they
// were.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/lease.h"
#include "store/seam.h"
#include "tests/support/sim.h"

namespace stint::test {

class SimInvariants {
 public:
  // `truth` must answer without faults; `clock` is the store's. All must outlive this.
  SimInvariants(Scheduler& scheduler, store::Store& truth, const SimClock& clock,
                std::vector<std::string> resources);

  // After each commit: the records are compared with what they were.
  void observe();
  // After each step: time has passed, nothing else.
  void check_beliefs();

  // G6: an actor trusts its lease until then (true time). An empty token ends its trust.
  void trusts(const std::string& actor, const std::string& resource, Token token, MonoTime until);
  void trusts_nothing(const std::string& actor) { beliefs_.erase(actor); }

  int grants() const { return grants_; }
  int renewals() const { return renewals_; }

 private:
  // What a timer has left is told in whole milliseconds, rounded up: so its end lies between two
  // moments.
  struct End {
    Nanos earliest{0};
    Nanos latest{0};
  };
  static std::optional<End> end_of(const store::Entry& entry, Nanos now);

  struct Seen {
    store::Version own_version = 0;
    core::Ownership own;
    core::Standing standing = core::Standing::Released;
    std::optional<End> alive;
    std::optional<End> cap;
    Nanos rests_until{0};  // at least
  };
  struct Belief {
    std::string resource;
    Token token;
    MonoTime until;
  };

  std::optional<Seen> look(const std::string& resource, Nanos& now);
  // Held or reserved at that moment, for certain; or perhaps.
  static bool surely_stands(const Seen& seen, Nanos at);
  static bool may_stand(const Seen& seen, Nanos at);
  void check_new_owner(const std::string& resource, const Seen& before, const Seen& after,
                       Nanos now);
  void check_same_owner(const std::string& resource, const Seen& before, Seen& after, Nanos now);
  void broken(const char* law, const std::string& resource, std::string_view what);

  Scheduler& scheduler_;
  store::Store& truth_;
  const SimClock& clock_;
  const std::vector<std::string> resources_;
  std::map<std::string, Seen> seen_;
  std::map<std::string, Token> highest_;
  std::map<std::string, Belief> beliefs_;
  int grants_ = 0;
  int renewals_ = 0;
};

}  // namespace stint::test
