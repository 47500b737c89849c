// One etcd transaction: compares, and what is done if all of them hold, or if one does not.
//
//   Txn txn;
//   txn.compare(mod_revision_is(key, 7));
//   const std::size_t at = txn.then(put(key, value));   // its answer's place in TxnAnswer
//   txn.otherwise(get(key));
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/etcd/wire.h"

namespace stint::store::etcd {

// A half-open range of keys; an empty end means the one key.
struct KeyRange {
  std::string from;
  std::string end = {};
};
// Everything that begins with it.
KeyRange beginning_with(std::string prefix);

struct Operation {
  std::string json;
};

struct RangeAsk {
  KeyRange keys;
  std::uint64_t limit = 0;  // 0: none
  bool keys_only = false;
  bool count_only = false;
  bool descending = false;
  std::uint64_t created_from = 0;  // revisions, 0: any
  std::uint64_t created_to = 0;
};
Operation range(const RangeAsk& ask);
Operation get(std::string_view key);
Operation put(std::string_view key, std::string_view value);
// These two tell what they replaced: `found` of their answer.
Operation put_on_lease(std::string_view key, std::string_view value, LeaseId lease);
Operation take_away(const KeyRange& keys);
Operation remove(std::string_view key);

struct Compare {
  std::string json;
};
Compare is_absent(const KeyRange& keys);  // all of them
Compare is_present(std::string_view key);
Compare mod_revision_is(std::string_view key, std::uint64_t revision);
Compare lease_is(std::string_view key, LeaseId lease);
// False also where there is no such key; of a range, all of its keys are compared.
Compare value_below(const KeyRange& keys, std::string_view value);

class Txn {
 public:
  // The server's limit on operations and compares, unless it was told otherwise.
  static constexpr std::size_t kLimit = 128;
  // One less is left for nested ones.
  static constexpr std::size_t kMostCompares = 126;

  void compare(Compare one) { compares_.push_back(std::move(one)); }
  std::size_t then(Operation one);
  std::size_t otherwise(Operation one);
  std::size_t compares() const { return compares_.size(); }
  std::size_t operations(bool succeeded) const {
    return succeeded ? then_.size() : otherwise_.size();
  }

  // REQUIRES: at most kMostCompares compares. More than kLimit operations are nested.
  std::string json() const;

 private:
  std::vector<Compare> compares_;
  std::vector<Operation> then_;
  std::vector<Operation> otherwise_;
};

std::string json_of(const RangeAsk& ask);

}  // namespace stint::store::etcd
