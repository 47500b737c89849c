// The records at one number of the log: what changed since the base, over the base's tables.
//
// Thread safety: none; its owner has a lock.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "store/dir/log_file.h"
#include "store/dir/table.h"
#include "store/seam.h"

namespace stint::store::dir {

using Tables = std::vector<std::shared_ptr<const Table>>;  // shared: a snapshot in the making

struct Changed {
  Slot slot;
  Number number = 0;  // of the commit that changed it last
};
using Overlay = std::map<std::string, Changed, std::less<>>;

class State {
 public:
  State() = default;
  State(Base base, Tables tables) : base_(std::move(base)), tables_(std::move(tables)) {}

  Result<Slot> look(std::string_view key) const;

  using Visit = std::function<void(std::string_view key, const Record& record)>;
  Status scan(const Store::ScanRange& range, const Visit& visit) const;

  // What takes one commit back.
  struct Undo {
    std::vector<std::pair<std::string, std::optional<Changed>>> before;
    std::map<std::string, std::uint64_t> appended;
  };
  Undo apply(const std::vector<Change>& changes, Number number);
  void take_back(Undo undo);

  // A newer base of the same log: its tables hold everything up to its number.
  void adopt(const Base& base, Tables tables);

  const Base& base() const { return base_; }
  const Tables& tables() const { return tables_; }
  const Overlay& overlay() const { return overlay_; }
  const std::map<std::string, std::uint64_t>& appended() const { return base_.appended; }

 private:
  Base base_;  // its `appended` is kept up to date
  Tables tables_;
  Overlay overlay_;
};

// Visits the newest word on every key of several tables, removals too, in key order.
Status merge(const Tables& newest_first,
             const std::function<Status(std::string_view, const Slot&)>& visit);

}  // namespace stint::store::dir
