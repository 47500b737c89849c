#include "tests/support/sim_laws.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "service/records.h"

namespace stint::test {
namespace {

constexpr std::array<std::string_view, kLaws + 1> kLawNames = {
    "",
    "token monotone",
    "token durable",
    "exclusive at the store",
    "no early expiry",
    "renew never resurrects",
    "release exact and not lost",
    "high-water monotone and durable",
    "no stale accept",
    "epoch contiguity",
    "no forged token",
    "at most one completion",
    "acknowledged is durable",
    "definite failure is failure",
    "fenced is final",
    "atomic guard",
    "slot accounting",
    "liveness",
    "self-restraint",
};

bool open(core::Standing standing) {
  return standing == core::Standing::Granted || standing == core::Standing::Reserved;
}

bool by_order(core::Reason reason) {
  switch (reason) {
    case core::Reason::Retaken:
    case core::Reason::Transferred:
    case core::Reason::TakenUp:
    case core::Reason::Revoked:
    case core::Reason::Cancelled:
    case core::Reason::Recovered: return true;
    case core::Reason::First:
    case core::Reason::Released:
    case core::Reason::Expired:
    case core::Reason::Stalled: return false;
  }
  return false;
}

bool surely_stands(const SimLaws::Stand& stand, Nanos at) {
  return open(stand.standing) && stand.ends_earliest > at;
}
bool may_stand(const SimLaws::Stand& stand, Nanos at) {
  return open(stand.standing) && stand.ends_latest > at;
}

// The resource that a key of a lease's records belongs to; empty: it is none.
std::string lease_of_key(const std::string& key) {
  for (const std::string_view prefix : {"own/", "alive/", "cap/", "rest/", "cool/"}) {
    if (key.starts_with(prefix)) return key.substr(prefix.size());
  }
  return {};
}

}  // namespace

std::string_view law_name(int number) { return kLawNames.at(static_cast<std::size_t>(number)); }

SimLaws::SimLaws(Scheduler& scheduler, store::Store& truth, const SimClock& clock)
    : scheduler_(scheduler), truth_(truth), clock_(clock) {}

void SimLaws::broken(int law, const std::string& where, std::string_view what) {
  scheduler_.problem(cat(law, " (", law_name(law), ") at '", where, "': ", what));
}

// ---- the store

std::optional<SimLaws::Stand> SimLaws::read(const std::string& resource, Nanos& now) {
  const auto reading = truth_.read({service::own_key(resource), service::alive_key(resource),
                                    service::cap_key(resource), service::rest_key(resource),
                                    service::cool_key(resource)});
  CHECK(reading, "the truth must be readable");
  now = *reading->store_time;
  const auto& entries = reading->entries;
  if (!entries[0].present()) return std::nullopt;
  const auto latest = [&](std::size_t i) { return now + *entries[i].timer.remaining; };
  const auto earliest = [&](std::size_t i) { return latest(i) - Millis(1) + Nanos(1); };
  const auto timed = [&](std::size_t i) { return entries[i].timer.state != TimerState::None; };
  const auto own = service::decode_own(entries[0].value);
  Stand out;
  out.version = entries[0].version;
  out.token = own->token;
  out.owner = own->owner.text();
  out.reason = own->reason;
  out.standing = service::decode_pulse(entries[1].value)->standing;
  if (timed(1)) {
    out.ends_earliest = earliest(1);
    out.ends_latest = latest(1);
    if (timed(2)) {
      out.ends_earliest = std::min(out.ends_earliest, earliest(2));
      out.ends_latest = std::min(out.ends_latest, latest(2));
    }
  }
  for (const std::size_t i : {std::size_t{3}, std::size_t{4}}) {
    if (timed(i)) out.rests_until = std::max(out.rests_until, earliest(i));
  }
  return out;
}

void SimLaws::observe(const std::vector<store::Step>& steps) {
  std::set<std::string> resources;
  for (const store::Step& step : steps) {
    if (step.kind == store::Step::Kind::Check) continue;
    if (std::string resource = lease_of_key(step.key); !resource.empty()) {
      resources.insert(std::move(resource));
    }
  }
  for (const std::string& resource : resources) {
    Nanos now{0};
    const auto after = read(resource, now);
    changed(resource, after, now);
  }
}

void SimLaws::went_back() {
  ++times_back_;
  seen_.clear();
  released_.clear();
  std::erase_if(targets_, [](const auto& one) { return one.first.starts_with("fence/"); });
  trusts_.clear();
  works_.clear();
  const auto all = truth_.scan({.prefix = "own/", .after = {}, .limit = 1000});
  CHECK(all, "the truth must be readable");
  for (const store::Entry& entry : all->entries) {
    Nanos now{0};
    const std::string resource = lease_of_key(entry.key);
    seen_[resource] = *read(resource, now);
  }
}

void SimLaws::changed(const std::string& resource, const std::optional<Stand>& now_stands,
                      Nanos now) {
  const auto before = seen_.find(resource);
  if (!now_stands) {
    if (before != seen_.end()) seen_.erase(before);  // forgotten; highest_ remembers
    return;
  }
  Stand after = *now_stands;
  const Stand was = before == seen_.end() ? Stand{} : before->second;
  if (before != seen_.end() && after.version == was.version) {
    check_same_owner(resource, was, after, now);
  } else {
    check_new_owner(resource, was, after, now);
  }
  seen_[resource] = after;
}

void SimLaws::check_new_owner(const std::string& resource, const Stand& before, const Stand& after,
                              Nanos now) {
  Token& highest = highest_[resource];
  const bool taken_up = after.reason == core::Reason::TakenUp;
  look(1);
  if (!suspended_ && (taken_up ? after.token != highest : after.token <= highest)) {
    broken(1, resource, cat("token ", after.token.number(), " after ", highest.number()));
  }
  if (!taken_up && !suspended_ && told_.contains(resource)) {
    look(2);
    if (after.token <= told_[resource]) {
      broken(2, resource,
             cat("token ", after.token.number(), " after ", told_[resource].number(),
                 " was acknowledged"));
    }
  }
  highest = std::max(highest, after.token);
  if (after.standing != core::Standing::Granted) return;
  ++grants_;
  look(3);
  const bool allowed =
      after.reason == core::Reason::Retaken ||
      (taken_up && before.standing == core::Standing::Reserved && before.owner == after.owner);
  if (surely_stands(before, now) && !allowed) {
    broken(3, resource, "granted while an earlier grant stands");
  }
  if (taken_up && !may_stand(before, now)) {
    broken(3, resource, "a lapsed reservation was taken up");
  }
  if (before.rests_until > now && after.reason != core::Reason::Retaken) {
    broken(3, resource, "granted while it rests");
  }
  if (after.reason == core::Reason::Expired) {
    look(4);
    if (surely_stands(before, now)) {
      broken(4, resource,
             cat("token ", before.token.number(), " expired ", (before.ends_earliest - now).count(),
                 " ns early"));
    }
  }
  granted_[resource][after.token] = after.owner;
  check_works(resource, after);
}

void SimLaws::check_same_owner(const std::string& resource, const Stand& before, Stand& after,
                               Nanos now) {
  look(5);
  if (!may_stand(before, now) && surely_stands(after, now)) {
    broken(5, resource, "revived after its end");
  }
  if (before.standing == core::Standing::Released && open(after.standing)) {
    broken(5, resource, "revived after its release");
  }
  if (!surely_stands(before, now) || !open(after.standing)) return;
  if (after.ends_latest < before.ends_earliest) broken(5, resource, "shortened");
  if (after.ends_earliest > before.ends_latest) ++renewals_;
  after.ends_earliest = std::max(after.ends_earliest, before.ends_earliest);
}

// ---- what clients are told

void SimLaws::acquired(const std::string& resource, Token token) {
  told_[resource] = std::max(told_[resource], token);
}

void SimLaws::released(const std::string& resource, Token token) {
  look(6);
  if (token > highest_[resource]) {
    broken(6, resource, cat("token ", token.number(), " was released, and never granted"));
  }
  released_[resource].try_emplace(token, scheduler_.now());
}

void SimLaws::refused(const std::string& resource, Token because, MonoTime sent) {
  const auto& released = released_[resource];
  const auto found = released.find(because);
  look(6);
  if (found == released.end() || found->second >= sent) return;
  broken(6, resource, cat("refused because of token ", because.number(), ", released before"));
}

// A loss is final: if the lease stands now it stood when the loss was told.
void SimLaws::told_lost(const std::string& resource, Token token) {
  look(13);
  const auto found = seen_.find(resource);
  if (found == seen_.end() || suspended_) return;
  const Stand& stand = found->second;
  const Nanos now = clock_.mono().time_since_epoch();
  if (stand.token != token || stand.standing != core::Standing::Granted) return;
  if (surely_stands(stand, now)) {
    broken(13, resource, cat("told that token ", token.number(), " is lost, and it stands"));
  }
}

void SimLaws::told_held(const std::string& resource, Token token) {
  look(10);
  if (!granted_[resource].contains(token)) {
    broken(10, resource, cat("token ", token.number(), " is held, it was told; nobody got it"));
  }
}

// ---- targets

void SimLaws::sealed(const std::string& name, Token token) {
  Target& target = targets_[name];
  target.high = std::max(target.high, token);
  target.sealed = std::max(target.sealed, token);
}

void SimLaws::seen(const std::string& name, const std::string& body) {
  look(15);
  if (!targets_[name].bodies.contains(body)) broken(15, name, cat("half of it was seen: ", body));
}

void SimLaws::seal_told(const std::string& name, Token token) {
  Target& target = targets_[name];
  look(7);
  if (target.high < token) broken(7, name, cat("sealed with ", token.number(), ", it was told"));
  target.told = std::max(target.told, token);
}

void SimLaws::fence_moved(const std::string& name, Token token) {
  Target& target = targets_[name];
  look(7);
  if (token < target.high && !suspended_) {
    broken(7, name, cat("fence ", token.number(), " after ", target.high.number()));
  }
  target.high = std::max(target.high, token);
}

void SimLaws::landed(const std::string& name, const Landing& landing) {
  Target& target = targets_[name];
  ++writes_;
  for (const int law : {8, 9, 10, 13, 14, 15}) look(law);
  const std::string token = std::to_string(landing.token.number());
  const Token over = landing.staged_first ? std::max(target.told, target.accepted) : target.high;
  if (landing.token < over) {
    broken(8, name, cat("a write with ", token, " after ", over.number()));
  }
  if (landing.token > target.sealed) broken(9, name, cat(token, " wrote before it had sealed"));
  if (landing.version != target.version + 1) {
    broken(9, name, cat("version ", landing.version, " over version ", target.version));
  }
  const auto& granted = granted_[landing.resource];
  if (!granted.contains(landing.token)) broken(10, name, cat(token, " was never granted"));
  if (target.refused.contains(landing.body)) broken(13, name, "a refused write is there");
  if (target.fenced.contains(landing.token)) broken(14, name, cat(token, " had been fenced"));
  if (landing.standing > landing.token && !landing.staged_first) {
    broken(15, name, cat("fence ", landing.standing.number(), " stood at a write with ", token));
  }
  target.high = std::max(target.high, landing.token);
  target.accepted = std::max(target.accepted, landing.token);
  target.version = landing.version;
  target.bodies.insert(landing.body);
}

void SimLaws::write_told(const std::string& name, const std::string& body, std::uint64_t version) {
  Target& target = targets_[name];
  look(12);
  if (!target.bodies.contains(body)) broken(12, name, "an acknowledged write never landed");
  target.told_version = std::max(target.told_version, version);
}

void SimLaws::write_refused(const std::string& name, const std::string& body) {
  Target& target = targets_[name];
  look(13);
  if (target.bodies.contains(body)) broken(13, name, "a write that was refused had landed");
  target.refused.insert(body);
}

void SimLaws::fenced(const std::string& name, Token token) {
  ++stale_;
  targets_[name].fenced.insert(token);
}

void SimLaws::came_back(const std::string& name, Token fence, std::uint64_t version) {
  Target& target = targets_[name];
  look(7);
  look(12);
  if (fence < target.told) {
    broken(7, name, cat("fence ", fence.number(), " after ", target.told.number(), " was told"));
  }
  if (version < target.told_version) {
    broken(12, name, cat("version ", version, " after ", target.told_version, " was told"));
  }
  target.high = std::max(fence, target.told);
  target.accepted = std::min(target.accepted, target.high);
  target.sealed = fence;
  target.version = version;
}

void SimLaws::completed(const std::string& key, const std::string& by) {
  look(11);
  const auto [found, first] = completed_.try_emplace(key, by);
  if (!first) broken(11, key, cat("completed by ", found->second, " and by ", by));
}

void SimLaws::made(const std::string& key, const std::string& what) {
  look(11);
  const auto [found, first] = made_.try_emplace(key, what);
  if (found->second != what) broken(11, key, cat("is there as ", found->second, " and as ", what));
}

// ---- slots, liveness

void SimLaws::slot_started(const std::string& key, int attempt) {
  look(16);
  if (++starts_[{key, attempt}] > 1) broken(16, key, cat("attempt ", attempt, " started twice"));
}

void SimLaws::slot_overtook(const std::string& job) { broken(16, job, "overtook itself"); }

void SimLaws::slot_counted(const std::string& key, int times) {
  look(16);
  if (times != 1) broken(16, key, cat("accounted for ", times, " times"));
}

void SimLaws::got_on(bool did, const std::string& what) {
  look(17);
  if (!did) broken(17, what, "does not get on after the faults have stopped");
}

// ---- self-restraint

bool SimLaws::excused(const std::string& actor) const {
  const auto found = excused_.find(actor);
  return found != excused_.end() && found->second > scheduler_.now();
}

void SimLaws::excuse(const std::string& actor, MonoTime until) {
  excused_[actor] = std::max(excused_[actor], until);
}

void SimLaws::works(const std::string& actor, const std::string& resource, Token token) {
  works_[actor] = {resource, token};
}
void SimLaws::works_no_more(const std::string& actor) { works_.erase(actor); }

// Granted to another while work under an earlier token lives: only an order may do that.
void SimLaws::check_works(const std::string& resource, const Stand& after) {
  for (const auto& [actor, work] : works_) {
    if (work.first != resource || work.second >= after.token) continue;
    look(18);
    // One order, and whoever comes after it.
    const bool ordered = suspended_ || by_order(after.reason) || after.token > work.second.next();
    if (!ordered && !excused(actor)) {
      broken(18, resource, cat(actor, " still works under ", work.second.number()));
    }
  }
}

void SimLaws::trusts(const std::string& actor, const std::string& resource, Token token,
                     MonoTime until) {
  trusts_[actor] = {resource, token, until};
}
void SimLaws::trusts_nothing(const std::string& actor) { trusts_.erase(actor); }

void SimLaws::check_time() {
  for (const auto& [actor, trust] : trusts_) {
    if (scheduler_.now() >= trust.until || excused(actor)) continue;
    const auto found = seen_.find(trust.resource);
    if (found == seen_.end()) continue;
    const Stand& stand = found->second;
    // Taken away by an order, or ended by itself: it learns of that at its next renewal.
    if (stand.token != trust.token || stand.standing != core::Standing::Granted) continue;
    look(18);
    const Nanos beyond = trust.until - clock_.true_time(MonoTime(stand.ends_latest));
    if (beyond > Nanos(0)) {
      broken(18, trust.resource,
             cat(actor, " trusts token ", trust.token.number(), ' ', beyond.count(),
                 " ns beyond its end"));
    }
  }
}

}  // namespace stint::test
