#include "store/sqlite/row_cache.h"

#include <atomic>

namespace stint::store {
namespace {

// Of the header: the counter of commits.
constexpr std::size_t kChangeWord = 2;
constexpr std::size_t kMostRows = 60'000;

}  // namespace

bool Stamp::follows(const Stamp& before) const {
  return words[kChangeWord] == before.words[kChangeWord] + 1;
}

void RowCache::attach(const volatile std::uint32_t* index) {
  const MutexLock lock(mutex_);
  if (index == index_) return;
  index_ = index;
  stamp_.reset();
}

void RowCache::detach() { attach(nullptr); }

bool RowCache::attached() const {
  const MutexLock lock(mutex_);
  return index_ != nullptr;
}

// There are two copies, and a writer changes the second one first: two that agree are whole.
std::optional<Stamp> RowCache::read_stamp() const {
  if (index_ == nullptr) return std::nullopt;
  Stamp first;
  Stamp second;
  const std::size_t words = first.words.size();
  for (std::size_t i = 0; i < words; ++i) first.words[i] = index_[i];
  std::atomic_thread_fence(std::memory_order_acquire);
  for (std::size_t i = 0; i < words; ++i) second.words[i] = index_[words + i];
  if (first != second) return std::nullopt;
  return first;
}

std::optional<Stamp> RowCache::present() const {
  const MutexLock lock(mutex_);
  return read_stamp();
}

bool RowCache::valid() const { return stamp_ && stamp_ == read_stamp(); }

std::optional<std::vector<Row>> RowCache::find(const std::vector<std::string>& keys) const {
  const MutexLock lock(mutex_);
  if (!valid()) return std::nullopt;
  std::vector<Row> out;
  out.reserve(keys.size());
  for (const std::string& key : keys) {
    const auto found = rows_.find(key);
    if (found == rows_.end()) return std::nullopt;
    out.push_back(found->second);
  }
  return out;
}

std::optional<Row> RowCache::find(const std::string& key) const {
  const MutexLock lock(mutex_);
  if (!valid()) return std::nullopt;
  const auto found = rows_.find(key);
  if (found == rows_.end()) return std::nullopt;
  return found->second;
}

void RowCache::put(Rows&& rows) {
  if (rows_.size() + rows.size() > kMostRows) rows_.clear();
  for (auto& [key, row] : rows) rows_.insert_or_assign(key, std::move(row));
}

void RowCache::add(const Stamp& at, Rows rows) {
  const MutexLock lock(mutex_);
  if (stamp_ != at) {
    if (read_stamp() != at) return;  // it is old already
    rows_.clear();
    writer_ = {};
    stamp_ = at;
  }
  put(std::move(rows));
}

WriterState RowCache::writer(const Stamp& at) {
  const MutexLock lock(mutex_);
  if (stamp_ == at) return writer_;
  rows_.clear();
  writer_ = {};
  stamp_ = at;
  return {};
}

void RowCache::advance(const Stamp& from, const Stamp& to, Changes changes) {
  const MutexLock lock(mutex_);
  if (stamp_ == to) return;  // somebody has read the new rows already
  if (stamp_ != from || !to.follows(from)) {
    stamp_.reset();
    rows_.clear();
    return;
  }
  for (const std::string& key : changes.unseen) rows_.erase(key);
  put(std::move(changes.rows));
  writer_ = std::move(changes.state);
  stamp_ = to;
}

void RowCache::clear() {
  const MutexLock lock(mutex_);
  stamp_.reset();
  rows_.clear();
}

}  // namespace stint::store
