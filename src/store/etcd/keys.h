// Where things stand in etcd. Everything of one store begins with its root.
//
//   ROOT format                    which layout this is
//   ROOT log                       the open bucket of the appended records: its mod_revision names
//                                  the bucket, its value lists the prefixes that were appended to
//   ROOT r/KEY                     a record
//   ROOT t/KEY \0 a                its timer: there is one, and how long it is
//   ROOT t/KEY \0 b                the same, on an etcd lease: gone when the timer has fired
//   ROOT a/PREFIX \0 BUCKET / ID   an appended record
//
// A key has no NUL, so that \0 ends it: what stands behind belongs to nobody else, and the order of
// the timers is the order of the records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "store/etcd/txn.h"

namespace stint::store::etcd {

constexpr std::string_view kFormat = "stint 1";

class Keys {
 public:
  explicit Keys(std::string root) : root_(std::move(root)) {}

  KeyRange all() const { return beginning_with(root_); }
  std::string format() const { return root_ + "format"; }
  std::string log() const { return root_ + "log"; }
  std::string record(std::string_view key) const;
  // Both keys of a timer, and each.
  KeyRange timer(std::string_view key) const;
  std::string timer_mark(std::string_view key) const;
  std::string timer_end(std::string_view key) const;
  // Appended records of a prefix; from a bucket on.
  KeyRange appended(std::string_view prefix) const;
  std::string bucket(std::string_view prefix, std::uint64_t bucket) const;

  // Back again; empty: of another kind.
  std::optional<std::string> record_of(std::string_view stored) const;
  std::optional<std::string> timer_of(std::string_view stored) const;  // either key
  std::optional<std::string> append_prefix_of(std::string_view stored) const;

 private:
  std::string root_;
};

// Sixteen digits, so that the order of text is the order of numbers.
std::string sixteen(std::uint64_t number);

// A timer's values. The end's sorts above every mark, so that one compare over both keys tells
// whether only the mark stands; and both sort by length.
std::string mark_value(std::int64_t seconds);
std::string end_value(std::int64_t seconds);
// What every end is above, and every mark below.
constexpr std::string_view kBetweenMarkAndEnd = "e";
std::optional<std::int64_t> seconds_of_mark(std::string_view value);

}  // namespace stint::store::etcd
