// The ledger on a store: api::Events, its bounded retention, and refusals counted by the minute.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "api/events.h"
#include "api/once.h"
#include "base/mutex.h"
#include "store/seam.h"

namespace stint::service {

store::Step append_event(const api::Event& event);

class Ledger final : public api::Events {
 public:
  // Keeps about `keep` events; the oldest go first.
  Ledger(store::Store& store, const Clock& clock, std::size_t keep);
  ~Ledger() override;  // writes what is still pending
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  Result<std::vector<api::Event>> list(const api::EventQuery& query) override;
  Status record(const api::Event& event) override { return write(event, {}); }
  Status record_refusal(const api::Event& event, const std::string& target) override {
    return write_refusal(event, target, {});
  }
  // The same under an idempotency key.
  Status write(const api::Event& event, const std::optional<api::Once>& once);
  Status write_refusal(const api::Event& event, const std::string& target,
                       const std::optional<api::Once>& once);
  Result<std::unique_ptr<Watch>> watch() override;

  // Counts a refusal: one line per resource, owner, kind and minute. Never on the way to an answer:
  // flush() writes what is due: the first at once, the others when their minute is over.
  void refused(const api::Event& event);
  void flush();

  // Call after a commit that appended events: now and then removes the oldest.
  void appended(std::uint64_t revision);

 private:
  struct Counted {
    api::Event event;
    std::int64_t count = 0;      // since the last line
    bool first_written = false;  // in this minute
  };
  static api::Event line_of(const Counted& counted);
  void write_due(bool all);
  using CountKey = std::tuple<std::string, std::string, std::string>;  // resource, owner, kind

  Status trim();

  store::Store& store_;
  const Clock& clock_;
  const std::size_t keep_;
  std::atomic<bool> trimming_ = false;
  // Up to here nothing is left, and nothing comes there any more: whoever trims goes on behind it.
  std::string trimmed_to_;

  Mutex mutex_;
  std::map<CountKey, Counted> counted_ GUARDED_BY(mutex_);
  std::vector<api::Event> due_ GUARDED_BY(mutex_);  // lines of minutes that are over
};

// The ledger for one request that has an idempotency key.
class KeptEvents final : public api::Events {
 public:
  KeptEvents(Ledger& ledger, api::Once once) : ledger_(ledger), once_(std::move(once)) {}
  Result<std::vector<api::Event>> list(const api::EventQuery& query) override {
    return ledger_.list(query);
  }
  Status record(const api::Event& event) override { return ledger_.write(event, once_); }
  Status record_refusal(const api::Event& event, const std::string& target) override {
    return ledger_.write_refusal(event, target, once_);
  }
  Result<std::unique_ptr<Watch>> watch() override { return ledger_.watch(); }

 private:
  Ledger& ledger_;
  const std::optional<api::Once> once_;
};

}  // namespace stint::service
