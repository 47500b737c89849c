// Every row of tests/vectors.
#include <gtest/gtest.h>

#include <map>

#include "app/zones.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/cron.h"
#include "os/files.h"

namespace stint::test {
namespace {

// Lines without comments.
std::vector<std::string> rows_of(const std::string& name) {
  const auto content = os::read_file(cat(SOURCE_DIR, "/tests/vectors/", name));
  EXPECT_TRUE(content) << content.error().message;
  std::vector<std::string> out;
  if (!content) return out;
  for (const std::string_view line : split(*content, '\n')) {
    if (!line.empty() && line.front() != '#') out.emplace_back(line);
  }
  return out;
}

std::chrono::sys_seconds instant_of(std::string_view text) {
  const auto parsed = parse_rfc3339(text);
  EXPECT_TRUE(parsed) << text;
  return std::chrono::sys_seconds(
      std::chrono::floor<std::chrono::seconds>(parsed.value_or(WallTime()).time_since_epoch()));
}

TEST(CronVectors, EveryNextTimeIsRight) {
  std::map<std::string, core::Zone> zones;
  const auto rows = rows_of("cron_next.tsv");
  ASSERT_GT(rows.size(), 400U);
  for (const std::string& row : rows) {
    SCOPED_TRACE(row);
    const auto columns = split(row, '\t');
    ASSERT_EQ(columns.size(), 5U);
    const std::string name(columns[0]);
    if (!zones.contains(name)) {
      zones.emplace(name, app::find_zone(name, app::Environment({})).value());
    }
    const auto expression = core::parse_cron(columns[1]);
    ASSERT_TRUE(expression) << expression.error().message;
    const auto next = core::next_time(
        *expression, zones.at(name), instant_of(columns[2]),
        columns[4] == "inclusive" ? core::Bound::Inclusive : core::Bound::Exclusive);
    EXPECT_EQ(next ? format_rfc3339(next->instant, next->offset) : "never", columns[3]);
    EXPECT_EQ(core::ever_fires(*expression), columns[3] != "never");
    if (!next) continue;
    EXPECT_EQ(
        core::previous_time(*expression, zones.at(name), next->instant, core::Bound::Inclusive),
        next);
  }
}

TEST(CronVectors, EveryWrongOneIsRefusedByTheNameOfItsField) {
  const auto rows = rows_of("cron_invalid.txt");
  ASSERT_GT(rows.size(), 100U);
  for (const std::string& row : rows) {
    const auto parsed = core::parse_cron(row);
    ASSERT_FALSE(parsed) << row;
    EXPECT_EQ(parsed.error().code, Code::Invalid);
    const std::string& said = parsed.error().message;
    bool named = false;
    for (const char* what : {"seconds: ", "minutes: ", "hours: ", "day of month: ", "month: ",
                             "day of week: ", " fields; ", "no nickname"}) {
      named = named || said.find(what) != std::string::npos;
    }
    EXPECT_TRUE(named) << said;
  }
}

}  // namespace
}  // namespace stint::test
