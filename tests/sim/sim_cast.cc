// Who plays in the simulation. What they call is production code; what is theirs is only what
// people and commands do.
#include "app/guards.h"
#include "app/proxy.h"
#include "base/text.h"
#include "guard/targets.h"
#include "queue/worker.h"
#include "tests/sim/sim_site.h"

namespace stint::test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::size_t kKeptLines = 60;
const core::QueueName& the_queue() {
  static const core::QueueName name = core::QueueName::parse("jobs").value();
  return name;
}

std::string told(const Result<api::HoldAnswer>& answer) {
  if (!answer) return std::string(word(answer.error().code));
  if (const auto* lost = std::get_if<api::Lost>(&*answer)) {
    return std::string(core::word(lost->cause));
  }
  return "ok";
}

schedule::JobConfig make_job(const std::string& name, const std::string& schedule,
                             const std::string& resource, int retries) {
  schedule::JobConfig out;
  out.rule.name = name;
  out.rule.schedule = schedule;
  out.rule.expression = core::parse_cron(schedule).value();
  out.rule.digest = core::schedule_digest(schedule, "UTC");
  out.rule.max_backfill = 2;
  out.rule.retries = retries;
  out.rule.backoff = seconds(30);
  out.resources = {ResourceName::parse(resource).value()};
  out.terms.ttl = seconds(30);
  return out;
}

const std::vector<schedule::JobConfig>& jobs() {
  static const std::vector<schedule::JobConfig> all = {make_job("often", "*/5 * * * *", "s0", 0),
                                                       make_job("hourly", "7 * * * *", "s1", 2)};
  return all;
}

}  // namespace

Result<api::AcquireAnswer> ToldLeases::acquire(const api::AcquireRequest& request) {
  const MonoTime sent = scheduler_.now();
  auto answer = leases_.acquire(request);
  if (!answer || !scheduler_.alive()) return answer;
  if (const auto* granted = std::get_if<api::Granted>(&*answer)) {
    laws_.acquired(request.resource.text(), granted->lease.token);
  } else if (const auto& refused = std::get<api::Refused>(*answer); refused.lease.held) {
    laws_.refused(request.resource.text(), refused.lease.token, sent);
  }
  return answer;
}

Result<api::HoldAnswer> ToldLeases::told(const api::Grip& grip, Result<api::HoldAnswer> answer) {
  if (!answer || !scheduler_.alive()) return answer;
  if (std::holds_alternative<api::Lost>(*answer)) {
    laws_.told_lost(grip.resource.text(), grip.token);
  } else {
    laws_.told_held(grip.resource.text(), grip.token);
  }
  return answer;
}

Result<api::HoldAnswer> ToldLeases::release(const api::Grip& grip, bool fence) {
  const std::uint64_t life = laws_.times_back();
  auto answer = told(grip, leases_.release(grip, fence));
  // What is told after the store lost it is lost all the same.
  const bool kept = life == laws_.times_back();
  if (answer && kept && scheduler_.alive() && std::holds_alternative<api::Held>(*answer)) {
    laws_.released(grip.resource.text(), grip.token);
  }
  return answer;
}

SimOffice::SimOffice(SimSite& site, service::Life life, const Clock& clock, SimAnchors& anchors)
    : ledger(site.store(), clock, kKeptLines),
      served(site.store(), ledger, std::move(life), clock, site.random(), &anchors),
      leases(served, site.scheduler(), site.laws()),
      fences(site.store(), clock),
      queue(site.store(), ledger, clock, site.random()),
      slots(site.store(), ledger, clock) {}

std::unique_ptr<SimOffice> SimSite::open_office() {
  const SimProcess& process = *scheduler_.process();
  SimAnchors& anchors = host_of(process).anchors;
  auto life = service::begin_life(*store_, random(), process.clock().wall(), &anchors, {});
  if (!life) {
    note(cat(process.name, " opens: ", word(life.error().code)));
    scheduler_.interleave(seconds(2));
    return nullptr;
  }
  return std::make_unique<SimOffice>(*this, std::move(*life), process.clock(), anchors);
}

Millis SimSite::up_to(Millis most) {
  return Millis(1 + random().below(static_cast<std::uint64_t>(most.count())));
}

void SimSite::cast_all() {
  const auto start = [&](const std::string& host, const std::string& name,
                         void (SimSite::*life)()) {
    hosts_[host].processes.push_back(name);
    processes_[name] =
        &scheduler_.start(*hosts_[host].host, name, [this, life] { (this->*life)(); });
  };
  start("h0", "w0", &SimSite::hold);
  start("h1", "w1", &SimSite::hold);
  start("h2", "w2", &SimSite::hold);
  start("h1", "o0", &SimSite::operate);
  start("h2", "o1", &SimSite::operate);
  os_.install("edit", {[this](const os::TreeOptions& options, bool escaped) {
                         return edit(options.environment, escaped);
                       },
                       [this] { return random().below(8) == 0; }});
  if (plan_.has(SimKind::Text)) {
    start("h3", "x0", &SimSite::guard_texts);
    start("h4", "x1", &SimSite::guard_texts);
  }
  if (plan_.scene != SimScene::Everything) return;
  start("h0", "q0", &SimSite::work);
  start("h1", "q1", &SimSite::work);
  start("h2", "p0", &SimSite::put);
  os_.install("item", {[this](const os::TreeOptions& /*options*/, bool /*escaped*/) {
                         scheduler_.interleave(up_to(minutes(3)));
                         const std::uint64_t dice = random().below(10);
                         return dice < 7 ? 0 : dice < 9 ? 1 : 75;
                       },
                       [] { return false; }});
  auto life = service::read_life(*store_);
  machines_office_ = std::make_unique<SimOffice>(*this, **life, store_clock_, hosts_["h0"].anchors);
  for (const std::string name : {"s0", "s1"}) {
    SimClock& clock = scheduler_.make_clock();
    machines_.push_back(std::make_unique<SimMachine>(
        SimGround{scheduler_, *store_, machines_office_->served, *laws_}, clock, slot_truth_, name,
        jobs(), SimMachine::Chances{}));
    scheduler_.add(*machines_.back(), clock);
  }
}

// ---- proxies

void SimSite::guard_texts() {
  auto office = open_office();
  if (!office) return;
  const SimProcess& process = *scheduler_.process();
  auto signals = os::Signals::make();
  app::ProxyRun run;
  run.proxy.listen = {"front", 8000};
  run.proxy.upstream = {"application", 80};
  run.proxy.drain = options_.hasty ? Millis(0) : SimNet::kDrain;
  run.proxy.warn = options_.warn;
  run.proxy.limits.answer_time = seconds(10);  // shorter than the application may take
  run.owner = Owner::parse(process.name).value();
  run.say = [this](const std::string& line) { note(cat(scheduler_.process()->name, ": ", line)); };
  const auto end = app::run_proxy({office->leases, office->fences, office->ledger}, process.clock(),
                                  random(), *signals, run);
  note(cat(process.name, " admitted: ", end ? end->trouble : end.error().message));
  scheduler_.interleave(seconds(1));
}

// ---- queue

void SimSite::work() {
  auto office = open_office();
  if (!office) return;
  const SimProcess& process = *scheduler_.process();
  auto signals = os::Signals::make();
  queue::WorkRequest request{.queue = the_queue(),
                             .owner = Owner::parse(process.name).value(),
                             .with = {},
                             .terms = {},
                             .grace = {},
                             .command = {"item"},
                             .give_up = {}};
  if (random().below(3) == 0) {
    request.with = ResourceName::parse("shared").value();
    request.terms.ttl = seconds(40);
  }
  const queue::WorkHooks hooks{
      .payload_file = [](const api::ClaimedItem&) { return Result<std::string>("/dev/null"); },
      .environment = [](const api::ClaimedItem&, const holder::Taken&, const std::string&,
                        MonoTime) { return Result<std::vector<std::string>>(); },
      .deadline_moved = [](MonoTime) {},
      .say = [](const std::string&) {}};
  const auto end = queue::work(office->queue, office->leases, process.clock(), random(), *signals,
                               request, hooks);
  note(cat(process.name, " worked: ",
           end ? std::to_string(end->completed) : std::string(word(end.error().code))));
  scheduler_.interleave(seconds(5));
}

void SimSite::put() {
  auto office = open_office();
  if (!office) return;
  while (scheduler_.alive()) {
    const std::string payload = cat("item ", turns_++);
    const Millis ttl = seconds(20) + up_to(seconds(40));
    const api::PutRequest request{
        .queue = the_queue(),
        .payload = payload,
        .unique = payload,
        .labels = {},
        .by = "p0",
        .limits = core::ItemLimits{.claim_ttl = ttl, .requeue = core::Requeue::Always},
        .create = true};
    // Asked again under the same key as long as it is not known: it is there once.
    for (int i = 0; i < 5 && scheduler_.alive(); ++i) {
      if (office->queue.put(request)) break;
      scheduler_.interleave(up_to(seconds(5)));
    }
    scheduler_.interleave(up_to(minutes(3)));
  }
}

// ---- operators

void SimSite::operate() {
  auto office = open_office();
  if (!office) return;
  while (scheduler_.alive()) {
    if (orders_.empty()) os_.drain(orders_event_);
    os_.wait({orders_event_}, std::nullopt);
    if (!scheduler_.alive() || orders_.empty()) continue;
    const SimFault order = orders_.front();
    orders_.pop_front();
    obey(*office, order);
  }
}

void SimSite::obey(SimOffice& office, const SimFault& order) {
  if (order.what.starts_with("queue_")) {
    order_item(office, order);
  } else if (order.what.starts_with("job_")) {
    order_job(office, order);
  } else {
    order_lease(office, order);
  }
}

void SimSite::order_lease(SimOffice& office, const SimFault& order) {
  const std::string by = scheduler_.process()->name;
  const std::string name = order.whom.substr(0, 2);
  const ResourceName resource = ResourceName::parse(name).value();
  if (order.what == "forget") {
    const auto floor = office.leases.forget(resource);
    note(cat(by, " forget ", name, ": ", floor ? "ok" : word(floor.error().code)));
    return;
  }
  const auto lease = office.leases.get(resource);
  if (!lease || !lease->token.issued()) return;
  const api::OrderRequest request{
      .resource = resource, .expected = lease->token, .why = "drill", .by = by};
  const auto answer =
      order.what == "transfer"
          ? office.leases.transfer(request, Owner::parse(order.whom.substr(3)).value(),
                                   std::chrono::duration_cast<Millis>(order.length) + Millis(1))
          : office.leases.revoke(request, core::Reason::Revoked);
  note(cat(by, ' ', order.what, ' ', name, ": ", told(answer)));
  if (!answer || !std::holds_alternative<api::Held>(*answer)) return;
  const Token token = std::get<api::Held>(*answer).lease.token;
  const auto reports =
      app::seal_by_order(app::guards(), resource, token, office.leases.generation(), office.fences,
                         office.ledger, scheduler_.process()->clock());
  if (!reports || !scheduler_.alive()) return;
  for (const app::SealReport& report : *reports) {
    const bool admits = report.target.starts_with("admit:");
    if (!admits && report.outcome == app::SealReport::Outcome::Sealed) {
      laws_->seal_told(cat("f", name.substr(1)), token);
    }
  }
}

void SimSite::order_item(SimOffice& office, const SimFault& order) {
  using What = core::ItemOrder::What;
  const auto items = office.queue.list({.queue = the_queue(), .state = std::nullopt, .limit = 50});
  if (!items || items->empty()) return;
  const api::QueueItem& item = (*items)[random().below(items->size())];
  core::ItemOrder wish;
  wish.what = order.what == "queue_park"      ? What::Park
              : order.what == "queue_requeue" ? What::Requeue
              : order.what == "queue_cancel"  ? What::Cancel
                                              : What::Reassign;
  wish.expected = item.item.epoch;
  wish.why = "drill";
  wish.by = scheduler_.process()->name;
  wish.id = random().id_hex();
  if (wish.what == What::Reassign) wish.to = Owner::parse("q1").value();
  const auto answer = office.queue.order(item.id, wish);
  note(cat(wish.by, ' ', order.what, ": ", answer ? "answered" : word(answer.error().code)));
}

void SimSite::order_job(SimOffice& office, const SimFault& order) {
  const core::JobRule& rule = order.whom == "often" ? jobs()[0].rule : jobs()[1].rule;
  const std::string by = scheduler_.process()->name;
  if (order.what == "job_trigger") {
    const auto added = office.slots.add(rule, std::nullopt, "");
    note(cat(by, " trigger: ", added ? "ok" : word(added.error().code)));
    return;
  }
  const auto paused = office.slots.pause(rule, by);
  note(cat(by, " pause: ", paused ? "ok" : word(paused.error().code)));
  scheduler_.interleave(order.length);
  for (int i = 0; i < 50 && scheduler_.alive(); ++i) {
    if (office.slots.resume(rule, by)) return;
    scheduler_.interleave(seconds(2));
  }
}

// ---- the end

void SimSite::check_the_end() {
  for (const std::string resource : {"r0", "r1"}) {
    laws_->got_on(laws_->grants_of(resource) > before_calm_[resource], resource);
  }
  for (const std::string file : {"f0", "f1"}) {
    laws_->got_on(laws_->version_of(file) > before_calm_[file], file);
  }
  if (plan_.scene != SimScene::Everything) return;
  laws_->got_on(items_ > before_calm_["items"], "the queue");
  SlotStates states;
  const WallTime begun = wall_from_ms(1'790'000'000'000) + Millis(minutes(10));
  for (const schedule::JobConfig& job : jobs()) {
    slots_ +=
        account_for_slots(machines_.front()->slots(), job, begun, slot_truth_, *laws_, states);
  }
}

}  // namespace stint::test
