// Appended records: in the order of their commits, though no two appenders wait for each other.
//
// etcd gives a record its place when it commits it: the revision. But its keys are sorted by name,
// and a range sorted by revision reads all of them. So the names begin with a bucket: the revision
// at which the bucket was opened. An append is committed only under the bucket that is open then
// (a compare), and now and then somebody opens a new one. Hence all of a bucket was committed after
// all of the buckets before it, and only within one bucket is sorting left to be done here.
//
// Thread safety: every method may be called from any thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "store/etcd/append_numbers.h"
#include "store/etcd/gateway.h"
#include "store/etcd/keys.h"

namespace stint::store::etcd {

// The record ROOT log.
struct LogState {
  std::uint64_t bucket = 0;        // the open one
  std::set<std::string> prefixes;  // everything that was ever appended to
};

class AppendLog {
 public:
  AppendLog(const Keys& keys, Gateway& gateway) : keys_(keys), gateway_(gateway) {}

  // What is known of it; a commit compares the bucket.
  std::shared_ptr<const LogState> state() const;
  // From a read of ROOT log; older ones than known are ignored. An error if it is not there.
  Status learn(const OpAnswer& read);
  static std::string encode(const std::set<std::string>& prefixes);

  // Opens a new bucket, and makes the prefixes known.
  Status open_bucket(const std::set<std::string>& with, const Deadline& deadline);
  // Whether it is time for a new one, after a commit that appended.
  static bool due(std::uint64_t revision);

  // A fresh name for one record of a commit.
  std::string new_name(const std::string& prefix, std::uint64_t bucket, std::size_t index) const;
  // How it is called in the store: empty if `stored` is not an appended record.
  Result<Entry> entry_of(const KeyValue& stored, const std::string& prefix);

  // Where these appended records (as split_appended found them) are stored; those that are not
  // there are left out.
  Result<std::map<std::string, std::string>> find(const std::vector<std::string>& keys,
                                                  const Deadline& deadline);

  // Up to `limit` of them in order, or in reverse from the end.
  Result<std::vector<Entry>> list(const std::string& prefix, const NumberRange& numbers,
                                  std::size_t limit, bool backwards, const Deadline& deadline);
  Result<std::uint64_t> count(const std::string& prefix, const Deadline& deadline);

 private:
  struct Page;
  Result<Page> page(const std::string& prefix, const std::string& from, const std::string& end,
                    std::uint64_t limit, const Deadline& deadline);
  Result<std::vector<Entry>> forwards(const std::string& prefix, const NumberRange& numbers,
                                      std::size_t limit, const Deadline& deadline);
  Result<std::vector<Entry>> backwards(const std::string& prefix, const NumberRange& numbers,
                                       std::size_t limit, const Deadline& deadline);
  Result<std::uint64_t> bucket_at(const std::string& prefix, std::uint64_t revision,
                                  const Deadline& deadline);
  void remember(const Entry& entry, const KeyValue& stored, std::uint64_t bucket);

  const Keys& keys_;
  Gateway& gateway_;

  mutable Mutex mutex_;
  // Shared: a reader keeps the one that it decided upon.
  std::shared_ptr<const LogState> state_ GUARDED_BY(mutex_) = std::make_shared<LogState>();
  std::set<std::uint64_t> buckets_ GUARDED_BY(mutex_);           // some that are known
  std::map<std::string, std::string> names_ GUARDED_BY(mutex_);  // key -> stored, lately seen
};

}  // namespace stint::store::etcd
