#include "store/etcd/append_log.h"

#include <algorithm>

#include "base/text.h"
#include "os/random.h"

namespace stint::store::etcd {
namespace {

constexpr std::size_t kMostKnown = 8192;
constexpr std::size_t kIdDigits = 16;

}  // namespace

std::shared_ptr<const LogState> AppendLog::state() const {
  const MutexLock lock(mutex_);
  return state_;
}

std::string AppendLog::encode(const std::set<std::string>& prefixes) {
  std::string out;
  for (const std::string& prefix : prefixes) out += cat(prefix, '\0');
  return out;
}

Status AppendLog::learn(const OpAnswer& read) {
  if (read.found.size() != 1) {
    return unavailable("the keys of this store are gone from etcd: was its prefix deleted?");
  }
  const KeyValue& stored = read.found.front();
  auto fresh = std::make_shared<LogState>();
  fresh->bucket = stored.modified;
  for (const std::string_view prefix : split(stored.value, '\0')) {
    if (!prefix.empty()) fresh->prefixes.emplace(prefix);
  }
  const MutexLock lock(mutex_);
  if (stored.modified <= state_->bucket) return {};
  state_ = std::move(fresh);
  if (buckets_.size() >= kMostKnown) buckets_.clear();
  buckets_.insert(stored.modified);
  return {};
}

Status AppendLog::open_bucket(const std::set<std::string>& with, const Deadline& deadline) {
  while (true) {
    const auto known = state();
    std::set<std::string> prefixes = known->prefixes;
    prefixes.insert(with.begin(), with.end());
    Txn txn;
    txn.compare(mod_revision_is(keys_.log(), known->bucket));
    txn.then(put(keys_.log(), encode(prefixes)));
    txn.then(get(keys_.log()));
    txn.otherwise(get(keys_.log()));
    // Opened twice by a repetition, one bucket stays empty.
    const Reply reply = gateway_.ask("/v3/kv/txn", txn.json(), deadline, Twice::Harmless);
    if (!reply) return *reply.error;
    auto answer = parse_txn(reply.body);
    if (!answer) return answer.error();
    if (answer->operations.empty()) return damaged("log");
    if (auto ok = learn(answer->operations.back()); !ok) return ok.error();
    if (answer->succeeded) return {};
    const auto now = state();
    if (std::ranges::includes(now->prefixes, with)) return {};
    if (deadline.passed()) return unavailable("the store is too busy");
  }
}

// One revision in 128, spread by a multiplication: nobody can count what all processes append.
bool AppendLog::due(std::uint64_t revision) {
  return (revision * 0x9E37'79B9'7F4A'7C15U) >> 57U == 0;
}

std::string AppendLog::new_name(const std::string& prefix, std::uint64_t bucket,
                                std::size_t index) const {
  const std::string id = os::SystemRandom().id_hex().substr(0, kIdDigits);
  return cat(keys_.bucket(prefix, bucket), '/', id, index < 10 ? "0" : "", index);
}

// BUCKET / ID INDEX
Result<Entry> AppendLog::entry_of(const KeyValue& stored, const std::string& prefix) {
  const std::string front = keys_.appended(prefix).from;
  const std::string_view name =
      std::string_view(stored.key).substr(std::min(front.size(), stored.key.size()));
  constexpr std::size_t kLength = 16 + 1 + kIdDigits + 2;
  const bool shaped = stored.key.starts_with(front) && name.size() == kLength && name[16] == '/';
  const auto bucket = parse_digits(name.substr(0, shaped ? 16 : 0));
  const auto index = parse_digits(name.substr(shaped ? kLength - 2 : name.size()));
  if (!shaped || !bucket || !index || stored.created >= kNumbersEnd / kPerRevision) {
    return damaged("appended record");
  }
  Entry out;
  out.key = cat(prefix, sixteen(stored.created * kPerRevision + *index));
  out.value = stored.value;
  out.version = stored.modified;
  remember(out, stored, *bucket);
  return out;
}

void AppendLog::remember(const Entry& entry, const KeyValue& stored, std::uint64_t bucket) {
  const MutexLock lock(mutex_);
  if (names_.size() >= kMostKnown) names_.clear();
  if (buckets_.size() >= kMostKnown) buckets_.clear();
  names_.insert_or_assign(entry.key, stored.key);
  buckets_.insert(bucket);
}

Result<std::map<std::string, std::string>> AppendLog::find(const std::vector<std::string>& keys,
                                                           const Deadline& deadline) {
  std::map<std::string, std::string> out;
  struct Wanted {
    std::uint64_t from = UINT64_MAX;
    std::uint64_t to = 0;
  };
  std::map<std::string, Wanted> missing;  // revisions by prefix
  {
    const MutexLock lock(mutex_);
    for (const std::string& key : keys) {
      if (const auto known = names_.find(key); known != names_.end()) {
        out.insert(*known);
        continue;
      }
      const auto parts = split_appended(key);
      if (!parts || parts->number < kPerRevision) continue;
      Wanted& wanted = missing[parts->prefix];
      wanted.from = std::min(wanted.from, parts->number / kPerRevision);
      wanted.to = std::max(wanted.to, parts->number / kPerRevision);
    }
  }
  for (const auto& [prefix, wanted] : missing) {
    const RangeAsk ask{.keys = {keys_.appended(prefix).from, keys_.bucket(prefix, wanted.to + 1)},
                       .keys_only = true,
                       .created_from = wanted.from,
                       .created_to = wanted.to};
    const Reply reply = gateway_.ask("/v3/kv/txn", cat(R"({"success":[)", range(ask).json, "]}"),
                                     deadline, Twice::Harmless);
    if (!reply) return *reply.error;
    auto answer = parse_txn(reply.body);
    if (!answer) return answer.error();
    if (answer->operations.size() != 1) return damaged("range");
    for (const KeyValue& stored : answer->operations.front().found) {
      auto entry = entry_of(stored, prefix);
      if (!entry) return entry.error();
      if (std::ranges::find(keys, entry->key) != keys.end()) out[entry->key] = stored.key;
    }
  }
  return out;
}

Result<std::uint64_t> AppendLog::count(const std::string& prefix, const Deadline& deadline) {
  const RangeAsk ask{.keys = keys_.appended(prefix), .count_only = true};
  const Reply reply = gateway_.ask("/v3/kv/txn", cat(R"({"success":[)", range(ask).json, "]}"),
                                   deadline, Twice::Harmless);
  if (!reply) return *reply.error;
  auto answer = parse_txn(reply.body);
  if (!answer) return answer.error();
  if (answer->operations.size() != 1) return damaged("range");
  return answer->operations.front().count;
}

}  // namespace stint::store::etcd
