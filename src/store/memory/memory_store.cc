#include "store/memory/memory_store.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "os/fd.h"
#include "store/append_key.h"
#include "store/steps.h"

namespace stint::store {

struct MemoryWatches {
  Mutex mutex;
  struct Registered {
    std::string key;
    os::EventFd event;
  };
  std::set<Registered*> all GUARDED_BY(mutex);

  void wake(const std::string& key) {
    const MutexLock lock(mutex);
    for (Registered* watch : all) {
      if (key == watch->key) watch->event.signal();
    }
  }
};

class MemoryStore::WakeUp final : public Watch {
 public:
  WakeUp(std::shared_ptr<MemoryWatches> watches, std::string_view key)
      : watches_(std::move(watches)) {
    registered_.key = key;
    const MutexLock lock(watches_->mutex);
    watches_->all.insert(&registered_);
  }
  ~WakeUp() override {
    const MutexLock lock(watches_->mutex);
    watches_->all.erase(&registered_);
  }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  int fd() const override { return registered_.event.fd(); }
  void acknowledge() override { registered_.event.drain(); }

 private:
  std::shared_ptr<MemoryWatches> watches_;
  MemoryWatches::Registered registered_;
};

MemoryStore::MemoryStore(const Clock& clock)
    : clock_(clock),
      capabilities_{.name = "memory",
                    .clock = Capabilities::ClockKind::Monotonic,
                    .smallest_ttl = Millis(1),
                    .ttl_grain = Millis(1),
                    .step = Millis(1),
                    .failover_restarts_timers = false,
                    .durable = false,
                    .relaxed_renewals = true,
                    .may_lose = "everything, with the process"},
      opening_{.created = true, .prolonged = std::nullopt},
      watches_(std::make_shared<MemoryWatches>()) {}

MemoryStore::~MemoryStore() = default;

Reading MemoryStore::reading(MonoTime now) const {
  return {.entries = {}, .store_wall = clock_.wall(), .store_time = now.time_since_epoch()};
}

Entry MemoryStore::entry(const std::string& key, MonoTime now) const {
  Entry out;
  out.key = key;
  const auto found = records_.find(key);
  if (found == records_.end()) return out;
  const Record& record = found->second;
  out.value = record.value;
  out.version = record.version;
  if (record.fires_at) {
    // Rounded up: a timer never shows less than it has.
    out.timer.state = now < *record.fires_at ? TimerState::Running : TimerState::Fired;
    out.timer.remaining = std::chrono::ceil<Millis>(*record.fires_at - now);
    out.timer.ttl = record.ttl;
  }
  return out;
}

TimerState MemoryStore::timer_state(const std::string& key, MonoTime now) const {
  const auto found = records_.find(key);
  if (found == records_.end() || !found->second.fires_at) return TimerState::None;
  return now < *found->second.fires_at ? TimerState::Running : TimerState::Fired;
}

Result<Reading> MemoryStore::read(const std::vector<std::string>& keys) {
  const MutexLock lock(mutex_);
  const MonoTime now = clock_.mono();
  Reading out = reading(now);
  for (const std::string& key : keys) out.entries.push_back(entry(key, now));
  return out;
}

Result<Reading> MemoryStore::scan(const ScanRange& range) {
  const MutexLock lock(mutex_);
  const MonoTime now = clock_.mono();
  Reading out = reading(now);
  // Everything that begins with the prefix stands below the prefix with its highest successor.
  const std::string end = range.prefix + "\xFF";
  auto first = records_.lower_bound(range.prefix);
  auto last = records_.lower_bound(end);
  const bool within = range.prefix <= range.after && range.after < end;
  if (within && !range.backwards) first = records_.upper_bound(range.after);
  if (within && range.backwards && !range.after.empty()) last = records_.lower_bound(range.after);
  const bool beyond =
      range.backwards ? !range.after.empty() && range.after < range.prefix : range.after >= end;
  if (beyond) return out;
  for (auto at = range.backwards ? last : first; out.entries.size() < range.limit;) {
    if (range.backwards ? at == first : at == last) break;
    if (range.backwards) --at;
    out.entries.push_back(entry(at->first, now));
    if (!range.backwards) ++at;
  }
  return out;
}

bool MemoryStore::holds(const Step& step, MonoTime now) const {
  const auto found = records_.find(step.key);
  const Version version = found == records_.end() ? 0 : found->second.version;
  if (!finds_expected(step, version)) return false;
  return !step.demand || *step.demand == timer_state(step.key, now);
}

std::string MemoryStore::next_key(const std::string& prefix) const {
  auto after = records_.lower_bound(append_key(prefix, 9'999'999'999'999'999));
  if (after == records_.begin()) return append_key(prefix, 1);
  --after;
  return append_key(prefix, append_number(prefix, after->first) + 1);
}

Version MemoryStore::apply(const Step& step, MonoTime now) {
  switch (step.kind) {
    case Step::Kind::Check: {
      const auto found = records_.find(step.key);
      return found == records_.end() ? 0 : found->second.version;
    }
    case Step::Kind::Remove:
      if (records_.erase(step.key) != 0) ++last_version_;
      return 0;
    case Step::Kind::Append: {
      Record& record = records_[next_key(step.key)];
      record.value = step.value;
      record.version = ++last_version_;
      return 0;
    }
    case Step::Kind::Set:
    case Step::Kind::Touch: break;
  }
  Record& record = records_[step.key];
  if (step.kind == Step::Kind::Set) {
    record.value = step.value;
    record.version = ++last_version_;
  }
  switch (step.timer) {
    case Step::TimerOp::Keep: break;
    case Step::TimerOp::Stop: record.fires_at.reset(); break;
    case Step::TimerOp::Start:
      record.fires_at = now + step.ttl;
      record.ttl = step.ttl;
      break;
    case Step::TimerOp::Extend:
      if (record.fires_at && *record.fires_at > now + step.ttl) break;
      record.fires_at = now + step.ttl;
      record.ttl = step.ttl;
      break;
  }
  return record.version;
}

Result<CommitAnswer> MemoryStore::commit(const std::vector<Step>& steps, Sync /*sync*/) {
  if (auto ok = check_sizes(steps); !ok) return ok.error();
  Committed done;
  {
    const MutexLock lock(mutex_);
    const MonoTime now = clock_.mono();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!holds(steps[i], now)) return CommitAnswer(Conflict{i});
    }
    for (const Step& step : steps) {
      done.versions.push_back(apply(step, now));
      done.granted_ttl.push_back(step.ttl);
    }
    done.revision = last_version_;
    done.store_wall = clock_.wall();
    done.store_time = now.time_since_epoch();
  }
  for (const Step& step : steps) {
    const bool changed = step.kind != Step::Kind::Check && step.kind != Step::Kind::Touch;
    if (changed) watches_->wake(step.key);
  }
  return CommitAnswer(done);
}

MemoryStore::Image MemoryStore::image() const {
  const MutexLock lock(mutex_);
  return {records_, last_version_};
}

void MemoryStore::restore(const Image& image, Version ahead) {
  const MutexLock lock(mutex_);
  records_ = image.records;
  last_version_ = image.last_version + ahead;
}

Result<std::unique_ptr<Watch>> MemoryStore::watch(std::string_view key) {
  return std::unique_ptr<Watch>(std::make_unique<WakeUp>(watches_, key));
}

Result<std::uint64_t> MemoryStore::appended(const std::string& prefix) {
  const MutexLock lock(mutex_);
  const auto first = records_.lower_bound(prefix);
  return static_cast<std::uint64_t>(std::distance(first, records_.lower_bound(prefix + "\xFF")));
}

Result<std::uint64_t> MemoryStore::revision() {
  const MutexLock lock(mutex_);
  return last_version_;
}

}  // namespace stint::store
