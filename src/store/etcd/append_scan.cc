// Reading appended records in order: AppendLog::list.
#include <algorithm>

#include "base/text.h"
#include "store/etcd/append_log.h"

namespace stint::store::etcd {
namespace {

// Read beyond what is asked for, so that the last bucket is mostly whole.
constexpr std::uint64_t kAhead = 256;
constexpr std::uint64_t kMostAtOnce = 10'000;
// Backwards: how many revisions of buckets at first, and how much more each time.
constexpr std::uint64_t kFirstSpan = 1024;
constexpr std::uint64_t kGrowth = 8;

}  // namespace

// Some of the records, as etcd has them: by bucket, in no order within one.
struct AppendLog::Page {
  struct Item {
    Entry entry;
    std::uint64_t number = 0;
    std::uint64_t bucket = 0;
  };
  std::vector<Item> items;
  bool more = false;
};

Result<AppendLog::Page> AppendLog::page(const std::string& prefix, const std::string& from,
                                        const std::string& end, std::uint64_t limit,
                                        const Deadline& deadline) {
  const RangeAsk ask{.keys = {from, end}, .limit = limit};
  const Reply reply = gateway_.ask("/v3/kv/txn", cat(R"({"success":[)", range(ask).json, "]}"),
                                   deadline, Twice::Harmless);
  if (!reply) return *reply.error;
  auto answer = parse_txn(reply.body);
  if (!answer) return answer.error();
  if (answer->operations.size() != 1) return damaged("range");
  Page out;
  out.more = answer->operations.front().more;
  const std::size_t bucket_at = keys_.appended(prefix).from.size();
  for (const KeyValue& stored : answer->operations.front().found) {
    auto entry = entry_of(stored, prefix);
    if (!entry) return entry.error();
    Page::Item item;
    item.number = split_appended(entry->key)->number;
    item.bucket = parse_digits(std::string_view(stored.key).substr(bucket_at, 16)).value_or(0);
    item.entry = std::move(*entry);
    out.items.push_back(std::move(item));
  }
  return out;
}

// A bucket that was open at the revision or before: all that was appended since is in it or in
// later ones. Zero is always right.
Result<std::uint64_t> AppendLog::bucket_at(const std::string& prefix, std::uint64_t revision,
                                           const Deadline& deadline) {
  if (revision == 0) return 0;
  {
    const MutexLock lock(mutex_);
    const auto next = buckets_.upper_bound(revision);
    if (next != buckets_.begin()) return *std::prev(next);
  }
  std::string asks;
  std::vector<std::uint64_t> starts;
  for (std::uint64_t span = kFirstSpan; span < revision; span *= kGrowth) {
    starts.push_back(revision - span);
    asks += cat(
        starts.size() > 1 ? "," : "",
        range({.keys = {keys_.bucket(prefix, revision - span), keys_.bucket(prefix, revision + 1)},
               .limit = 1,
               .keys_only = true})
            .json);
  }
  if (starts.empty()) return 0;
  const Reply reply =
      gateway_.ask("/v3/kv/txn", cat(R"({"success":[)", asks, "]}"), deadline, Twice::Harmless);
  if (!reply) return *reply.error;
  auto answer = parse_txn(reply.body);
  if (!answer) return answer.error();
  if (answer->operations.size() != starts.size()) return damaged("range");
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (!answer->operations[i].found.empty()) return starts[i];
  }
  return 0;
}

Result<std::vector<Entry>> AppendLog::list(const std::string& prefix, const NumberRange& numbers,
                                           std::size_t limit, bool backwards_,
                                           const Deadline& deadline) {
  if (limit == 0 || numbers.low >= numbers.high) return std::vector<Entry>();
  return backwards_ ? backwards(prefix, numbers, limit, deadline)
                    : forwards(prefix, numbers, limit, deadline);
}

Result<std::vector<Entry>> AppendLog::forwards(const std::string& prefix,
                                               const NumberRange& numbers, std::size_t limit,
                                               const Deadline& deadline) {
  std::vector<Entry> out;
  auto bucket = bucket_at(prefix, numbers.low / kPerRevision, deadline);
  if (!bucket) return bucket.error();
  const std::string end = keys_.appended(prefix).end;
  std::uint64_t ahead = kAhead;
  while (true) {
    const std::uint64_t most = std::min<std::uint64_t>(limit - out.size(), kMostAtOnce) + ahead;
    auto got = page(prefix, keys_.bucket(prefix, *bucket), end, most, deadline);
    if (!got) return got.error();
    auto& items = got->items;
    if (got->more) {
      // The last bucket may go on: it is read again, from its start.
      const std::uint64_t last = items.empty() ? 0 : items.back().bucket;
      std::erase_if(items, [&](const Page::Item& item) { return item.bucket == last; });
      ahead = items.empty() ? ahead * 4 : kAhead;
      bucket = last;
    }
    std::ranges::sort(items, {}, &Page::Item::number);
    for (Page::Item& item : items) {
      if (item.number < numbers.low) continue;
      if (item.number >= numbers.high || out.size() == limit) return out;
      out.push_back(std::move(item.entry));
    }
    if (!got->more || out.size() == limit) return out;
  }
}

Result<std::vector<Entry>> AppendLog::backwards(const std::string& prefix,
                                                const NumberRange& numbers, std::size_t limit,
                                                const Deadline& deadline) {
  const bool from_end = numbers.high >= kNumbersEnd;
  // Nothing below `high` is in a bucket that was opened after its revision.
  const std::uint64_t top = from_end ? state()->bucket : (numbers.high - 1) / kPerRevision;
  std::string end = from_end ? keys_.appended(prefix).end : keys_.bucket(prefix, top + 1);
  std::vector<Page::Item> items;
  for (std::uint64_t span = kFirstSpan;; span *= kGrowth) {
    const std::uint64_t start = span < top ? top - span : 0;
    const std::string from = keys_.bucket(prefix, start);
    auto got = page(prefix, from, end, 0, deadline);
    if (!got) return got.error();
    for (Page::Item& item : got->items) {
      if (item.number >= numbers.low && item.number < numbers.high) {
        items.push_back(std::move(item));
      }
    }
    // All that is missing is in earlier buckets, and so comes before all of these.
    if (items.size() >= limit || start == 0) break;
    end = from;
  }
  std::ranges::sort(items, std::ranges::greater(), &Page::Item::number);
  std::vector<Entry> out;
  for (Page::Item& item : items) {
    if (out.size() == limit) break;
    out.push_back(std::move(item.entry));
  }
  return out;
}

}  // namespace stint::store::etcd
