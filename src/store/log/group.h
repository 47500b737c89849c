// Commits that are written together.
//
//   Group group(boots);
//   group.begin(...)
//   group.apply(steps, durable, wrote) ...   each sees what the ones before it did
//   writer.write(group.drafts(), ...)
//   group.take_over(table, newest)           now everybody sees it
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/log/table.h"
#include "store/log/writer.h"
#include "store/moment.h"
#include "store/seam.h"

namespace stint::store::log {

// At every further boot: what a power cut took was given out once, and versions go on beyond it.
constexpr Version kVersionsAhead = 1U << 20U;
// Does not jump with the versions: that it is lower than before is how a restored copy is noticed.
inline std::uint64_t revision_of(const Mark& mark, const Boots& boots) {
  return mark.seq - kVersionsAhead * (boots.size() - 1);
}

class Group {
 public:
  using Newest = std::map<std::string, std::uint64_t, std::less<>>;
  explicit Group(const Boots& boots) : boots_(boots) {}

  // Both stay as they are until take_over().
  void begin(const Table& table, const Newest& newest, const Mark& mark, Nanos now, WallTime wall);
  // `wrote` is set where something is to be written.
  CommitAnswer apply(const std::vector<Step>& steps, bool durable, bool& wrote);

  // An entry of another kind.
  void add(std::string&& body, bool durable);

  const std::vector<Draft>& drafts() const { return drafts_; }
  bool wants_sync() const { return wants_sync_; }
  std::size_t bytes() const { return bytes_; }
  const Mark& mark() const { return mark_; }
  void take_over(Table& table, Newest& newest);

 private:
  const Row& look(const std::string& key) const;
  // The version that the record has afterwards.
  Version write(const Step& step, std::string& body);
  void put(std::string&& key, Row&& row, std::string& body);
  std::uint64_t next_number(const std::string& prefix);

  const Boots& boots_;
  const Table* table_ = nullptr;
  const Newest* given_ = nullptr;
  std::optional<Moment> moment_;
  WallTime wall_{};
  Mark mark_;
  std::unordered_map<std::string, Row> changes_;
  Newest newest_;
  std::vector<Draft> drafts_;
  std::size_t bytes_ = 0;
  bool wants_sync_ = false;
};

}  // namespace stint::store::log
