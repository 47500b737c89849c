#include "probe/torture.h"

#include "base/text.h"

namespace stint::probe {
namespace {

class TortureClient {
 public:
  TortureClient(const TorturePlan& plan, const std::string& name, const TortureWorld& world)
      : plan_(plan),
        name_(name),
        world_(world),
        leases_(world.leases, world.history, name, world.clock),
        full_(static_cast<std::size_t>(plan.resources), 0) {}

  void turn() {
    const int number = static_cast<int>(below(static_cast<std::uint64_t>(plan_.resources)));
    const auto grip = acquire(number);
    if (grip) {
      work(*grip, number);
      end(*grip);
      if (one_in(2)) late_ = Late{*grip, number, work_on_, worked_at_};
    } else {
      nap(5 + below(40));
    }
    if (late_ && one_in(3)) write_late();
  }

 private:
  // A lease that is over, with what was read under it.
  struct Late {
    api::Grip grip;
    int number = 0;
    std::optional<std::vector<TargetLine>> lines;
    std::string key;
  };

  std::uint64_t below(std::uint64_t bound) { return world_.random.below(bound); }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  void nap(std::uint64_t ms) { world_.pause(Millis(static_cast<std::int64_t>(ms))); }

  std::optional<api::Grip> acquire(int number) {
    const auto resource = ResourceName::parse(resource_of(plan_, number));
    const auto owner = Owner::parse(name_);
    if (!resource || !owner) return std::nullopt;
    const api::AcquireRequest request{.resource = *resource,
                                      .owner = *owner,
                                      .claim = Claim::make(world_.random),
                                      .terms = {.ttl = plan_.ttl},
                                      .note = {},
                                      .retake = {},
                                      .count_refusal = false};
    // An unknown one is asked for again with the same claim; now and then it is left unknown.
    for (int tries = one_in(4) ? 1 : 5; tries > 0 && !world_.stop(); --tries) {
      const auto answer = leases_.acquire(request);
      if (answer) {
        const auto* granted = std::get_if<api::Granted>(&*answer);
        if (granted == nullptr) return std::nullopt;
        return api::Grip{.resource = *resource,
                         .token = granted->lease.token,
                         .claim = request.claim,
                         .owner = *owner,
                         .hint = granted->hint};
      }
      nap(20);
    }
    return std::nullopt;
  }

  HistoryEvent begin(std::string_view verb, const api::Grip& grip, const std::string& target,
                     const std::string& key = {}) {
    HistoryEvent event;
    event.op = world_.history.next_op(name_);
    event.client = name_;
    event.verb = verb;
    event.resource = grip.resource.text();
    event.token = grip.token;
    event.target = target;
    event.key = key;
    event.local = world_.clock.mono().time_since_epoch();
    world_.history.write(event);
    return event;
  }
  void answered(HistoryEvent event, const TargetAnswer& answer) {
    event.phase = answer.phase;
    event.cause = answer.cause;
    event.local = world_.clock.mono().time_since_epoch();
    world_.history.write(event);
  }

  // Seals and reads the first target of the resource that is not full. False: fenced, or unknown.
  bool enter(const api::Grip& grip, int number) {
    std::size_t& full = full_[static_cast<std::size_t>(number)];
    for (;; ++full) {
      target_ = target_of(number, full);
      const TargetAnswer sealed = seal(grip);
      if (sealed.phase != Phase::Ok) return false;
      if (one_in(20)) nap(below(static_cast<std::uint64_t>(plan_.ttl.count()) * 3 / 2));
      HistoryEvent event = begin(verbs::kRead, grip, target_);
      const auto body = world_.targets.read(target_);
      if (!body) {
        answered(event, {Phase::Info, body.error().message});
        return false;
      }
      work_on_ = parse_target(*body);
      if (work_on_ && !work_on_->empty()) {
        event.version = work_on_->back().version;
        event.key = work_on_->back().key;
      }
      answered(event, {Phase::Ok, work_on_ ? "" : "torn"});
      if (!work_on_) return false;
      if (work_on_->size() < plan_.lines) return true;
    }
  }

  TargetAnswer seal(const api::Grip& grip) {
    const HistoryEvent event = begin(verbs::kSeal, grip, target_);
    TargetAnswer sealed = world_.targets.seal(target_, grip);
    answered(event, sealed);
    return sealed;
  }

  // One more line under what was read. False: no more writes under this token.
  bool write(const api::Grip& grip, std::vector<TargetLine>& lines, const std::string& target) {
    const TargetLine line{.version = lines.size() + 1,
                          .token = grip.token,
                          .client = name_,
                          .key = cat(name_, ".", ++writes_)};
    std::string body;
    for (const TargetLine& one : lines) body += to_text(one);
    body += to_text(line);
    HistoryEvent event = begin(verbs::kWrite, grip, target, line.key);
    const TargetAnswer answer = world_.targets.write(target, body, grip);
    if (answer.phase == Phase::Ok) event.version = line.version;
    answered(event, answer);
    if (answer.phase == Phase::Ok) lines.push_back(line);
    return answer.phase == Phase::Ok;
  }

  void work(const api::Grip& grip, int number) {
    work_on_.reset();
    if (!enter(grip, number)) {
      work_on_.reset();
      return;
    }
    worked_at_ = target_;
    for (std::uint64_t rounds = below(5); rounds > 0 && !world_.stop(); --rounds) {
      const auto ttl = static_cast<std::uint64_t>(plan_.ttl.count());
      nap(one_in(10) ? below(ttl * 3 / 2) : below(12));  // now and then too late
      const auto renewed = leases_.renew(grip, plan_.ttl);
      // Whatever the answer was: it is the guard that must hold.
      if (!write(grip, *work_on_, target_)) {
        work_on_.reset();
        return;
      }
      if (!renewed && one_in(2)) static_cast<void>(leases_.check(grip));
    }
  }

  void end(const api::Grip& grip) {
    const std::uint64_t dice = below(20);
    const api::OrderRequest order{
        .resource = grip.resource, .expected = grip.token, .why = "torture", .by = name_};
    if (dice == 0) return;  // walks away: it runs out
    if (dice == 1) {
      static_cast<void>(leases_.revoke(order));
    } else if (dice == 2) {
      static_cast<void>(leases_.transfer(order, *grip.owner, plan_.ttl));
    } else {
      static_cast<void>(leases_.release(grip));
    }
  }

  // The zombie's write: under a lease that is over, on top of what was read then.
  void write_late() {
    if (late_->lines) write(late_->grip, *late_->lines, late_->key);
    late_.reset();
  }

  const TorturePlan& plan_;
  const std::string name_;
  const TortureWorld& world_;
  RecordedLeases leases_;
  std::vector<std::size_t> full_;  // targets of each resource that are
  std::string target_;             // that is worked at
  std::string worked_at_;          // the target of `work_on_`
  std::optional<std::vector<TargetLine>> work_on_;
  std::optional<Late> late_;
  std::uint64_t writes_ = 0;
};

}  // namespace

std::string to_text(const TargetLine& line) {
  return cat(line.version, " ", line.token.number(), " ", line.client, " ", line.key, "\n");
}

std::optional<std::vector<TargetLine>> parse_target(std::string_view body) {
  std::vector<TargetLine> out;
  if (!body.empty() && body.back() != '\n') return std::nullopt;
  while (!body.empty()) {
    const auto end = body.find('\n');
    const auto words = split(body.substr(0, end), ' ');
    body.remove_prefix(end + 1);
    const auto version = words.size() == 4 ? parse_digits(words[0]) : std::nullopt;
    const auto token = words.size() == 4 ? parse_digits(words[1]) : std::nullopt;
    if (!version || !token) return std::nullopt;
    out.push_back({*version, Token(*token), std::string(words[2]), std::string(words[3])});
  }
  return out;
}

std::vector<HistoryEvent> landed_events(const std::string& resource, const std::string& target,
                                        const std::vector<TargetLine>& lines) {
  std::vector<HistoryEvent> out;
  HistoryEvent event;
  event.phase = Phase::Ok;
  event.verb = verbs::kLanded;
  event.resource = resource;
  event.target = target;
  event.op = cat("landed/", target);
  out.push_back(event);
  for (const TargetLine& line : lines) {
    event.op = cat("landed/", target, "/", line.version, "/", line.key);
    event.token = line.token;
    event.key = line.key;
    event.version = line.version;
    event.client = line.client;
    out.push_back(event);
  }
  return out;
}

std::string resource_of(const TorturePlan& plan, int number) { return cat(plan.prefix, number); }

std::string target_of(int resource, std::size_t number) {
  return cat("target-", resource, "-", number);
}

void torture_client(const TorturePlan& plan, const std::string& name, const TortureWorld& world) {
  TortureClient client(plan, name, world);
  while (!world.stop()) client.turn();
}

}  // namespace stint::probe
