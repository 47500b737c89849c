// commit_many() for a store whose commits are combined: what one caller proposes is of one batch.
#pragma once

#include <vector>

#include "store/combiner.h"
#include "store/many.h"
#include "store/steps.h"

namespace stint::store {

// REQUIRES of Pending: members `steps`, `sync` and `answer`, in this order the first.
template <class Pending>
std::vector<Result<CommitAnswer>> commit_together(Combiner<Pending>& commits,
                                                  const std::vector<Proposal>& proposals) {
  std::vector<Pending> own;
  own.reserve(proposals.size());
  std::vector<Pending*> waiting;
  for (const Proposal& one : proposals) {
    own.push_back({.steps = one.steps, .sync = one.sync});
    if (auto ok = check_sizes(one.steps); !ok) {
      own.back().answer = ok.error();
    } else {
      waiting.push_back(&own.back());
    }
  }
  commits.run(waiting);
  std::vector<Result<CommitAnswer>> out;
  out.reserve(own.size());
  for (Pending& one : own) out.push_back(std::move(one.answer));
  return out;
}

}  // namespace stint::store
