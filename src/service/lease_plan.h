// From a decision of core/lease.h to the steps of one commit, and the events that go with it.
#pragma once

#include <string>
#include <vector>

#include "core/lease.h"
#include "store/seam.h"

namespace stint::service {

// A resource's records as they were read.
struct Seen {
  core::Record record;
  store::Version meta = 0;
  std::string tail_key;  // Capabilities::tail_record
  store::Version tail = 0;
  store::Version own = 0;
  store::Version alive = 0;
  store::Version work = 0;
};

// Every step expects what was seen: the versions, and that each timer still runs or has fired.
// Positions of own and alive in the result are 0 and 1.
std::vector<store::Step> plan_steps(const std::string& resource, const Seen& seen,
                                    const core::Change& change);

// The ledger's lines for what the decision did.
std::vector<store::Step> plan_events(const std::string& resource, const Seen& seen,
                                     const core::Verb& verb, const core::Decision& decision,
                                     WallTime now);

// Removes the records of a free resource and writes the meta record with the raised floor.
std::vector<store::Step> plan_forget(const std::string& resource, const Seen& seen,
                                     std::string meta, store::Version meta_version, WallTime now);

}  // namespace stint::service
