// From the steps of several commits to one file of the log: what each would do on a given state, at
// a given time of the server.
#pragma once

#include <map>

#include "store/dir/state.h"

namespace stint::store::dir {

class Plan {
 public:
  // `now` is a time that has come at the server. Timers that are started count from it, and from a
  // grain later, so that none fires early.
  Plan(const State& state, Number number, Nanos now);

  // Judged on the state as the commits before it leave it.
  Result<CommitAnswer> add(const std::vector<Step>& steps);

  const std::vector<Change>& changes() const { return changes_; }
  // The earliest end of a timer that was demanded to be running.
  const std::optional<Nanos>& valid_before() const { return valid_before_; }

 private:
  Result<Slot> look(const std::string& key) const;
  bool holds(const Step& step, const Slot& slot);
  Version apply(const Step& step, const Slot& slot);
  std::optional<StoredTimer> timer(const Step& step, const Slot& slot) const;
  Version next_version();
  void change(const std::string& key, Slot slot, bool was_appended);

  const State& state_;
  const Number number_;
  const Nanos now_;
  std::map<std::string, Slot, std::less<>> pending_;
  std::vector<Change> changes_;
  std::optional<Nanos> valid_before_;
};

// What the seam shows of a record at a time of the server.
Entry entry_of(std::string key, const Slot& slot, Nanos now);

}  // namespace stint::store::dir
