// A client of api::Leases that writes down what it does: the bridge from real verbs to the history.
//
//   RecordedLeases client(service, history, "c1", clock);
//   auto answer = client.acquire(request);
//
// Thread safety: as the Leases and the History below it; one name for each thread.
#pragma once

#include <string>

#include "api/leases.h"
#include "probe/history.h"

namespace stint::probe {

class RecordedLeases {
 public:
  // All must outlive this.
  RecordedLeases(api::Leases& leases, History& history, std::string client, const Clock& clock)
      : leases_(leases), history_(history), client_(std::move(client)), clock_(clock) {}

  Result<api::AcquireAnswer> acquire(const api::AcquireRequest& request, Token retaken = {});
  Result<api::HoldAnswer> renew(const api::Grip& grip, Millis ttl);
  Result<api::HoldAnswer> release(const api::Grip& grip);
  Result<api::HoldAnswer> check(const api::Grip& grip);
  Result<api::HoldAnswer> transfer(const api::OrderRequest& order, const Owner& to, Millis ttl);
  Result<api::HoldAnswer> revoke(const api::OrderRequest& order);

 private:
  HistoryEvent invoke(std::string_view verb, const ResourceName& resource, Token token, Token ends);
  void answered(HistoryEvent event, const Result<api::HoldAnswer>& answer, Token token);
  void failed(HistoryEvent event, const Error& error);

  api::Leases& leases_;
  History& history_;
  const std::string client_;
  const Clock& clock_;
};

}  // namespace stint::probe
