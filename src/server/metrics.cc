#include "server/metrics.h"

#include <algorithm>
#include <cstdio>

#include "api/wire.h"
#include "base/text.h"

namespace stint::server {
namespace {

constexpr std::size_t kMostSeen = 65'536;

// Every family that is counted by a label: its name, the label, and what it means. All are there
// from the start, so that a rate over one never begins with its first event.
struct Family {
  std::string_view name;
  std::string_view label;
  std::string_view help;
};
constexpr std::array<Family, 10> kFamilies = {{
    {"stint_grants_total", "reason", "Leases granted, by how ownership moved."},
    {"stint_refusals_total", "reason", "Requests refused, by reason."},
    {"stint_renewals_total", "", "Renewals that took effect."},
    {"stint_releases_total", "", "Leases that their holders ended."},
    {"stint_lost_leases_total", "cause", "Answers that a lease is lost, by cause."},
    {"stint_takeovers_total", "", "Grants of a lease whose last holder had not released it."},
    {"stint_stale_writes_refused_total", "guard", "Stale writes that a guard refused, by guard."},
    {"stint_scheduled_skipped_overlap_total", "",
     "Scheduled slots that were skipped because the one before still ran."},
    {"stint_scheduled_slots_total", "state", "Scheduled slots that ended, by how."},
    {"stint_http_requests_total", "status", "Requests answered, by status."},
}};

// By the words that a target begins with; "store" is `stint admit`.
constexpr std::array<std::string_view, 7> kGuards = {"dir",      "file",  "git",  "other",
                                                     "postgres", "proxy", "store"};

std::string_view guard_of(const std::string& target) {
  const std::string scheme = target.substr(0, target.find(':'));
  if (scheme == "admit") return "store";
  if (scheme == "postgresql") return "postgres";
  const auto* known = std::ranges::find(kGuards, scheme);
  return known == kGuards.end() ? "other" : *known;
}

std::string detail(const api::Event& event, std::string_view name) {
  for (const auto& [key, value] : event.details) {
    if (key != name) continue;
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
  }
  return {};
}

// What an alarm waits for is there before it happens: an increase from nothing is none.
std::map<std::string, std::uint64_t> zeros(std::string_view family) {
  std::map<std::string, std::uint64_t> out;
  if (family == "stint_stale_writes_refused_total") {
    for (const std::string_view guard : kGuards) out.emplace(guard, 0);
    return out;
  }
  if (family != "stint_lost_leases_total") return out;
  for (const core::Cause cause : {core::Cause::Expired, core::Cause::Superseded,
                                  core::Cause::Revoked, core::Cause::Restored}) {
    out.emplace(core::word(cause), 0);
  }
  return out;
}

std::string number(double value) {
  char text[32];
  const int length = std::snprintf(text, sizeof text, "%.9g", value);
  return {text, static_cast<std::size_t>(length)};
}

void head(std::string& out, std::string_view name, std::string_view help, std::string_view type) {
  out += cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

void gauge(std::string& out, std::string_view name, std::string_view help, std::int64_t value) {
  head(out, name, help, "gauge");
  out += cat(name, " ", value, "\n");
}

std::string first_part(const std::string& owner) { return owner.substr(0, owner.find('/')); }

void write_queues(std::string& out, const Metrics::Facts& facts, WallTime now) {
  head(out, "stint_queue_items", "Items of a queue by state, counted up to 10000.", "gauge");
  for (const auto& [name, counts] : facts.queues) {
    const std::array<std::pair<std::string_view, std::size_t>, 6> states = {
        {{"ready", counts.ready},
         {"later", counts.waiting - std::min(counts.ready, counts.waiting)},
         {"claimed", counts.claimed},
         {"parked", counts.parked},
         {"failed", counts.failed},
         {"done", counts.done}}};
    for (const auto& [state, count] : states) {
      out += cat("stint_queue_items{queue=\"", name, "\",state=\"", state, "\"} ", count, "\n");
    }
  }
  head(out, "stint_queue_oldest_seconds", "Since the item that is next was put.", "gauge");
  for (const auto& [name, counts] : facts.queues) {
    const Millis age =
        counts.oldest ? std::chrono::duration_cast<Millis>(now - *counts.oldest) : Millis(0);
    out += cat("stint_queue_oldest_seconds{queue=\"", name, "\"} ",
               number(static_cast<double>(std::max<std::int64_t>(age.count(), 0)) / 1e3), "\n");
  }
  const auto counter = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    head(out, name, help, "counter");
    out += cat(name, " ", value, "\n");
  };
  counter("stint_queue_puts_total", "Items put.", facts.traffic.puts);
  counter("stint_queue_claims_total", "Claims given.", facts.traffic.claims);
  counter("stint_queue_completions_total", "Items completed.", facts.traffic.completions);
  counter("stint_queue_stale_refused_total", "Verbs refused for their epoch.", facts.traffic.stale);
  counter("stint_queue_parked_total", "Items that the janitor parked.", facts.traffic.parked);
}

bool after_unclean_end(core::Reason reason) {
  switch (reason) {
    case core::Reason::Expired:
    case core::Reason::Retaken:
    case core::Reason::Stalled: return true;
    case core::Reason::First:
    case core::Reason::Released:
    case core::Reason::Transferred:
    case core::Reason::TakenUp:
    case core::Reason::Revoked:
    case core::Reason::Cancelled:
    case core::Reason::Recovered: return false;
  }
  return false;
}

}  // namespace

void Histogram::observe(Nanos time) {
  const double seconds = std::chrono::duration<double>(time).count();
  std::size_t i = 0;
  while (i < kBounds.size() && seconds > kBounds[i]) ++i;
  counts_[i].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(time.count(), std::memory_order_relaxed);
}

void Histogram::write(std::string& out, std::string_view name, std::string_view help) const {
  head(out, name, help, "histogram");
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    below += counts_[i].load(std::memory_order_relaxed);
    out += cat(name, "_bucket{le=\"", number(kBounds[i]), "\"} ", below, "\n");
  }
  below += counts_.back().load(std::memory_order_relaxed);
  out += cat(name, "_bucket{le=\"+Inf\"} ", below, "\n", name, "_sum ",
             number(static_cast<double>(sum_.load()) / 1e9), "\n", name, "_count ", below, "\n");
}

void Metrics::count(std::string_view family, std::string label, std::uint64_t by) {
  const MutexLock lock(mutex_);
  auto found = counted_.find(family);
  if (found == counted_.end())
    found = counted_.emplace(family, std::map<std::string, std::uint64_t>()).first;
  found->second[std::move(label)] += by;
}

Metrics::Seen* Metrics::seen(const std::string& resource) {
  const auto found = seen_.find(resource);
  if (found != seen_.end()) return &found->second;
  if (seen_.size() >= kMostSeen) {
    const MonoTime now = clock_.mono();
    for (auto one = seen_.begin(); one != seen_.end();) {
      const bool over = one->second.ended != MonoTime{} || one->second.until < now;
      one = over ? seen_.erase(one) : std::next(one);
    }
    if (seen_.size() >= kMostSeen) return nullptr;
  }
  return &seen_[resource];
}

// The key fixes the first part of the owner.
void Metrics::note_held(const api::Lease& lease, MonoTime until, MonoTime now) {
  if (by_key_) held_.note(lease.resource, first_part(lease.owner.text()), until, now);
}

void Metrics::acquired(const api::AcquireAnswer& answer) {
  const auto* granted = std::get_if<api::Granted>(&answer);
  if (granted == nullptr) {
    count("stint_refusals_total",
          std::string(core::word(std::get<api::Refused>(answer).lease.state)));
    return;
  }
  if (granted->replayed) return;
  const core::Reason reason = granted->lease.reason;
  count("stint_grants_total", std::string(core::word(reason)));
  if (after_unclean_end(reason)) count("stint_takeovers_total", "");
  const MonoTime now = clock_.mono();
  const MutexLock lock(mutex_);
  note_held(granted->lease, now + granted->granted_ttl, now);
  Seen* one = seen(granted->lease.resource);
  if (one == nullptr) return;
  if (one->ended != MonoTime{} && one->token.next() == granted->lease.token) {
    hand_off_.observe(now - one->ended);
  }
  *one = {granted->lease.token, now + granted->granted_ttl, {}};
}

void Metrics::lost(const api::Lost& lost) {
  count("stint_lost_leases_total", std::string(core::word(lost.cause)));
}

void Metrics::renewed(const api::HoldAnswer& answer) {
  const auto* held = std::get_if<api::Held>(&answer);
  if (held == nullptr) return lost(std::get<api::Lost>(answer));
  count("stint_renewals_total", "");
  const MonoTime now = clock_.mono();
  const MutexLock lock(mutex_);
  note_held(held->lease, now + held->granted_ttl, now);
  Seen* one = seen(held->lease.resource);
  if (one == nullptr) return;
  if (one->token == held->lease.token && one->until > now) slack_.observe(one->until - now);
  one->token = held->lease.token;
  one->until = now + held->granted_ttl;
  one->ended = {};
}

void Metrics::released(const api::HoldAnswer& answer) {
  const auto* held = std::get_if<api::Held>(&answer);
  if (held == nullptr) return lost(std::get<api::Lost>(answer));
  if (held->replayed) return;
  count("stint_releases_total", "");
  const MutexLock lock(mutex_);
  held_.ended(held->lease.resource);
  const auto found = seen_.find(held->lease.resource);
  if (found == seen_.end() || found->second.ended != MonoTime{}) return;
  found->second.ended = clock_.mono();
}

void Metrics::other_hold(const api::HoldAnswer& answer) {
  if (const auto* no = std::get_if<api::Lost>(&answer)) lost(*no);
}

void Metrics::ordered(const api::HoldAnswer& answer) {
  const auto* done = std::get_if<api::Held>(&answer);
  if (done == nullptr) return lost(std::get<api::Lost>(answer));
  const MutexLock lock(mutex_);
  held_.ended(done->lease.resource);
}

void Metrics::fenced(core::Verdict verdict) {
  if (verdict == core::Verdict::Admitted || verdict == core::Verdict::Done) return;
  count("stint_refusals_total", std::string(api::word(verdict)));
  if (verdict == core::Verdict::Stale) count("stint_stale_writes_refused_total", "store");
}

// What holders and guards elsewhere report here.
void Metrics::event(const api::Event& event) {
  if (event.kind == "skipped_overlap") count("stint_scheduled_skipped_overlap_total", "");
  if (event.kind != "write_refused" || detail(event, "cause") != "stale") return;
  const std::string_view guard = guard_of(detail(event, "target"));
  // That one asked this server, and is counted by fenced().
  if (guard != "store") count("stint_stale_writes_refused_total", std::string(guard));
}

void Metrics::slot_ended(core::SlotState state) {
  count("stint_scheduled_slots_total", std::string(core::word(state)));
  if (state == core::SlotState::SkippedOverlap) count("stint_scheduled_skipped_overlap_total", "");
}

void Metrics::answered(int status) { count("stint_http_requests_total", cat(status)); }
void Metrics::denied(std::string_view reason) {
  count("stint_refusals_total", std::string(reason));
}

std::shared_ptr<Metrics::Places> Metrics::reserve(const std::string& key,
                                                  std::vector<std::string> wanted,
                                                  std::size_t most) {
  const MonoTime now = clock_.mono();
  {
    const MutexLock lock(mutex_);
    if (!held_.reserve(key, wanted, most, now)) return nullptr;
  }
  return std::make_shared<Places>(*this, key, std::move(wanted));
}

std::string Metrics::text(const Facts& facts) {
  std::string out;
  {
    const MutexLock lock(mutex_);
    for (const Family& family : kFamilies) {
      head(out, family.name, family.help, "counter");
      const auto found = counted_.find(family.name);
      if (family.label.empty()) {
        out += cat(family.name, " ", found == counted_.end() ? 0 : found->second.begin()->second,
                   "\n");
        continue;
      }
      std::map<std::string, std::uint64_t> values = zeros(family.name);
      if (found != counted_.end()) {
        for (const auto& [label, value] : found->second) values[label] = value;
      }
      for (const auto& [label, value] : values) {
        out += cat(family.name, "{", family.label, "=\"", label, "\"} ", value, "\n");
      }
    }
  }
  head(out, "stint_waiters_vanished_total", "Clients that went away while they waited.", "counter");
  out += cat("stint_waiters_vanished_total ", vanished.load(), "\n");
  slack_.write(out, "stint_renewal_slack_seconds", "What was left of a lease when it was renewed.");
  hand_off_.write(out, "stint_hand_off_seconds", "From a release to the next grant of the lease.");
  store_time.write(out, "stint_store_seconds", "How long calls of the store took.");
  request_time.write(out, "stint_http_request_seconds",
                     "From the head of a request to its answer.");
  gauge(out, "stint_waiters", "Acquires that are held open.", waiters.load());
  gauge(out, "stint_queue_waiters", "Claims that are held open.", claims_waiting.load());
  gauge(out, "stint_event_streams", "Event streams that are open.", streams.load());
  gauge(out, "stint_store_queue", "Requests that wait for the store.", queued.load());
  gauge(out, "stint_connections", "Connections that are open.",
        static_cast<std::int64_t>(facts.connections));
  write_queues(out, facts, clock_.wall());
  head(out, "stint_build_info", "The version that answers; always 1.", "gauge");
  out += cat("stint_build_info{version=\"", facts.version, "\",generation=\"", facts.generation,
             "\"} 1\n");
  return out;
}

}  // namespace stint::server
