#include "base/rfc3339.h"

#include <array>
#include <optional>

#include "base/text.h"

namespace stint {
namespace {

using std::chrono::seconds;

std::string digits(std::int64_t number, std::size_t width) {
  std::string out = cat(number);
  if (out.size() < width) out.insert(0, width - out.size(), '0');
  return out;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool done() const { return rest_.empty(); }
  bool accept(std::string_view any_of) {
    if (rest_.empty() || any_of.find(rest_.front()) == std::string_view::npos) return false;
    last_ = rest_.front();
    rest_.remove_prefix(1);
    return true;
  }
  char last() const { return last_; }
  // Exactly so many digits, and a value of at most `most`.
  std::optional<int> number(std::size_t width, int most) {
    const auto value = parse_digits(rest_.substr(0, width));
    if (rest_.size() < width || !value || *value > static_cast<std::uint64_t>(most)) {
      return std::nullopt;
    }
    rest_.remove_prefix(width);
    return static_cast<int>(*value);
  }
  // Any number of digits after the point, as milliseconds; the rest is cut off.
  std::optional<Millis> fraction() {
    int value = 0;
    int places = 0;
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      if (places < 3) value = value * 10 + (rest_.front() - '0');
      ++places;
      rest_.remove_prefix(1);
    }
    for (int i = places; i < 3; ++i) value *= 10;
    return places == 0 ? std::nullopt : std::optional(Millis(value));
  }

 private:
  std::string_view rest_;
  char last_ = '\0';
};

std::optional<std::chrono::local_days> read_date(Reader& in) {
  const auto year = in.number(4, 9999);
  const auto month = year && in.accept("-") ? in.number(2, 12) : std::nullopt;
  const auto day = month && in.accept("-") ? in.number(2, 31) : std::nullopt;
  if (!day) return std::nullopt;
  const auto date = std::chrono::year(*year) / *month / *day;
  if (!date.ok()) return std::nullopt;
  return std::chrono::local_days(date);
}

std::optional<seconds> read_hours_minutes(Reader& in) {
  const auto hour = in.number(2, 23);
  const auto minute = hour && in.accept(":") ? in.number(2, 59) : std::nullopt;
  if (!minute) return std::nullopt;
  return std::chrono::hours(*hour) + std::chrono::minutes(*minute);
}

std::optional<Millis> read_time(Reader& in) {
  const auto hm = read_hours_minutes(in);
  const auto second = hm && in.accept(":") ? in.number(2, 59) : std::nullopt;
  if (!second) return std::nullopt;
  Millis out = *hm + seconds(*second);
  if (in.accept(".")) {
    const auto fraction = in.fraction();
    if (!fraction) return std::nullopt;
    out += *fraction;
  }
  return out;
}

std::optional<seconds> read_offset(Reader& in) {
  if (in.accept("Zz")) return seconds(0);
  if (!in.accept("+-")) return std::nullopt;
  const bool west = in.last() == '-';
  const auto out = read_hours_minutes(in);
  return out && west ? -*out : out;
}

}  // namespace

Result<WallTime> parse_rfc3339(std::string_view text) {
  Reader in(text);
  const auto date = read_date(in);
  const auto time = date && in.accept("Tt ") ? read_time(in) : std::nullopt;
  const auto offset = time ? read_offset(in) : std::nullopt;
  if (!offset || !in.done()) {
    return invalid(cat(quoted(text),
                       " is not a time with an offset (RFC 3339), as in "
                       "2026-11-15T06:45:00+01:00 or 2026-11-15T05:45:00Z"));
  }
  return WallTime(date->time_since_epoch() + *time - *offset);
}

std::string format_local(std::chrono::local_seconds time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::int64_t s = (time - day).count();
  return cat(digits(static_cast<int>(date.year()), 4), '-',
             digits(static_cast<unsigned>(date.month()), 2), '-',
             digits(static_cast<unsigned>(date.day()), 2), 'T', digits(s / 3600, 2), ':',
             digits(s / 60 % 60, 2), ':', digits(s % 60, 2));
}

std::string format_rfc3339(std::chrono::sys_seconds instant, seconds offset) {
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(offset);
  const std::int64_t m = std::chrono::abs(minutes).count();
  return cat(format_local(std::chrono::local_seconds(instant.time_since_epoch() + minutes)),
             minutes.count() < 0 ? '-' : '+', digits(m / 60, 2), ':', digits(m % 60, 2));
}

}  // namespace stint
