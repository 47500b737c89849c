// What a store may offer besides the seam: several independent commits of one caller, done
// together, with one disk sync for all of them. A store that does not offer it is asked for one at
// a time.
#pragma once

#include <vector>

#include "store/seam.h"

namespace stint::store {

struct Proposal {
  std::vector<Step> steps;
  Sync sync = Sync::Durable;
};

class ManyCommits {
 public:
  virtual ~ManyCommits() = default;
  // Each is all or nothing by itself, and answered by itself, as commit() would.
  virtual std::vector<Result<CommitAnswer>> commit_many(const std::vector<Proposal>& proposals) = 0;
};

}  // namespace stint::store
