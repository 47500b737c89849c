// A whole small site in the simulation: one store, one disk, three machines with drifting clocks;
// on them holders that edit files under leases, queue workers, schedulers, operators, and somebody
// who makes the faults of a plan happen.
//
//   const SimOutcome outcome = play(make_plan(42), {});
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "guard/guard.h"
#include "guard/targets.h"
#include "holder/run.h"
#include "os/signals.h"
#include "service/fence_service.h"
#include "service/lease_service.h"
#include "service/queue_service.h"
#include "tests/sim/sim_artifacts.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_git.h"
#include "tests/sim/sim_net.h"
#include "tests/sim/sim_os.h"
#include "tests/sim/sim_plan.h"
#include "tests/sim/sim_sql.h"
#include "tests/support/fault_store.h"
#include "tests/support/sim_laws.h"
#include "tests/support/sim_machines.h"

namespace stint::test {

struct SimOptions {
  Sabotage sabotage = Sabotage::None;
  bool without_seal = false;   // holders do not seal before they read
  bool lying_disk = false;     // syncs do nothing
  bool forged_tokens = false;  // writers show a token that nobody was granted
  bool warn = false;           // STINT_GUARD=warn: what would be refused is written
  bool blind_git = false;      // the git server compares nothing
  bool hasty = false;          // proxies do not wait for what the application may be at
  bool keep_trace = false;
};

struct SimOutcome {
  std::size_t steps = 0;
  Nanos length{0};
  std::uint64_t fingerprint = 0;
  std::uint64_t grants = 0;
  std::uint64_t renewals = 0;
  std::uint64_t writes = 0;  // that landed
  std::uint64_t stale = 0;   // that were refused
  std::uint64_t items = 0;
  std::uint64_t slots = 0;
  std::map<std::string, std::uint64_t> faults;
  std::array<std::uint64_t, kLaws + 1> looked{};
  std::vector<std::string> problems;
  std::vector<std::string> trace;
};

SimOutcome play(const SimPlan& plan, const SimOptions& options);

// Outlives the processes of its machine, not the machine.
class SimAnchors final : public service::Anchors {
 public:
  Result<std::optional<service::Anchor>> recall() override { return anchor_; }
  // As app/anchor_file.cc does.
  void remember(const service::Anchor& anchor) override {
    service::Anchor kept = anchor;
    if (anchor_ && anchor_->generation == kept.generation) kept = joined(*anchor_, anchor);
    if (anchor_) kept.highest = std::max(kept.highest, anchor_->highest);
    anchor_ = kept;
  }
  Token highest() const { return anchor_ ? anchor_->highest : Token(); }

 private:
  std::optional<service::Anchor> anchor_;
};

// Tells the laws what clients are told.
class ToldLeases final : public api::Leases {
 public:
  ToldLeases(api::Leases& leases, Scheduler& scheduler, SimLaws& laws)
      : leases_(leases), scheduler_(scheduler), laws_(laws) {}
  Result<api::AcquireAnswer> acquire(const api::AcquireRequest& request) override;
  Result<api::HoldAnswer> release(const api::Grip& grip, bool fence) override;
  Result<api::HoldAnswer> renew(const api::Grip& grip, Millis ttl) override {
    return told(grip, leases_.renew(grip, ttl));
  }
  Result<api::HoldAnswer> stall(const api::Grip& grip) override {
    return told(grip, leases_.stall(grip));
  }
  Result<api::HoldAnswer> check(const api::Grip& grip) override {
    return told(grip, leases_.check(grip));
  }
  Result<api::HoldAnswer> progress(const api::Grip& grip, const std::string& marker) override {
    return leases_.progress(grip, marker);
  }
  Result<api::HoldAnswer> transfer(const api::OrderRequest& order, const Owner& to,
                                   Millis ttl) override {
    return leases_.transfer(order, to, ttl);
  }
  Result<api::HoldAnswer> revoke(const api::OrderRequest& order, core::Reason reason) override {
    return leases_.revoke(order, reason);
  }
  Result<api::Lease> get(const ResourceName& resource) override { return leases_.get(resource); }
  Result<std::vector<api::Lease>> list(const api::Page& page) override {
    return leases_.list(page);
  }
  Result<std::vector<api::PastGrant>> history(const ResourceName& resource,
                                              std::size_t limit) override {
    return leases_.history(resource, limit);
  }
  Result<Token> forget(const ResourceName& resource) override { return leases_.forget(resource); }
  Result<std::unique_ptr<Watch>> watch(const ResourceName& resource) override {
    return leases_.watch(resource);
  }
  const Generation& generation() const override { return leases_.generation(); }
  Millis smallest_ttl() const override { return leases_.smallest_ttl(); }

 private:
  Result<api::HoldAnswer> told(const api::Grip& grip, Result<api::HoldAnswer> answer);
  api::Leases& leases_;
  Scheduler& scheduler_;
  SimLaws& laws_;
};

class SimSite;

// What one life of a process has open: the production services on the store.
struct SimOffice {
  SimOffice(SimSite& site, service::Life life, const Clock& clock, SimAnchors& anchors);
  service::Ledger ledger;
  service::LeaseService served;
  ToldLeases leases;
  service::FenceService fences;
  service::QueueService queue;
  service::SlotService slots;
};

class SimSite {
 public:
  SimSite(const SimPlan& plan, const SimOptions& options);
  ~SimSite();
  SimSite(const SimSite&) = delete;
  SimSite& operator=(const SimSite&) = delete;

  SimOutcome run();

  Scheduler& scheduler() { return scheduler_; }
  FaultStore& store() { return *store_; }
  SimLaws& laws() { return *laws_; }
  Random& random() { return scheduler_.random(); }

 private:
  struct Host {
    SimHost* host = nullptr;
    SimAnchors anchors;
    std::vector<std::string> processes;
  };

  // sim_site.cc: the ground, the faults
  void observe(const std::vector<store::Step>& steps);
  void on_name(const std::string& from, const std::string& to);
  void on_name_of(const std::string& file, const std::string& from, const std::string& to);
  void on_sql_commit(const std::string& name, const std::string& body);
  void on_ref(const std::string& ref, const std::string& text);
  void on_text(const net::http::RequestHead& head, const std::string& body);
  void landed(const std::string& file, SimLaws::Landing landing);
  void strike(const SimFault& fault);
  void strike_process(const SimFault& fault, SimProcess& process);
  bool strike_host(const SimFault& fault);
  bool strike_ground(const SimFault& fault);
  void make_faults();
  void go_back(const SimFault& fault);
  void later(Nanos after, std::function<void()> what);
  void recover();
  void crash(SimProcess& process, Nanos away);
  void calm();
  void check_the_end();
  Host& host_of(const SimProcess& process);
  SimProcess* find(const std::string& name);
  void note(std::string_view what) { scheduler_.note(what); }

  // sim_cast.cc, sim_holders.cc: who plays
  void cast_all();
  void make_artifacts();
  void guard_texts();
  std::unique_ptr<SimOffice> open_office();
  void hold();
  holder::RunRequest any_run(const std::string& name, const std::string& resource);
  std::vector<holder::SealStep> seals(SimOffice& office, const guard::Pass& pass);
  void hold_once(SimOffice& office, os::Signals& signals);
  int edit(const std::vector<std::string>& environment, bool escaped);
  bool edit_once(const guard::Pass& pass, const std::string& file, api::Fences& fences,
                 bool& written);
  Status seal_by_words(SimOffice& office, const guard::Pass& pass, const std::string& target,
                       const std::string& file);
  Status seal_by_hand(SimOffice& office, const guard::Pass& pass, const std::string& file);
  void work();
  void put();
  void operate();
  void obey(SimOffice& office, const SimFault& order);
  void order_lease(SimOffice& office, const SimFault& order);
  void order_item(SimOffice& office, const SimFault& order);
  void order_job(SimOffice& office, const SimFault& order);
  Millis up_to(Millis most);

  const SimPlan plan_;
  const SimOptions options_;
  SimTally tally_;
  Scheduler scheduler_;
  SimOs os_;
  SimDisk disk_;
  SimClock& store_clock_;
  SimHost& nowhere_;
  SimNet net_;
  std::optional<SimSql> sql_;
  std::optional<SimGit> git_;
  std::map<std::string, std::unique_ptr<SimArtifact>> artifacts_;
  std::optional<FaultStore> store_;
  std::optional<SimLaws> laws_;
  std::map<std::string, Host> hosts_;
  std::map<std::string, SimProcess*> processes_;
  std::map<std::string, MonoTime> cut_off_;  // until when a process cannot reach the store
  MonoTime store_away_until_{};
  bool calm_ = false;
  std::map<std::string, std::uint64_t> before_calm_;
  std::uint64_t turns_ = 0;
  bool closed_ = false;  // by the operator who restores a backup
  std::uint64_t commits_ = 0;
  std::vector<SimFault> by_commit_;
  std::deque<SimFault> orders_;
  int orders_event_ = -1;
  SimProcess* maker_ = nullptr;  // of the faults
  SlotTruth slot_truth_;
  std::map<std::string, std::uint64_t> fences_;  // the newest file when a fence got its name
  std::unique_ptr<SimOffice> machines_office_;
  std::vector<std::unique_ptr<SimMachine>> machines_;
  std::uint64_t items_ = 0;
  std::uint64_t slots_ = 0;
};

}  // namespace stint::test
