// The POSIX TZ string at the end of a TZif file, with the extensions of RFC 9636.
#include <limits>

#include "base/text.h"
#include "core/zone.h"

namespace stint::core {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

class RuleReader {
 public:
  explicit RuleReader(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }
  char peek() const { return rest_.empty() ? '\0' : rest_.front(); }
  bool accept(char c) {
    if (peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // "CET" or "<+03>"; what it is called does not matter here.
  bool name() {
    const bool quoted_name = accept('<');
    std::size_t length = 0;
    const auto suits = [quoted_name](char c) {
      return is_letter(c) || (quoted_name && (is_digit(c) || c == '+' || c == '-'));
    };
    while (length < rest_.size() && suits(rest_[length])) ++length;
    rest_.remove_prefix(length);
    constexpr std::size_t kShortest = 3;
    return length >= kShortest && (!quoted_name || accept('>'));
  }

  std::optional<unsigned> number(unsigned least, unsigned most) {
    std::size_t length = 0;
    while (length < rest_.size() && is_digit(rest_[length])) ++length;
    constexpr std::size_t kDigits = 3;
    const auto value = parse_digits(rest_.substr(0, length));
    if (!value || length > kDigits || *value < least || *value > most) return std::nullopt;
    rest_.remove_prefix(length);
    return static_cast<unsigned>(*value);
  }

  // "2", "-1:30", "+10:00:00"
  std::optional<seconds> time(unsigned most_hours) {
    const bool negative = accept('-');
    if (!negative) accept('+');
    const auto h = number(0, most_hours);
    if (!h) return std::nullopt;
    seconds total = hours(*h);
    for (const seconds unit : {seconds(60), seconds(1)}) {
      if (!accept(':')) break;
      const auto part = number(0, 59);
      if (!part) return std::nullopt;
      total += unit * static_cast<int>(*part);
    }
    return negative ? -total : total;
  }

  std::optional<ZoneRuleDate> date() {
    ZoneRuleDate out;
    if (!accept(',')) return std::nullopt;
    if (accept('M')) {
      const auto month = number(1, 12);
      const auto week = month && accept('.') ? number(1, 5) : std::nullopt;
      const auto weekday = week && accept('.') ? number(0, 6) : std::nullopt;
      if (!weekday) return std::nullopt;
      out.month = *month;
      out.week = *week;
      out.weekday = *weekday;
    } else {
      const bool without_leap = accept('J');
      const auto day = number(without_leap ? 1 : 0, 365);
      if (!day) return std::nullopt;
      out.kind = without_leap ? ZoneRuleDate::Kind::DayWithoutLeap : ZoneRuleDate::Kind::DayOfYear;
      out.day = *day;
    }
    if (accept('/')) {
      constexpr unsigned kAWeek = 167;
      const auto at = time(kAWeek);
      if (!at) return std::nullopt;
      out.time = *at;
    }
    return out;
  }

 private:
  std::string_view rest_;
};

}  // namespace

Result<ZoneRule> parse_zone_rule(std::string_view text) {
  const auto bad = [text] {
    return invalid(cat(quoted(text.substr(0, 80)), " is not a time-zone rule"));
  };
  constexpr unsigned kMostHours = 24;
  RuleReader in(text);
  ZoneRule rule;
  if (!in.name()) return bad();
  // POSIX counts westwards.
  const auto standard = in.time(kMostHours);
  if (!standard) return bad();
  rule.standard = -*standard;
  if (in.done()) return rule;
  ZoneRule::Summer summer;
  if (!in.name()) return bad();
  summer.offset = rule.standard + hours(1);
  if (in.peek() != ',') {
    const auto offset = in.time(kMostHours);
    if (!offset) return bad();
    summer.offset = -*offset;
  }
  const auto starts = in.date();
  const auto ends = starts ? in.date() : std::nullopt;
  if (!ends || !in.done()) return bad();
  summer.starts = *starts;
  summer.ends = *ends;
  rule.summer = summer;
  return rule;
}

}  // namespace stint::core
