// The words of etcd's JSON gateway: bytes as base64, 64-bit numbers as text, zero values left out.
//
// An answer is not trusted: what has the wrong type or is out of range is an error, never a
// default.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/base64.h"
#include "base/result.h"

namespace stint::store::etcd {

using LeaseId = std::int64_t;

Result<std::string> from_base64(std::string_view text);

struct KeyValue {
  std::string key;
  std::string value;
  std::uint64_t created = 0;   // revision
  std::uint64_t modified = 0;  // revision
  LeaseId lease = 0;
};

// Of one operation: what a range found, or what a put or a removal replaced (where asked for).
struct OpAnswer {
  std::vector<KeyValue> found;
  bool more = false;
  std::uint64_t count = 0;
};

struct TxnAnswer {
  bool succeeded = false;
  std::uint64_t revision = 0;
  std::vector<OpAnswer> operations;  // of the branch that was taken, nested ones in their place
};

// Fields of an answer; a missing one is zero or empty, one of another type an error.
Result<std::int64_t> number_field(const boost::json::object& from, std::string_view name);
Result<bool> bool_field(const boost::json::object& from, std::string_view name);
Result<std::string> text_field(const boost::json::object& from, std::string_view name);
Result<KeyValue> parse_key_value(const boost::json::object& from);
Result<std::uint64_t> revision_of(const boost::json::object& answer);  // from its header
Result<TxnAnswer> parse_txn(const boost::json::object& from);

Error damaged(std::string_view what);

}  // namespace stint::store::etcd
