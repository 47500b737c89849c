#include "base/time.h"

#include <array>
#include <utility>

#include "base/text.h"

namespace stint {
namespace {

// Longer than this is a typing error, and it keeps every sum of two durations far from overflow.
constexpr Millis kLongest = std::chrono::hours(24 * 366);

struct Unit {
  std::string_view name;
  std::int64_t ms;
};
constexpr std::array<Unit, 5> kUnits = {
    {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};

const Unit* find_unit(std::string_view name) {
  for (const Unit& unit : kUnits) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

Error bad_duration(std::string_view text, std::string_view why) {
  return invalid(
      cat(quoted(text), " is not a duration: ", why, " (examples: 250ms, 90s, 5m, 1h30m)"));
}

std::string two_digits(std::int64_t n) { return n < 10 ? cat('0', n) : cat(n); }

}  // namespace

Result<Millis> parse_duration_or_none(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  if (text.empty()) return bad_duration(text, "it is empty");
  if (text.front() == '-') return bad_duration(text, "it is negative");
  Millis total{0};
  std::string_view rest = text;
  std::int64_t smaller_than = kLongest.count() + 1;
  while (!rest.empty()) {
    const std::size_t digits = std::min(rest.find_first_not_of(kDigits), rest.size());
    const auto number = parse_digits(rest.substr(0, digits));
    rest.remove_prefix(digits);
    if (!number) return bad_duration(text, "a number is missing or too large");
    const std::size_t letters = std::min(rest.find_first_of(kDigits), rest.size());
    const Unit* unit = find_unit(rest.substr(0, letters));
    if (letters == 0) return bad_duration(text, "it needs a unit");
    if (unit == nullptr) return bad_duration(text, "units are ms, s, m, h, d");
    if (unit->ms >= smaller_than) return bad_duration(text, "units go from large to small");
    smaller_than = unit->ms;
    rest.remove_prefix(letters);
    if (*number > static_cast<std::uint64_t>(kLongest.count() / unit->ms)) {
      return bad_duration(text, "it is longer than a year");
    }
    total += Millis(static_cast<std::int64_t>(*number) * unit->ms);
  }
  if (total > kLongest) return bad_duration(text, "it is longer than a year");
  return total;
}

Result<Millis> parse_duration(std::string_view text) {
  auto parsed = parse_duration_or_none(text);
  if (parsed && parsed->count() == 0) return bad_duration(text, "it is zero");
  return parsed;
}

std::string format_duration(Millis d) {
  if (d.count() <= 0) return "0s";
  std::string out;
  std::int64_t rest = d.count();
  for (std::size_t i = kUnits.size(); i-- > 0;) {
    const Unit& unit = kUnits[i];
    if (rest >= unit.ms) {
      out += cat(rest / unit.ms, unit.name);
      rest %= unit.ms;
    }
  }
  return out;
}

std::string rough_duration(Millis d) {
  const std::int64_t ms = d.count() < 0 ? 0 : d.count();
  if (ms < 1000) return cat(ms, " ms");
  const std::int64_t s = ms / 1000;
  if (s < 120) return cat(s, " s");
  if (s < 7200) return cat(s / 60, " min");
  if (s < 172'800) return cat(s / 3600, " h ", s / 60 % 60, " min");
  return cat(s / 86'400, " d ", s / 3600 % 24, " h");
}

std::string format_utc(WallTime t) {
  using std::chrono::days;
  using std::chrono::floor;
  const std::chrono::sys_time<Millis> when(t.time_since_epoch());
  const auto day = floor<days>(when);
  const std::chrono::year_month_day date(day);
  const std::int64_t s = std::chrono::duration_cast<std::chrono::seconds>(when - day).count();
  return cat(static_cast<int>(date.year()), '-', two_digits(static_cast<unsigned>(date.month())),
             '-', two_digits(static_cast<unsigned>(date.day())), 'T', two_digits(s / 3600), ':',
             two_digits(s / 60 % 60), ':', two_digits(s % 60), 'Z');
}

}  // namespace stint
