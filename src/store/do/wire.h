// The store protocol in JSON, as docs/reference/store-protocol.md says. Pure.
//
// An answer is not trusted: what has the wrong type or is out of range is an error, never a
// default.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/seam.h"

namespace stint::store::durable {

constexpr int kProtocol = 1;
// What one read and one page of a scan may hold.
constexpr std::size_t kMostKeys = 1000;

// A value is sent as the text that it is. One that is no UTF-8, or has a NUL or a leading SOH, is
// sent as SOH and base64.
std::string packed(std::string_view value);
Result<std::string> unpacked(std::string_view text);

// Code::Invalid: a key is no UTF-8 without NUL, or there are too many.
Result<std::string> read_body(const std::vector<std::string>& keys, bool may_create);
Result<std::string> scan_body(const Store::ScanRange& range, bool may_create);
Result<std::string> count_body(const std::string& prefix, bool may_create);
Result<std::string> commit_body(const std::vector<Step>& steps, bool may_create);
Result<std::string> watch_body(std::string_view key, bool may_create);

// What every answer says.
struct Stamp {
  std::uint64_t revision = 0;
  std::int64_t now_ms = 0;
};
Result<Stamp> parse_stamp(const boost::json::object& from);

Result<Reading> parse_reading(const boost::json::object& from,
                              const std::vector<std::string>& keys);
struct Page {
  Reading reading;
  bool more = false;
};
Result<Page> parse_page(const boost::json::object& from);
Result<std::uint64_t> parse_count(const boost::json::object& from);
Result<CommitAnswer> parse_commit(const boost::json::object& from, const std::vector<Step>& steps);

struct About {
  std::string worker;
  std::string colo;  // empty: not told
  std::int64_t ahead_ms = 0;
};
Result<About> parse_about(const boost::json::object& from);

}  // namespace stint::store::durable
