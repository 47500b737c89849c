// What the server counts, as Prometheus reads it. Thread safety: any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/events.h"
#include "api/lease.h"
#include "api/queue.h"
#include "base/mutex.h"
#include "base/time.h"
#include "core/fence.h"
#include "core/slots.h"
#include "server/held_book.h"

namespace stint::server {

class Histogram {
 public:
  void observe(Nanos time);
  void write(std::string& out, std::string_view name, std::string_view help) const;

 private:
  static constexpr std::array<double, 14> kBounds = {
      0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 120};
  std::array<std::atomic<std::uint64_t>, kBounds.size() + 1> counts_{};
  std::atomic<std::int64_t> sum_{0};  // nanoseconds
};

class Metrics {
 public:
  // `by_key`: whether reserve() is asked.
  Metrics(const Clock& clock, bool by_key) : clock_(clock), by_key_(by_key) {}

  void acquired(const api::AcquireAnswer& answer);
  void renewed(const api::HoldAnswer& answer);
  void released(const api::HoldAnswer& answer);
  void other_hold(const api::HoldAnswer& answer);
  void ordered(const api::HoldAnswer& answer);  // an operator's revoke or transfer
  void fenced(core::Verdict verdict);
  void answered(int status);
  void denied(std::string_view reason);
  void event(const api::Event& event);  // that a client has told
  void slot_ended(core::SlotState state);

  Histogram store_time;    // how long a call of the store took
  Histogram request_time;  // from head to answer
  std::atomic<std::int64_t> waiters{0};
  std::atomic<std::int64_t> claims_waiting{0};
  std::atomic<std::int64_t> streams{0};
  std::atomic<std::int64_t> queued{0};
  std::atomic<std::uint64_t> vanished{0};  // who waited and went

  struct Facts {
    std::size_t connections = 0;
    std::string version;
    std::string generation;
    std::vector<std::pair<std::string, api::QueueCounts>> queues;
    api::QueueTraffic traffic;
  };
  std::string text(const Facts& facts);

  // Places among the leases that the key may hold through this server, for as long as it lives.
  class Places;
  // Null: with these it would be more than `most`. For the limit alone. It must not outlive this.
  std::shared_ptr<Places> reserve(const std::string& key, std::vector<std::string> wanted,
                                  std::size_t most);

 private:
  // What this server has seen of a lease: to tell slack and hand-off. Nothing rests on it.
  struct Seen {
    Token token;
    MonoTime until{};
    MonoTime ended{};  // zero: it stands
  };
  void count(std::string_view family, std::string label, std::uint64_t by = 1);
  void lost(const api::Lost& lost);
  Seen* seen(const std::string& resource) REQUIRES(mutex_);
  void note_held(const api::Lease& lease, MonoTime until, MonoTime now) REQUIRES(mutex_);

  const Clock& clock_;
  const bool by_key_;
  Histogram slack_;
  Histogram hand_off_;
  mutable Mutex mutex_;
  std::map<std::string, std::map<std::string, std::uint64_t>, std::less<>> counted_
      GUARDED_BY(mutex_);
  std::map<std::string, Seen> seen_ GUARDED_BY(mutex_);
  HeldBook held_ GUARDED_BY(mutex_);
};

class Metrics::Places {
 public:
  Places(Metrics& metrics, std::string key, std::vector<std::string> wanted)
      : metrics_(metrics), key_(std::move(key)), wanted_(std::move(wanted)) {}
  ~Places() {
    const MutexLock lock(metrics_.mutex_);
    metrics_.held_.give_up(key_, wanted_);
  }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

 private:
  Metrics& metrics_;
  const std::string key_;
  const std::vector<std::string> wanted_;
};

}  // namespace stint::server
