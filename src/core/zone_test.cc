#include "core/zone.h"

#include <gtest/gtest.h>

namespace stint::core {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::year;

sys_seconds day(int y, unsigned m, unsigned d) {
  return sys_days(year(y) / std::chrono::month(m) / std::chrono::day(d));
}

TEST(ZoneRule, GoesOnForEver) {
  const Zone berlin(hours(1), {}, parse_zone_rule("CET-1CEST,M3.5.0,M10.5.0/3").value());
  for (const int y : {1970, 2026, 2400, 9999}) {
    EXPECT_EQ(berlin.at(day(y, 1, 15)).offset, hours(1)) << y;
    EXPECT_EQ(berlin.at(day(y, 7, 15)).offset, hours(2)) << y;
  }
  const ZoneSpan summer = berlin.at(day(2027, 7, 1));
  EXPECT_EQ(summer.begin, day(2027, 3, 28) + hours(1));
  EXPECT_EQ(summer.end, day(2027, 10, 31) + hours(1));
  EXPECT_EQ(summer.local(summer.begin) - summer.reached, hours(1));  // the gap
  const ZoneSpan winter = berlin.at(summer.end);
  EXPECT_EQ(winter.reached - winter.local(winter.begin), hours(1));  // the overlap
}

TEST(ZoneRule, KnowsEveryForm) {
  // South of the equator; negative and large hours; winter time as the exception (Dublin).
  const Zone santiago(hours(-4), {}, parse_zone_rule("<-04>4<-03>,M9.1.6/24,M4.1.6/24").value());
  EXPECT_EQ(santiago.at(day(2026, 1, 1)).offset, hours(-3));
  EXPECT_EQ(santiago.at(day(2026, 7, 1)).offset, hours(-4));
  EXPECT_EQ(santiago.at(day(2026, 7, 1)).end, day(2026, 9, 6) + hours(4));
  const Zone nuuk(hours(-2), {}, parse_zone_rule("<-02>2<-01>,M3.5.0/-1,M10.5.0/0").value());
  EXPECT_EQ(nuuk.at(day(2026, 7, 1)).begin, day(2026, 3, 29) + hours(1));
  const Zone dublin(hours(0), {}, parse_zone_rule("IST-1GMT0,M10.5.0,M3.5.0/1").value());
  EXPECT_EQ(dublin.at(day(2026, 7, 1)).offset, hours(1));
  EXPECT_EQ(dublin.at(day(2026, 12, 1)).offset, hours(0));
  const Zone by_day(hours(0), {}, parse_zone_rule("AAA0BBB,J60/0,300/0").value());
  EXPECT_EQ(by_day.at(day(2024, 7, 1)).begin, day(2024, 3, 1));
  EXPECT_EQ(by_day.at(day(2023, 7, 1)).begin, day(2023, 3, 1));
  EXPECT_EQ(by_day.at(day(2023, 7, 1)).end, day(2023, 1, 1) + std::chrono::days(300) - hours(1));
}

TEST(ZoneRule, SummerTimeAllTheYearNeverChanges) {
  const Zone always(hours(-4), {}, parse_zone_rule("XXX5EDT4,0/0,J365/25").value());
  for (int month = 1; month <= 12; ++month) {
    const ZoneSpan span = always.at(day(2050, static_cast<unsigned>(month), 1));
    EXPECT_EQ(span.offset, hours(-4)) << month;
    EXPECT_LE(span.reached, span.local(span.begin));
  }
}

TEST(ZoneRule, RefusesWhatIsNone) {
  for (const char* text :
       {"", "C", "CET", "CET-", "CET-25", "CET-1CEST", "CET-1CEST,M3.5.0",
        "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,M3.5.7,M10.5.0",
        "CET-1CEST,M3.5.0,M10.5.0x", "CET-1CEST,J0,J5", "CET-1CEST,J366,J5", "<+1-1", "CET-1:60",
        "CET-1CEST,M3.5.0/168,M10.5.0", "CET-99999999999999999999"}) {
    EXPECT_FALSE(parse_zone_rule(text)) << text;
  }
}

TEST(Zone, TwoChangesCloseTogetherShowNothingTwice) {
  // Back by three hours, and an hour later on by one: what was shown before both still counts.
  const Zone zone(hours(0), {{day(2020, 1, 1), hours(-3)}, {day(2020, 1, 1) + hours(1), hours(-2)}},
                  std::nullopt);
  const ZoneSpan last = zone.at(day(2020, 1, 2));
  EXPECT_EQ(last.reached.time_since_epoch(), day(2020, 1, 1).time_since_epoch());
}

// ---- TZif

std::string big_endian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i) & 0xFFU);
  return out;
}

struct TzifParts {
  char version = '2';
  std::uint32_t leap_seconds = 0;
  std::vector<std::int64_t> times = {0, 1'000'000};
  std::string kinds = std::string("\x01\x00", 2);
  std::vector<std::int32_t> offsets = {3600, 7200};
  std::string footer = "\nCET-1\n";
};

std::string tzif(const TzifParts& parts) {
  const auto header = [&](std::size_t times, std::size_t types) {
    return "TZif" + std::string(1, parts.version) + std::string(15, '\0') + big_endian(0, 4) +
           big_endian(0, 4) + big_endian(types == 0 ? 0 : parts.leap_seconds, 4) +
           big_endian(times, 4) + big_endian(types, 4) + big_endian(types == 0 ? 0 : 4, 4);
  };
  std::string out = header(0, 0) + header(parts.times.size(), parts.offsets.size());
  for (const std::int64_t t : parts.times) out += big_endian(static_cast<std::uint64_t>(t), 8);
  out += parts.kinds;
  for (const std::int32_t o : parts.offsets) {
    out += big_endian(static_cast<std::uint32_t>(o), 4) + std::string(2, '\0');
  }
  out += std::string("AAA\0", 4) + std::string(parts.leap_seconds * 12, '\0');
  return out + parts.footer;
}

TEST(Tzif, ReadsTableAndRule) {
  const Zone zone = parse_tzif(tzif({})).value();
  EXPECT_EQ(zone.at(sys_seconds(seconds(-1))).offset, seconds(3600));
  EXPECT_EQ(zone.at(sys_seconds(seconds(0))).offset, seconds(7200));
  EXPECT_EQ(zone.at(sys_seconds(seconds(1'000'000))).offset, seconds(3600));
}

TEST(Tzif, EveryCutAndEveryWrongByteIsRefusedOrHarmless) {
  const std::string whole = tzif({});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(parse_tzif(whole.substr(0, length))) << length;
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const char wrong : {'\0', '\x01', '\x7F', '\xFF'}) {
      std::string bent = whole;
      bent[i] = wrong;
      const auto zone = parse_tzif(bent);
      EXPECT_TRUE(!zone || zone->at(sys_seconds(seconds(5))).offset <= kWidestOffset) << i;
    }
  }
}

TEST(Tzif, RefusesWhatMakesNoSense) {
  EXPECT_EQ(parse_tzif("#!/bin/sh").error().code, Code::Invalid);
  EXPECT_FALSE(parse_tzif(tzif({.version = '\0'})));
  EXPECT_EQ(parse_tzif(tzif({.leap_seconds = 2})).error().code, Code::Invalid);
  EXPECT_FALSE(parse_tzif(tzif({.times = {5, 5}})));
  EXPECT_FALSE(parse_tzif(tzif({.kinds = std::string("\x02\x00", 2)})));
  EXPECT_FALSE(parse_tzif(tzif({.offsets = {3600, 200'000}})));
  EXPECT_FALSE(parse_tzif(tzif({.footer = "\nnonsense\n"})));
  EXPECT_FALSE(parse_tzif(tzif({.footer = "\nCET-1\nmore"})));
}

}  // namespace
}  // namespace stint::core
