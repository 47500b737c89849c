// The invariants of the simulation, one by one, in one object. It knows nothing of how the law is
// written: it is told what the store really holds after each commit, what each target really took,
// and what each client was told, and compares. Numbers and names: law_name(), docs/internals/
// simulation.md.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/lease.h"
#include "store/seam.h"
#include "tests/support/sim.h"

namespace stint::test {

constexpr int kLaws = 18;
std::string_view law_name(int number);

class SimLaws {
 public:
  // `truth` must answer without faults; `clock` is the store's. All must outlive this.
  SimLaws(Scheduler& scheduler, store::Store& truth, const SimClock& clock);

  // How often each was looked at with something to compare.
  const std::array<std::uint64_t, kLaws + 1>& looked() const { return looked_; }
  std::uint64_t grants_of(const std::string& resource) { return granted_[resource].size(); }
  std::uint64_t version_of(const std::string& target) { return targets_[target].version; }
  std::uint64_t grants() const { return grants_; }
  std::uint64_t renewals() const { return renewals_; }
  std::uint64_t writes() const { return writes_; }
  std::uint64_t stale() const { return stale_; }

  // ---- the store (1 to 5, 10): after each commit
  void observe(const std::vector<store::Step>& steps);
  // The store went back: what it holds now is what it holds. Tokens stay known.
  void went_back();
  std::uint64_t times_back() const { return times_back_; }

  // A backup was put back under those who run: until somebody accepts it tokens may repeat, where
  // nobody is left who remembers. The guards hold regardless.   G12
  void suspend_tokens(bool suspended) { suspended_ = suspended; }

  // One lease, as the store's log has it.
  struct Stand {
    Token token;
    std::string owner;
    core::Reason reason = core::Reason::First;
    core::Standing standing = core::Standing::Released;
    store::Version version = 0;
    // A timer is told in whole milliseconds, rounded up: its end lies between two moments.
    Nanos ends_earliest{0};
    Nanos ends_latest{0};
    Nanos rests_until{0};  // at least
  };
  void changed(const std::string& resource, const std::optional<Stand>& after, Nanos now);

  // ---- what clients are told (2, 6)
  void acquired(const std::string& resource, Token token);
  void released(const std::string& resource, Token token);
  // A verb of its holder was answered with a loss; or it was done.
  void told_lost(const std::string& resource, Token token);
  void told_held(const std::string& resource, Token token);
  // An acquire that was sent at `sent` was refused because of that token.
  void refused(const std::string& resource, Token because, MonoTime sent);

  // ---- targets (7 to 10, 12 to 15)
  void sealed(const std::string& target, Token token);
  // `standing`: the highest fence that stood there at that very moment. `based_on`: the version
  // that was read for it.
  struct Landing {
    std::string resource;
    Token token;
    std::uint64_t version = 0;
    std::string body;
    Token standing;
    // Its body was staged before that fence had its name. Then it may land until the seal has taken
    // the staged bodies away, that is until somebody was told of the seal.
    bool staged_first = false;
  };
  void landed(const std::string& target, const Landing& landing);
  // Somebody read this there: the whole of something that landed.
  void seen(const std::string& target, const std::string& body);
  void seal_told(const std::string& target, Token token);
  // A fence that is kept in the store got this token.
  void fence_moved(const std::string& target, Token token);
  void write_told(const std::string& target, const std::string& body, std::uint64_t version);
  // Refused, or an error that says that nothing was written.
  void write_refused(const std::string& target, const std::string& body);
  void fenced(const std::string& target, Token token);
  // The target came back from a power cut with this.
  void came_back(const std::string& target, Token fence, std::uint64_t version);
  // What must happen at most once: a write of mode once, an item's completion, an act's result.
  void completed(const std::string& key, const std::string& by);
  // What was asked for under a key is there once, however often it was asked for.
  void made(const std::string& key, const std::string& what);

  // ---- slots (16)
  void slot_started(const std::string& key, int attempt);
  void slot_overtook(const std::string& job);
  void slot_counted(const std::string& key, int times);

  // ---- at the end (17)
  void got_on(bool did, const std::string& what);

  // ---- self-restraint (18)
  // Work under that token lives; and does no more.
  void works(const std::string& actor, const std::string& resource, Token token);
  void works_no_more(const std::string& actor);
  // Trusts its lease until then (true time).
  void trusts(const std::string& actor, const std::string& resource, Token token, MonoTime until);
  void trusts_nothing(const std::string& actor);
  // Its machine was paused from outside: until then only the guards hold.
  void excuse(const std::string& actor, MonoTime until);
  // After each step: time has passed, nothing else.
  void check_time();

 private:
  struct Target {
    Token high;    // sealed or accepted
    Token sealed;  // by a seal: who lands since must be that one
    Token told;    // acknowledged
    Token accepted;
    std::uint64_t version = 0;  // of what stands there
    std::uint64_t told_version = 0;
    std::set<std::string> refused;
    std::set<Token> fenced;
    std::set<std::string> bodies;
  };
  struct Trust {
    std::string resource;
    Token token;
    MonoTime until;
  };
  void broken(int law, const std::string& where, std::string_view what);
  void look(int law) { ++looked_[static_cast<std::size_t>(law)]; }
  std::optional<Stand> read(const std::string& resource, Nanos& now);
  void check_new_owner(const std::string& resource, const Stand& before, const Stand& after,
                       Nanos now);
  void check_same_owner(const std::string& resource, const Stand& before, Stand& after, Nanos now);
  void check_works(const std::string& resource, const Stand& after);
  bool excused(const std::string& actor) const;

  Scheduler& scheduler_;
  store::Store& truth_;
  const SimClock& clock_;
  std::array<std::uint64_t, kLaws + 1> looked_{};
  std::map<std::string, Stand> seen_;
  std::map<std::string, Token> highest_;
  std::map<std::string, std::map<Token, std::string>> granted_;  // and to whom
  std::map<std::string, Token> told_;
  std::map<std::string, std::map<Token, MonoTime>> released_;
  std::map<std::string, Target> targets_;
  std::map<std::string, std::string> completed_;
  std::map<std::string, std::string> made_;
  std::map<std::pair<std::string, int>, int> starts_;
  std::map<std::string, std::pair<std::string, Token>> works_;
  std::map<std::string, Trust> trusts_;
  std::map<std::string, MonoTime> excused_;
  bool suspended_ = false;
  std::uint64_t grants_ = 0;
  std::uint64_t renewals_ = 0;
  std::uint64_t times_back_ = 0;
  std::uint64_t writes_ = 0;
  std::uint64_t stale_ = 0;
};

}  // namespace stint::test
