#include "store/dir/replica.h"

#include <algorithm>
#include <cerrno>
#include <tuple>

#include "base/text.h"

namespace stint::store::dir {
namespace {

constexpr int kMostLoads = 20;
constexpr int kMostErrors = 3;

bool judged_void(const LogFile& file, const os::FileFacts& facts) {
  return file.valid_before && facts.changed >= *file.valid_before;
}

}  // namespace

bool Replica::same_file(const os::FileFacts& a, const os::FileFacts& b) {
  return a.inode == b.inode && a.size == b.size && a.modified == b.modified;
}

Error Replica::damaged(Number number) const {
  return unavailable(cat("the log of the store ", quoted(place_.path), " is broken at number ",
                         number, ": was a copy put back, or a file removed?"));
}

Result<std::optional<Replica::Found>> Replica::read(Number number) const {
  const std::string name = file_name(number);
  std::string bytes;
  Found found;
  const int e = place_.log.read(name, kMostFileBytes, bytes, found.facts);
  if (e == ENOENT || e == ESTALE) return std::optional<Found>();
  if (e != 0) return os::file_error(cat("reading ", quoted(place_.log_path() + "/" + name)), e);
  auto file = decode(bytes, place_.log_path() + "/" + name);
  if (!file) return file.error();
  if (file->number != number) return damaged(number);
  found.file = std::move(*file);
  return std::optional<Found>(std::move(found));
}

std::optional<Nonce> Replica::nonce_at(Number number) const {
  if (number > last_.number || last_.number - number >= nonces_.size()) return std::nullopt;
  return nonces_[nonces_.size() - 1 - (last_.number - number)];
}

std::optional<bool> Replica::void_at(Number number) const {
  if (number == last_.number) return last_void_;
  const auto found = verdicts_.find(number);
  return found == verdicts_.end() ? std::nullopt : std::optional(found->second);
}

// The next number says how the last one was judged, and that is how it stays.
void Replica::judge(const LogFile& next) {
  if (!last_.valid_before || next.previous_void == last_void_) return;
  if (next.previous_void) {
    state_.take_back(std::move(undo_));
  } else {
    state_.apply(last_.changes, last_.number);
  }
  ++flips_;
}

bool Replica::follow(Found found) {
  if (found.file.previous != last_.nonce) return false;
  judge(found.file);
  verdicts_[last_.number] = found.file.previous_void;
  while (verdicts_.size() > kRemembered) verdicts_.erase(verdicts_.begin());
  last_ = std::move(found.file);
  last_facts_ = found.facts;
  last_void_ = judged_void(last_, last_facts_);
  undo_ = last_void_ ? State::Undo() : state_.apply(last_.changes, last_.number);
  if (last_.identity) identity_ = *last_.identity;
  nonces_.push_back(last_.nonce);
  while (nonces_.size() > kRemembered) nonces_.pop_front();
  base_at_ = std::max(base_at_, last_.base_at);
  if (last_.base && last_.base->number > state_.base().number) {
    if (auto tables = open_tables(*last_.base)) {
      state_.adopt(*last_.base, std::move(*tables));
      based_on_ = last_.number;
    } else {
      // Gone already, for newer ones. The old ones are still open, for this once.
      loaded_ = false;
    }
  }
  if (last_.durable) {
    seen_durable_ = last_.number;
    seen_nonce_ = last_.nonce;
  }
  return true;
}

Result<bool> Replica::apply_own(LogFile file, const os::FileFacts& facts) {
  const Number number = file.number;
  if (!follow({std::move(file), facts})) return damaged(number);
  return !last_void_;
}

Status Replica::read_forward() {
  while (true) {
    const Number number = last_.number + 1;
    auto next = read(number);
    if (next && !*next && last_void_) {
      // Perhaps there is a next one that says otherwise, and its absence was remembered: the ctime
      // may have moved since it came. Looking at the directory makes the look-up a fresh one.
      if (auto there = place_.still_there(); !there) return there;
      next = read(number);
    }
    if (!next) return next.error();
    if (!*next) return {};
    if (!follow(std::move(**next))) {
      loaded_ = false;
      return damaged(number);
    }
  }
}

Status Replica::refresh() {
  if (lost_) return *lost_;
  if (auto there = place_.still_there(); !there) return there;
  if (!loaded_) return load();
  const Number before = last_.number;
  const os::FileFacts before_facts = last_facts_;
  const auto seen = std::pair(seen_durable_, seen_nonce_);
  const Status read = read_forward();
  // Asks the server for the newest state of the log as well.
  os::FileFacts now;
  const int e = place_.log.facts(file_name(before), now);
  if (e == 0 && same_file(now, before_facts)) return read;
  if (e != 0 && e != ENOENT && e != ESTALE) {
    return os::file_error(cat("reading the store ", quoted(place_.path)), e);
  }
  // What was read above may stand in numbers that came free again: it was never seen.
  std::tie(seen_durable_, seen_nonce_) = seen;
  return load();
}

Result<Number> Replica::find_start(bool by_listing) const {
  if (!by_listing) {
    std::string hint;
    os::FileFacts facts;
    if (place_.root.read("head", 64, hint, facts) == 0) {
      if (const auto number = parse_digits(trim(hint)); number && *number > 0) return *number;
    }
  }
  std::vector<std::string> names;
  if (const int e = place_.log.list(names)) {
    return os::file_error(cat("listing the store ", quoted(place_.path)), e);
  }
  Number newest = 0;
  for (const std::string& name : names) newest = std::max(newest, number_of(name));
  if (newest == 0) {
    return unavailable(cat(quoted(place_.log_path()), " is not the log of a Stint store"));
  }
  return newest;
}

Result<Tables> Replica::open_tables(const Base& base) const {
  Tables tables;
  for (const std::string& name : base.tables) {
    const auto& open = state_.tables();
    const auto known = std::ranges::find(open, name, [](const auto& one) { return one->name(); });
    if (known != open.end()) {
      tables.push_back(*known);
      continue;
    }
    auto table = Table::open(place_.snap, name);
    if (!table) return table.error();
    tables.push_back(*table);
  }
  return tables;
}

// False: the store moved on while it was read.
Result<bool> Replica::load_from(Number start) {
  auto there = read(start);
  if (!there) return there.error();
  if (!*there) return false;
  auto holder = (*there)->file.base ? std::move(there) : read((*there)->file.base_at);
  if (!holder) return holder.error();
  if (!*holder) return false;
  if (!(*holder)->file.base) return damaged((*holder)->file.number);
  const Base base = *(*holder)->file.base;
  auto tables = open_tables(base);
  if (!tables) return start == (*holder)->file.number ? Result<bool>(false) : tables.error();
  state_ = State(base, std::move(*tables));
  last_ = {};
  last_.number = base.number;
  last_.nonce = base.nonce;
  last_void_ = false;
  identity_ = base.identity;
  base_at_ = based_on_ = (*holder)->file.number;
  ++flips_;
  nonces_ = base.nonces;
  verdicts_.clear();
  auto first = read(base.number + 1);
  if (!first) return first.error();
  if (!*first) return false;
  const os::FileFacts first_facts = (*first)->facts;
  const Number first_number = base.number + 1;
  if (!follow(std::move(**first))) return damaged(first_number);
  if (auto read = read_forward(); !read) return read.error();
  os::FileFacts now;
  const int e = place_.log.facts(file_name(first_number), now);
  if (e != 0 || !same_file(now, first_facts)) return false;
  return last_.number >= start;
}

// The hint first; a listing where it led nowhere.
Status Replica::load() {
  loaded_ = false;
  const Number seen = seen_durable_;
  const Nonce nonce = seen_nonce_;
  Status failed;
  for (int i = 0, errors = 0; i < kMostLoads && errors < kMostErrors; ++i) {
    auto start = find_start(i != 0);
    if (!start) return start.error();
    auto done = load_from(*start);
    failed = done ? Status() : Status(done.error());
    if (!done) ++errors;
    if (!done || !*done) continue;
    const auto now = nonce_at(seen);
    if (seen != 0 && (last_.number < seen || (now && *now != nonce))) {
      lost_ = unavailable(
          cat("the store ", quoted(place_.path), " went back in time while in use: commit ", seen,
              " is no longer in it. Was a backup restored? See docs/guides/restore.md"));
      return *lost_;
    }
    loaded_ = based_on_ == base_at_;
    return {};
  }
  std::tie(seen_durable_, seen_nonce_) = std::pair(seen, nonce);
  if (!failed) return failed;
  return unavailable(cat("the store ", quoted(place_.path), " changes faster than it can be read"));
}

}  // namespace stint::store::dir
