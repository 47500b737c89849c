#include "store/sqlite/batch.h"

#include <algorithm>

#include "os/random.h"
#include "store/append_key.h"

namespace stint::store {

Status Batch::begin(Nanos now, WallTime wall) {
  auto base = view_.base(db_);
  if (!base) return base.error();
  base_ = *base;
  done_.mark = base_.mark;
  done_.mark.last = std::max(base_.mark.last, now);
  moment_.emplace(boots_, done_.mark.last);
  wall_ = wall;
  return {};
}

Result<Row> Batch::look(const std::string& key, View::Part part) {
  if (const auto own = done_.changes.find(key); own != done_.changes.end()) return own->second;
  if (auto known = view_.known(key, part)) return std::move(*known);
  if (const auto read = from_table_.find(key); read != from_table_.end()) return read->second;
  auto row = find_row(db_, key);
  if (row) from_table_.emplace(key, *row);
  return row;
}

Result<std::optional<Conflict>> Batch::first_conflict(const std::vector<Step>& steps,
                                                      std::vector<Row>& rows) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (blind(steps[i])) continue;
    // A touch writes the value again; all others bring their own, or none.
    const bool whole = steps[i].kind == Step::Kind::Touch;
    auto row = look(steps[i].key, whole ? View::Part::Whole : View::Part::Head);
    if (!row) return row.error();
    if (!moment_->holds(steps[i], *row)) return std::optional<Conflict>(Conflict{i});
    rows[i] = std::move(*row);
  }
  return std::optional<Conflict>();
}

Result<CommitAnswer> Batch::apply(const std::vector<Step>& steps, bool& wrote) {
  std::vector<Row> rows(steps.size());
  auto conflict = first_conflict(steps, rows);
  if (!conflict) return conflict.error();
  if (*conflict) return CommitAnswer(**conflict);
  Committed done;
  done.versions.reserve(steps.size());
  done.granted_ttl.reserve(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto version = write(steps[i], rows[i]);
    if (!version) return version.error();
    wrote |= steps[i].kind != Step::Kind::Check;
    done.versions.push_back(*version);
    done.granted_ttl.push_back(steps[i].ttl);
  }
  wrote_ |= wrote;
  done.revision = done_.mark.seq;
  done.store_wall = wall_;
  done.store_time = moment_->now();
  return CommitAnswer(std::move(done));
}

Result<Version> Batch::write(const Step& step, const Row& row) {
  Recent& changes = done_.changes;
  Version& seq = done_.mark.seq;
  switch (step.kind) {
    case Step::Kind::Check: break;
    case Step::Kind::Set:
      changes.insert_or_assign(step.key, Row{step.value, ++seq, moment_->planned(step, row)});
      return seq;
    case Step::Kind::Touch:
      changes.insert_or_assign(step.key, Row{row.value, row.version, moment_->planned(step, row)});
      break;
    case Step::Kind::Remove:
      ++seq;
      changes.insert_or_assign(step.key, Row{});
      return 0;
    case Step::Kind::Append: {
      auto number = next_number(step.key);
      if (!number) return number.error();
      changes.insert_or_assign(append_key(step.key, *number), Row{step.value, ++seq, std::nullopt});
      return 0;
    }
  }
  return row.version;
}

Result<std::uint64_t> Batch::next_number(const std::string& prefix) {
  auto found = newest_.find(prefix);
  if (found == newest_.end()) {
    auto last = view_.newest(db_, prefix);
    if (!last) return last.error();
    found = newest_.emplace(prefix, *last).first;
  }
  return ++found->second;
}

Status Batch::finish(const JournalLimits& limits) {
  if (!wrote_) return {};
  os::SystemRandom random;
  const std::uint64_t mark = random.next() >> 1U;  // SQLite's numbers have a sign
  const std::uint64_t number = base_.at.top + 1;
  const std::uint64_t rows = number - base_.at.folded;
  done_.folded =
      rows > limits.rows || base_.at.bytes > limits.bytes || base_.removed > limits.removed;
  if (!done_.folded) {
    const std::string bytes = encode_journal_row(mark, done_.mark, done_.changes);
    done_.at = base_.at;
    done_.at.top = number;
    done_.at.top_mark = mark;
    done_.at.bytes += bytes.size();
    return append_row(db_, done_.at, bytes);
  }
  done_.at = {.folded = number, .folded_mark = mark, .top = number};
  return fold(db_, {view_.recent(), done_.changes}, done_.mark, done_.at);
}

void Batch::committed() {
  if (!from_table_.empty()) view_.add(base_.at, from_table_);
  if (wrote_) view_.advance(base_, std::move(done_));
}

}  // namespace stint::store
