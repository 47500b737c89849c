#include "store/sqlite/batch.h"

#include <algorithm>

#include "store/append_key.h"

namespace stint::store {
namespace {

// Whatever the row is, the step does the same: nothing to look at.
bool blind(const Step& step) {
  if (step.expect != Expect::Any || step.demand) return false;
  switch (step.kind) {
    case Step::Kind::Append:
    case Step::Kind::Remove: return true;
    case Step::Kind::Check:
    case Step::Kind::Touch: return false;
    case Step::Kind::Set:
      return step.timer == Step::TimerOp::Start || step.timer == Step::TimerOp::Stop;
  }
  return false;
}

}  // namespace

Status Batch::begin(Nanos now, WallTime wall) {
  base_ = cache_.present();
  if (base_) changes_.state = cache_.writer(*base_);
  if (!changes_.state.mark) {
    auto read = read_mark(db_);
    if (!read) return read.error();
    changes_.state.mark = *read;
  }
  mark_ = *changes_.state.mark;
  mark_.last = std::max(mark_.last, now);
  moment_.emplace(boots_, mark_.last);
  wall_ = wall;
  return {};
}

Result<Row> Batch::look(const std::string& key) {
  if (const auto own = changes_.rows.find(key); own != changes_.rows.end()) return own->second;
  if (base_ && !changes_.unseen.contains(key)) {
    if (auto cached = cache_.find(key)) return std::move(*cached);
  }
  auto row = find_row(db_, key);
  if (row) changes_.rows.emplace(key, *row);
  return row;
}

Result<std::optional<Conflict>> Batch::first_conflict(const std::vector<Step>& steps,
                                                      std::vector<Row>& rows) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (blind(steps[i])) continue;
    auto row = look(steps[i].key);
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
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto version = write(steps[i], rows[i], !blind(steps[i]));
    if (!version) return version.error();
    wrote |= steps[i].kind != Step::Kind::Check;
    done.versions.push_back(*version);
    done.granted_ttl.push_back(steps[i].ttl);
  }
  wrote_ |= wrote;
  done.revision = mark_.seq;
  done.store_wall = wall_;
  done.store_time = moment_->now();
  return CommitAnswer(std::move(done));
}

Result<Version> Batch::write(const Step& step, const Row& row, bool looked) {
  Status written;
  Version version = row.version;
  switch (step.kind) {
    case Step::Kind::Check: break;
    case Step::Kind::Set:
      version = ++mark_.seq;
      written = put(step.key, {step.value, version, moment_->planned(step, row)}, looked);
      break;
    case Step::Kind::Touch:
      written = put(step.key, {row.value, version, moment_->planned(step, row)}, looked);
      break;
    case Step::Kind::Remove:
      ++mark_.seq;
      version = 0;
      written = remove_row(db_, step.key);
      if (looked) {
        changes_.rows.insert_or_assign(step.key, Row{});
      } else {
        changes_.rows.erase(step.key);
        changes_.unseen.insert(step.key);
      }
      break;
    case Step::Kind::Append: {
      auto number = next_number(step.key);
      if (!number) return number.error();
      version = 0;
      written =
          put_row(db_, append_key(step.key, *number), {step.value, ++mark_.seq, std::nullopt});
      break;
    }
  }
  if (!written) return written.error();
  return version;
}

Status Batch::put(const std::string& key, Row row, bool looked) {
  auto done = put_row(db_, key, row);
  if (!done) return done;
  if (looked) {
    changes_.rows.insert_or_assign(key, std::move(row));
  } else {
    changes_.rows.erase(key);
    changes_.unseen.insert(key);
  }
  return {};
}

Result<std::uint64_t> Batch::next_number(const std::string& prefix) {
  auto& newest = changes_.state.newest;
  auto found = newest.find(prefix);
  if (found == newest.end()) {
    auto last = newest_appended(db_, prefix);
    if (!last) return last.error();
    found = newest.emplace(prefix, *last).first;
  }
  return ++found->second;
}

Status Batch::finish() {
  changes_.state.mark = mark_;
  return wrote_ ? write_mark(db_, mark_) : Status();
}

void Batch::committed() {
  if (!base_ || !wrote_) return;
  if (const auto now = cache_.present()) {
    cache_.advance(*base_, *now, std::move(changes_));
  } else {
    cache_.clear();
  }
}

}  // namespace stint::store
