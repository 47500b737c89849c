#include "store/log/group.h"

#include <algorithm>

#include "store/append_key.h"
#include "store/row_bytes.h"

namespace stint::store::log {

void Group::begin(const Table& table, const Newest& newest, const Mark& mark, Nanos now,
                  WallTime wall) {
  table_ = &table;
  given_ = &newest;
  mark_ = mark;
  mark_.last = std::max(mark.last, now);
  moment_.emplace(boots_, mark_.last);
  wall_ = wall;
  constexpr std::size_t kUsual = 256;
  changes_.reserve(kUsual);
}

const Row& Group::look(const std::string& key) const {
  static const Row kAbsent;
  if (const auto own = changes_.find(key); own != changes_.end()) return own->second;
  const Row* row = table_->find(key);
  return row == nullptr ? kAbsent : *row;
}

CommitAnswer Group::apply(const std::vector<Step>& steps, bool durable, bool& wrote) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (blind(steps[i])) continue;
    if (!moment_->holds(steps[i], look(steps[i].key))) return Conflict{i};
  }
  Committed done;
  done.versions.reserve(steps.size());
  done.granted_ttl.reserve(steps.size());
  std::string body;
  constexpr std::size_t kUsual = 1024;
  body.reserve(kUsual);
  body += static_cast<char>(EntryKind::Commit);
  for (const Step& step : steps) {
    done.versions.push_back(write(step, body));
    done.granted_ttl.push_back(step.ttl);
  }
  wrote = body.size() > 1;
  if (wrote) add(std::move(body), durable);
  done.revision = revision_of(mark_, boots_);
  done.store_wall = wall_;
  done.store_time = moment_->now();
  return done;
}

void Group::add(std::string&& body, bool durable) {
  bytes_ += entry_size(body.size());
  drafts_.push_back({.mark = mark_, .body = std::move(body)});
  wants_sync_ |= durable;
}

Version Group::write(const Step& step, std::string& body) {
  switch (step.kind) {
    case Step::Kind::Check: break;
    case Step::Kind::Set: {
      const Version version = ++mark_.seq;
      put(std::string(step.key), {step.value, version, moment_->planned(step, look(step.key))},
          body);
      return version;
    }
    case Step::Kind::Touch: {
      const Row& row = look(step.key);
      const Version version = row.version;
      put(std::string(step.key), {row.value, version, moment_->planned(step, row)}, body);
      return version;
    }
    case Step::Kind::Remove:
      ++mark_.seq;
      put(std::string(step.key), {}, body);
      return 0;
    case Step::Kind::Append:
      put(append_key(step.key, next_number(step.key)), {step.value, ++mark_.seq, std::nullopt},
          body);
      return 0;
  }
  return look(step.key).version;
}

void Group::put(std::string&& key, Row&& row, std::string& body) {
  pack_row(body, key, row);
  changes_.insert_or_assign(std::move(key), std::move(row));
}

std::uint64_t Group::next_number(const std::string& prefix) {
  auto found = newest_.find(prefix);
  if (found == newest_.end()) {
    const auto given = given_->find(prefix);
    const std::uint64_t last = given == given_->end() ? table_->newest(prefix) : given->second;
    found = newest_.emplace(prefix, last).first;
  }
  return ++found->second;
}

void Group::take_over(Table& table, Newest& newest) {
  for (auto& [key, row] : changes_) table.put(key, std::move(row));
  for (const auto& [prefix, number] : newest_) newest.insert_or_assign(prefix, number);
}

}  // namespace stint::store::log
