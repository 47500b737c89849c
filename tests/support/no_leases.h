// Leases of which nothing is played: a base for those who play a verb or two.
#pragma once

#include "api/leases.h"

namespace stint::test {

class NoLeases : public api::Leases {
 public:
  Result<api::AcquireAnswer> acquire(const api::AcquireRequest&) override { return none(); }
  Result<api::HoldAnswer> renew(const api::Grip&, Millis) override { return none(); }
  Result<api::HoldAnswer> check(const api::Grip&) override { return none(); }
  Result<api::HoldAnswer> release(const api::Grip&, bool) override { return none(); }
  Result<api::HoldAnswer> stall(const api::Grip&) override { return none(); }
  Result<api::HoldAnswer> progress(const api::Grip&, const std::string&) override { return none(); }
  Result<api::HoldAnswer> transfer(const api::OrderRequest&, const Owner&, Millis) override {
    return none();
  }
  Result<api::HoldAnswer> revoke(const api::OrderRequest&, core::Reason) override { return none(); }
  Result<api::Lease> get(const ResourceName&) override { return none(); }
  Result<std::vector<api::Lease>> list(const api::Page&) override { return none(); }
  Result<std::vector<api::PastGrant>> history(const ResourceName&, std::size_t) override {
    return none();
  }
  Result<Token> forget(const ResourceName&) override { return none(); }
  Result<std::unique_ptr<Watch>> watch(const ResourceName&) override { return none(); }
  const Generation& generation() const override { return generation_; }
  Millis smallest_ttl() const override { return Millis(100); }

 private:
  static Error none() { return unavailable("not played"); }
  Generation generation_;
};

}  // namespace stint::test
