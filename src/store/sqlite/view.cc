#include "store/sqlite/view.h"

#include <algorithm>

#include "store/append_key.h"

namespace stint::store {
namespace {

// Of the header: the counter of commits.
constexpr std::size_t kChangeWord = 2;
constexpr std::size_t kMostRows = 60'000;
constexpr std::size_t kMostRanges = 1000;

// Nothing that is read after it is read before it. Not a fence: the thread sanitizer knows none.
std::uint32_t load_word(const volatile std::uint32_t& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

}  // namespace

bool Stamp::follows(const Stamp& before) const {
  return words[kChangeWord] == before.words[kChangeWord] + 1;
}

void View::attach(const volatile std::uint32_t* index) {
  const MutexLock lock(mutex_);
  if (index == index_) return;
  index_ = index;
  stamp_.reset();
}

void View::detach() { attach(nullptr); }

bool View::attached() const {
  const MutexLock lock(mutex_);
  return index_ != nullptr;
}

// There are two copies, and a writer changes the second one first: two that agree are whole.
std::optional<Stamp> View::read_stamp() const {
  if (index_ == nullptr) return std::nullopt;
  Stamp first;
  Stamp second;
  const std::size_t words = first.words.size();
  for (std::size_t i = 0; i < words; ++i) first.words[i] = load_word(index_[i]);
  for (std::size_t i = 0; i < words; ++i) second.words[i] = load_word(index_[words + i]);
  if (first != second) return std::nullopt;
  return first;
}

const Row* View::find_locked(const std::string& key) const {
  if (const auto found = asked_.find(key); found != asked_.end()) return &found->second;
  const auto found = journal_.recent.find(key);
  return found == journal_.recent.end() ? nullptr : &found->second;
}

std::optional<std::vector<Row>> View::find(const std::vector<std::string>& keys) const {
  const MutexLock lock(mutex_);
  if (!stamp_ || stamp_ != read_stamp()) return std::nullopt;
  std::vector<Row> out;
  out.reserve(keys.size());
  for (const std::string& key : keys) {
    const Row* const found = find_locked(key);
    if (found == nullptr) return std::nullopt;
    out.push_back(*found);
  }
  return out;
}

std::optional<FoundRows> View::find(const Store::ScanRange& range) const {
  if (!range.after.empty()) return std::nullopt;
  const MutexLock lock(mutex_);
  const auto found = ranges_.find(range.prefix);
  if (found == ranges_.end() || !stamp_ || stamp_ != read_stamp()) return std::nullopt;
  return scan_rows(found->second, range, scan_recent(journal_.recent, range));
}

// The stamp is that of the transaction only if nobody committed around its first read.
Status View::refresh(Database& db, Transaction kind) {
  const auto before = read_stamp();
  if (known_ && stamp_ && stamp_ == before) {
    if (kind == Transaction::Writes) return {};
    // A reader's begins with its first read: what it reads next must be of the view's state.
    auto at = db.query("SELECT folded FROM mark");
    if (!at) return at.error();
    if (auto row = at->step(); !row) return row.error();
    if (stamp_ == read_stamp()) return {};
  }
  stamp_.reset();
  auto news = read_journal(db, known_ ? &journal_ : nullptr);
  if (!news) return news.error();
  if (!news->more) {
    asked_.clear();
    newest_.clear();
    clear_journal();
  }
  journal_.at = news->journal.at;
  journal_.mark = news->journal.mark;
  put_over(std::move(news->journal.recent));
  known_ = true;
  if (before == read_stamp()) stamp_ = before;
  return {};
}

// The nodes go over as they are: nothing is copied or allocated.
void View::put_over(Recent&& changes) {
  while (!changes.empty()) {
    auto change = changes.extract(changes.begin());
    note(change.key(), change.mapped());
    if (change.mapped().version == 0) ++removed_;
    auto put = journal_.recent.insert(std::move(change));
    if (put.inserted) continue;
    Row& before = put.position->second;
    if (before.version == 0) --removed_;
    before = std::move(put.node.mapped());
  }
}

void View::note(const std::string& key, const Row& row) {
  note_appended(key);
  if (const auto known = asked_.find(key); known != asked_.end()) known->second = row;
}

// The table is another now.
void View::clear_journal() {
  ranges_.clear();
  journal_.recent.clear();
  removed_ = 0;
}

void View::note_appended(const std::string& key) {
  for (auto& [prefix, number] : newest_) {
    if (key.starts_with(prefix)) number = std::max(number, append_number(prefix, key));
  }
}

Result<View::Known> View::look(Database& db, const std::vector<std::string>& keys) {
  const MutexLock lock(mutex_);
  if (auto done = refresh(db, Transaction::Reads); !done) return done.error();
  Known out{.rows = {}, .at = journal_.at};
  out.rows.reserve(keys.size());
  for (const std::string& key : keys) {
    const Row* const found = find_locked(key);
    out.rows.push_back(found != nullptr ? std::optional(*found) : std::nullopt);
  }
  return out;
}

Result<View::RecentRows> View::look(Database& db, const Store::ScanRange& range) {
  const MutexLock lock(mutex_);
  if (auto done = refresh(db, Transaction::Reads); !done) return done.error();
  return RecentRows{.rows = scan_recent(journal_.recent, range), .at = journal_.at};
}

bool View::of_this_table(const Position& at) const {
  return at.folded == journal_.at.folded && at.folded_mark == journal_.at.folded_mark;
}

void View::put(const std::string& key, const Row& row) {
  if (asked_.size() >= kMostRows) asked_.clear();
  asked_.insert_or_assign(key, row);
}

void View::add(const Position& at, const Rows& rows) {
  const MutexLock lock(mutex_);
  if (!of_this_table(at)) return;
  for (const auto& [key, row] : rows) {
    // Written since it was read: what the journal says is newer.
    const auto newer = journal_.recent.find(key);
    put(key, newer == journal_.recent.end() ? row : newer->second);
  }
}

void View::add(const Position& at, const Store::ScanRange& range, FoundRows&& rows) {
  if (!range.after.empty()) return;
  const MutexLock lock(mutex_);
  if (!of_this_table(at)) return;
  if (ranges_.size() >= kMostRanges) ranges_.clear();
  ranges_.insert_or_assign(range.prefix, std::move(rows));
}

Result<View::Base> View::base(Database& db) {
  const MutexLock lock(mutex_);
  if (auto done = refresh(db, Transaction::Writes); !done) return done.error();
  return Base{.at = journal_.at, .mark = journal_.mark, .removed = removed_, .stamp = stamp_};
}

std::optional<Row> View::known(const std::string& key, Part part) const {
  const MutexLock lock(mutex_);
  const Row* const found = find_locked(key);
  if (found == nullptr) return std::nullopt;
  if (part == Part::Whole) return *found;
  return Row{.value = {}, .version = found->version, .timer = found->timer};
}

std::optional<std::uint64_t> View::newest_known(const std::string& prefix) const {
  const MutexLock lock(mutex_);
  const auto found = newest_.find(prefix);
  return found == newest_.end() ? std::nullopt : std::optional(found->second);
}

Result<std::uint64_t> View::newest(Database& db, const std::string& prefix) {
  const MutexLock lock(mutex_);
  if (const auto found = newest_.find(prefix); found != newest_.end()) return found->second;
  const auto in_table = newest_appended(db, prefix);
  if (!in_table) return in_table.error();
  newest_.emplace(prefix, *in_table);
  for (auto i = journal_.recent.lower_bound(prefix);
       i != journal_.recent.end() && i->first.starts_with(prefix); ++i) {
    note_appended(i->first);
  }
  return newest_.at(prefix);
}

Recent View::recent() const {
  const MutexLock lock(mutex_);
  return journal_.recent;
}

void View::advance(const Base& base, Done&& done) {
  const MutexLock lock(mutex_);
  if (journal_.at == done.at) return;  // somebody has read it already
  if (journal_.at != base.at) {        // and more than that
    stamp_.reset();
    return;
  }
  journal_.at = done.at;
  journal_.mark = done.mark;
  if (done.folded) {
    for (const auto& [key, row] : done.changes) note(key, row);
    clear_journal();
  } else {
    put_over(std::move(done.changes));
  }
  const auto now = read_stamp();
  stamp_ = now && base.stamp && now->follows(*base.stamp) ? now : std::nullopt;
}

}  // namespace stint::store
