// The verbs on leases. Implemented by service/ on a store, and by client/ over HTTP.
//
// Each answer is one of: done, refused with who and until when (values), a fault (Error), or
// Code::UnknownOutcome: sent, no answer. Thread safety: any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/lease.h"
#include "api/once.h"
#include "base/result.h"
#include "base/watch.h"

namespace stint::api {

struct AcquireRequest {
  ResourceName resource;
  Owner owner;
  Claim claim;
  core::Terms terms;
  std::string note;
  std::optional<Claim> retake;
  bool count_refusal = true;  // false: the caller records what became of it
  std::optional<Once> once = std::nullopt;
};

// What a holder shows.
struct Grip {
  ResourceName resource;
  Token token;
  Claim claim;
  std::optional<Owner> owner;  // given: must match too
  std::optional<Hint> hint;
  std::optional<Once> once = std::nullopt;  // never of renew and check
};

struct OrderRequest {
  ResourceName resource;
  Token expected;
  std::string why;
  std::string by;
  std::optional<Once> once = std::nullopt;
};

struct Page {
  std::string prefix;
  std::string after;
  std::size_t limit = 1000;
};

class Leases {
 public:
  virtual ~Leases() = default;

  virtual Result<AcquireAnswer> acquire(const AcquireRequest& request) = 0;
  virtual Result<HoldAnswer> renew(const Grip& grip, Millis ttl) = 0;
  // One answer a grip. REQUIRES: no resource twice.
  virtual std::vector<Result<HoldAnswer>> renew_many(const std::vector<Grip>& grips, Millis ttl) {
    std::vector<Result<HoldAnswer>> out;
    for (const Grip& grip : grips) out.push_back(renew(grip, ttl));
    return out;
  }
  virtual Result<HoldAnswer> release(const Grip& grip, bool fence) = 0;
  // The holder's own end of a run that shows no progress.
  virtual Result<HoldAnswer> stall(const Grip& grip) = 0;
  virtual Result<HoldAnswer> check(const Grip& grip) = 0;
  virtual Result<HoldAnswer> progress(const Grip& grip, const std::string& marker) = 0;

  // ttl: of the reservation; zero: the lease's own.
  virtual Result<HoldAnswer> transfer(const OrderRequest& order, const Owner& to, Millis ttl) = 0;
  virtual Result<HoldAnswer> revoke(const OrderRequest& order, core::Reason reason) = 0;

  virtual Result<Lease> get(const ResourceName& resource) = 0;
  virtual Result<std::vector<Lease>> list(const Page& page) = 0;
  // Newest first, at most `limit`.
  virtual Result<std::vector<PastGrant>> history(const ResourceName& resource,
                                                 std::size_t limit) = 0;
  // Drops the record of a free resource by raising the floor to its token. Returns the new floor.
  virtual Result<Token> forget(const ResourceName& resource) = 0;

  // Wakes when the resource's records change.
  virtual Result<std::unique_ptr<Watch>> watch(const ResourceName& resource) = 0;

  virtual const Generation& generation() const = 0;
  virtual Millis smallest_ttl() const = 0;
};

}  // namespace stint::api
