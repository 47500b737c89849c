#include "store/log/table.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>

#include "base/text.h"

namespace stint::store::log {
namespace {

Row row_of(Version version, std::string value = "v") {
  Row row;
  row.value = std::move(value);
  row.version = version;
  return row;
}

std::string digits(std::size_t number) {
  const std::string out = std::to_string(number);
  return std::string(6 - out.size(), '0') + out;
}

// A table and the map that it must be like.
class TableBeside : public ::testing::Test {
 protected:
  void put(const std::string& key, Version version) {
    table_.put(key, row_of(version));
    if (version == 0) {
      map_.erase(key);
    } else {
      map_[key] = version;
    }
  }
  void expect_alike() const {
    ASSERT_EQ(table_.size(), map_.size());
    auto expected = map_.begin();
    std::string last;
    for (bool more = !map_.empty(); more;) {
      more = table_.walk(last, 7, [&](std::string_view key, const Row& row) {
        ASSERT_NE(expected, map_.end());
        EXPECT_EQ(key, expected->first);
        EXPECT_EQ(row.version, expected->second);
        last = key;
        ++expected;
      });
    }
    EXPECT_EQ(expected, map_.end());
  }
  // The keys that a scan must give, from the words of the seam.
  std::vector<std::string> expected(const Store::ScanRange& range) const {
    std::vector<std::string> out;
    const auto look = [&](const std::string& key) {
      const bool within = range.backwards ? range.after.empty() || key < range.after
                                          : range.after.empty() || key > range.after;
      if (within && key.starts_with(range.prefix) && out.size() < range.limit) out.push_back(key);
    };
    if (range.backwards) {
      for (auto at = map_.rbegin(); at != map_.rend(); ++at) look(at->first);
    } else {
      for (const auto& [key, version] : map_) look(key);
    }
    return out;
  }
  std::vector<std::string> scanned(const Store::ScanRange& range) const {
    std::vector<std::string> out;
    for (const auto& [key, row] : table_.scan(range)) out.push_back(key);
    return out;
  }

  Table table_;
  std::map<std::string, Version> map_;
};

// Grows to several thousand, shrinks to few, again and again: blocks are split and close up.
TEST_F(TableBeside, IsLikeAMapWhateverIsPutAndRemoved) {
  std::mt19937 random(20261116);
  const auto below = [&](std::size_t most) { return std::size_t{random()} % most; };
  Version version = 0;
  for (int phase = 0; phase < 6; ++phase) {
    const std::size_t removals = phase % 2 == 0 ? 2 : 9;  // of ten
    for (int i = 0; i < 6000; ++i) {
      const std::string key = cat("own/", below(4), "/", digits(below(2000)));
      put(key, below(10) < removals ? 0 : ++version);
      const Row* found = table_.find(key);
      ASSERT_EQ(found == nullptr ? 0 : found->version, map_.contains(key) ? map_[key] : 0);
    }
    expect_alike();
    for (int i = 0; i < 200; ++i) {
      const Store::ScanRange range{
          .prefix = below(3) == 0 ? "" : cat("own/", below(5), "/"),
          .after = below(2) == 0 ? "" : cat("own/", below(5), "/", digits(below(2000))),
          .limit = below(400),
          .backwards = below(2) == 0};
      ASSERT_EQ(scanned(range), expected(range))
          << range.prefix << " after " << range.after << " limit " << range.limit
          << (range.backwards ? " backwards" : "");
    }
  }
  for (const auto& [key, gone] : std::map(map_)) put(key, 0);
  expect_alike();
  EXPECT_TRUE(scanned({.prefix = "", .after = "", .limit = 9, .backwards = true}).empty());
}

// As a ledger is: appended at its end, between other records, and forgotten from its begin.
TEST_F(TableBeside, IsLikeAMapForRecordsThatAreAppendedAndForgotten) {
  put("a", 1);
  put("z", 2);
  for (std::size_t i = 0; i < 3000; ++i) {
    put(cat("log/", digits(i)), i + 3);
    if (i >= 500) put(cat("log/", digits(i - 500)), 0);
  }
  expect_alike();
  EXPECT_EQ(table_.size(), 502);
}

TEST_F(TableBeside, IsBuiltFromRowsInOrderAndThenLikeAnyOther) {
  TableBuilder builder;
  builder.expect(1000);
  for (std::size_t i = 0; i < 5000; ++i) {
    const std::string key = cat("k/", digits(2 * i));
    ASSERT_TRUE(builder.add(key, row_of(i + 1)));
    map_[key] = i + 1;
  }
  for (const char* early : {"k/000000", "k/009998", "k/009997", ""}) {
    EXPECT_FALSE(builder.add(early, row_of(9))) << early;
  }
  table_ = std::move(builder).finish();
  expect_alike();
  for (const auto& [key, version] : map_) {
    ASSERT_NE(table_.find(key), nullptr);
    EXPECT_EQ(table_.find(key)->version, version);
  }
  // Between and behind what was taken in order.
  for (std::size_t i = 0; i < 5000; i += 3) put(cat("k/", digits(2 * i + 1)), i + 1);
  for (std::size_t i = 0; i < 5000; i += 2) put(cat("k/", digits(2 * i)), 0);
  expect_alike();
}

TEST_F(TableBeside, FindsTheNewestOfAPrefix) {
  EXPECT_EQ(table_.newest("log/"), 0);
  put("log/0000000000000007", 1);
  put("log/0000000000000009", 2);
  put("lot", 3);
  put("aaa", 4);
  EXPECT_EQ(table_.newest("log/"), 9);
  EXPECT_EQ(table_.newest("lob/"), 0);
  put("log/0000000000000009", 0);
  EXPECT_EQ(table_.newest("log/"), 7);
}

TEST(TableRows, KeepTheirValueAndTimerAndStayWhereTheyAre) {
  Table table;
  Row row = row_of(7, std::string(300, 'x'));
  row.timer = StoredTimer{.boot = 1, .fires_at = Nanos(5), .ttl = Millis(9)};
  table.put(std::string_view("a\0b", 3), std::move(row));
  const Row* first = table.find(std::string_view("a\0b", 3));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->value, std::string(300, 'x'));
  EXPECT_EQ(first->timer->fires_at, Nanos(5));
  for (std::size_t i = 0; i < 3000; ++i) table.put(cat("a", digits(i)), row_of(1));
  EXPECT_EQ(table.find(std::string_view("a\0b", 3)), first);
  EXPECT_EQ(table.find("a"), nullptr);
  EXPECT_EQ(table.find(""), nullptr);
}

}  // namespace
}  // namespace stint::store::log
