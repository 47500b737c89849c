// The parser of cron expressions. Every refusal names the field and what is wrong with it.
#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/text.h"
#include "base/time.h"
#include "core/cron.h"
#include "core/cron_days.h"

namespace stint::core {
namespace {

constexpr std::array<std::string_view, 12> kMonthNames = {"jan", "feb", "mar", "apr", "may", "jun",
                                                          "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kDayNames = {"sun", "mon", "tue", "wed",
                                                       "thu", "fri", "sat"};

struct Field {
  std::string_view name;
  unsigned first;
  unsigned last;
  unsigned cycle;  // a range that goes backwards wraps around after so many
  std::span<const std::string_view> names{};
};
constexpr Field kSeconds{"seconds", 0, 59, 60};
constexpr Field kMinutes{"minutes", 0, 59, 60};
constexpr Field kHours{"hours", 0, 23, 24};
constexpr Field kDays{"day of month", 1, 31, 31};
constexpr Field kMonths{"month", 1, 12, 12, kMonthNames};
// 7 is Sunday too.
constexpr Field kWeekdays{"day of week", 0, 7, 7, kDayNames};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

Error wrong(const Field& field, std::string_view why) {
  return invalid(cat(field.name, ": ", why));
}

std::string allowed(const Field& field) {
  std::string out = cat(field.first, " to ", field.last);
  if (!field.names.empty()) out += cat(" or ", field.names.front(), " to ", field.names.back());
  return out;
}

// A number of one or two digits within bounds.
std::optional<unsigned> small_number(std::string_view text, unsigned least, unsigned most) {
  constexpr std::size_t kDigits = 2;
  const auto number = parse_digits(text);
  if (!number || text.size() > kDigits || *number < least || *number > most) return std::nullopt;
  return static_cast<unsigned>(*number);
}

Result<unsigned> value_of(const Field& field, std::string_view text, std::string_view item) {
  for (std::size_t i = 0; i < field.names.size(); ++i) {
    if (field.names[i] == text) return static_cast<unsigned>(i) + field.first;
  }
  if (const auto number = small_number(text, field.first, field.last)) return *number;
  if (text.empty()) return wrong(field, cat("a number is missing in ", quoted(item)));
  if (text == "*" || text == "?") {
    return wrong(field, cat(quoted(text), " stands alone, or with a step: */5"));
  }
  if (text.find_first_not_of("0123456789") == std::string_view::npos) {
    return wrong(field, cat(quoted(text), " is not within ", allowed(field),
                            text.size() > 2 ? ", in at most two digits" : ""));
  }
  return wrong(field, cat(quoted(text), " is not understood; ", allowed(field)));
}

struct Range {
  unsigned from = 0;
  unsigned to = 0;
  unsigned step = 1;
};

// Around the end where it goes backwards; so the days of the week turn 7 into 0 as well.
std::uint64_t bits_of(const Field& field, const Range& range) {
  const unsigned length =
      range.to >= range.from ? range.to - range.from : range.to + field.cycle - range.from;
  std::uint64_t out = 0;
  for (unsigned k = 0; k <= length; k += range.step) {
    out |= bit(field.first + (range.from - field.first + k) % field.cycle);
  }
  return out;
}

// "5", "1-5", "1-5/2", "3/10", "*", "*/10"
Result<std::uint64_t> item_of(const Field& field, std::string_view item, bool alone) {
  Range range{field.first, field.last, 1};
  const std::size_t slash = item.find('/');
  const std::string_view base = item.substr(0, slash);
  const bool star = alone && (base == "*" || base == "?");
  if (!star) {
    const std::size_t dash = base.find('-');
    const auto from = value_of(field, base.substr(0, dash), item);
    if (!from) return from.error();
    range.from = *from;
    if (dash != std::string_view::npos) {
      const auto to = value_of(field, base.substr(dash + 1), item);
      if (!to) return to.error();
      range.to = *to;
    } else if (slash == std::string_view::npos) {
      range.to = range.from;
    }
  }
  if (slash != std::string_view::npos) {
    const std::string_view text = item.substr(slash + 1);
    const auto step = small_number(text, 1, field.last);
    if (!step) {
      return wrong(field,
                   cat("the step ", quoted(text), " is not a number from 1 to ", field.last));
    }
    range.step = *step;
  }
  return bits_of(field, range);
}

Result<std::uint64_t> set_of(const Field& field, std::string_view text) {
  std::uint64_t out = 0;
  const auto items = split(text, ',');
  for (const std::string_view item : items) {
    if (item.empty()) return wrong(field, cat("an item of the list ", quoted(text), " is empty"));
    const auto bits = item_of(field, item, items.size() == 1);
    if (!bits) return bits.error();
    out |= *bits;
  }
  return out;
}

bool unrestricted(std::string_view text) {
  return text == "*" || text == "?" || text == "*/1" || text == "?/1";
}

// L, LW, L-3, L-3W, 15W, or a set.
Status read_days(std::string_view text, CronExpression& out) {
  out.any_day = unrestricted(text);
  std::string_view day = text;
  if (day.ends_with('w')) {
    day.remove_suffix(1);
    out.nearest_weekday = true;
  }
  if (day.starts_with('l')) {
    out.from_last = 0;
    if (day == "l") return {};
    constexpr unsigned kMost = 30;
    const auto back = day.starts_with("l-") ? small_number(day.substr(2), 0, kMost) : std::nullopt;
    if (!back) {
      return wrong(kDays, cat(quoted(text), " is not understood; L, LW, or L-1 to L-30, L-3W"));
    }
    out.from_last = *back;
    return {};
  }
  if (out.nearest_weekday) {
    const auto one = small_number(day, kDays.first, kDays.last);
    if (!one) {
      return wrong(kDays, cat(quoted(text), " is not understood; W follows one day, alone: 15W"));
    }
    out.days = bit(*one);
    return {};
  }
  const auto set = set_of(kDays, text);
  if (!set) return set.error();
  out.days = *set;
  return {};
}

// 5L, MONL, 5#3, 5#L, or a set.
Status read_weekdays(std::string_view text, CronExpression& out) {
  out.any_weekday = unrestricted(text);
  const std::size_t hash = text.find('#');
  std::string_view day = text;
  if (hash != std::string_view::npos) {
    const std::string_view which = text.substr(hash + 1);
    constexpr unsigned kMost = 5;
    out.last_of_week = which == "l";
    out.nth_of_week = small_number(which, 1, kMost);
    if (!out.last_of_week && (!out.nth_of_week || which.size() != 1)) {
      return wrong(kWeekdays, cat(quoted(text), ": after # stands 1 to 5, or L for the last"));
    }
    day = text.substr(0, hash);
  } else if (text.ends_with('l')) {
    out.last_of_week = true;
    day.remove_suffix(1);
    if (day.empty()) {
      return wrong(kWeekdays, "'L' needs a day: 5L or friL is the last Friday of the month");
    }
  }
  if (out.last_of_week || out.nth_of_week) {
    const auto one = value_of(kWeekdays, day, text);
    if (!one) return one.error();
    out.weekdays = bit(*one % kWeekdays.cycle);
    return {};
  }
  const auto set = set_of(kWeekdays, text);
  if (!set) return set.error();
  out.weekdays = *set;
  return {};
}

Result<CronExpression> read_fields(std::span<const std::string> fields) {
  CronExpression out;
  constexpr std::size_t kWithSeconds = 6;
  const bool with_seconds = fields.size() == kWithSeconds;
  out.seconds = bit(0);
  struct Part {
    const Field* field;
    std::uint64_t* set;
  };
  std::size_t at = 0;
  for (const Part& part :
       {Part{&kSeconds, &out.seconds}, Part{&kMinutes, &out.minutes}, Part{&kHours, &out.hours}}) {
    if (part.field == &kSeconds && !with_seconds) continue;
    const std::string& text = fields[at++];
    const auto set = set_of(*part.field, text);
    if (!set) return set.error();
    *part.set = *set;
    out.interval = out.interval || text.find_first_of("*?/-") != std::string::npos;
  }
  if (auto ok = read_days(fields[at++], out); !ok) return ok.error();
  const auto months = set_of(kMonths, fields[at++]);
  if (!months) return months.error();
  out.months = *months;
  if (auto ok = read_weekdays(fields[at], out); !ok) {
    Error error = ok.error();
    if (with_seconds) error.message += " (of six fields the first is the seconds)";
    return error;
  }
  return out;
}

Result<CronExpression> read_every(std::string_view text) {
  const auto every = parse_duration(text);
  if (!every) return Error(every.error()).during("reading @every");
  if (every->count() % 1000 != 0) return invalid("@every counts whole seconds");
  CronExpression out;
  out.every = std::chrono::duration_cast<std::chrono::seconds>(*every);
  return out;
}

Result<CronExpression> read_nickname(std::span<const std::string> words) {
  struct Nickname {
    std::string_view name;
    std::array<std::string_view, 6> fields;
  };
  constexpr std::array<Nickname, 9> kNicknames = {
      {{"@yearly", {"0", "0", "0", "1", "1", "*"}},
       {"@annually", {"0", "0", "0", "1", "1", "*"}},
       {"@monthly", {"0", "0", "0", "1", "*", "*"}},
       {"@weekly", {"0", "0", "0", "*", "*", "0"}},
       {"@daily", {"0", "0", "0", "*", "*", "*"}},
       {"@midnight", {"0", "0", "0", "*", "*", "*"}},
       {"@hourly", {"0", "0", "*", "*", "*", "*"}},
       {"@every_minute", {"0", "*", "*", "*", "*", "*"}},
       {"@every_second", {"*", "*", "*", "*", "*", "*"}}}};
  const std::string& name = words.front();
  if (name == "@every") {
    if (words.size() != 2) return invalid("@every needs one duration: @every 45m");
    return read_every(words[1]);
  }
  if (name == "@reboot") return invalid("@reboot is no time: start such work from the system");
  for (const Nickname& nickname : kNicknames) {
    if (nickname.name != name) continue;
    if (words.size() != 1) return invalid(cat(name, " stands alone"));
    return read_fields(std::vector<std::string>(nickname.fields.begin(), nickname.fields.end()));
  }
  return invalid(cat("there is no nickname ", quoted(name),
                     "; @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, "
                     "@every_minute, @every_second, @every 45m"));
}

Result<CronExpression> read(std::vector<std::string> words) {
  std::string zone;
  if (!words.empty() &&
      (words.front().starts_with("TZ=") || words.front().starts_with("CRON_TZ="))) {
    zone = words.front().substr(words.front().find('=') + 1);
    if (zone.empty()) return invalid("the zone after TZ= is missing: CRON_TZ=Europe/Berlin");
    words.erase(words.begin());
  }
  for (std::string& word : words) word = lower(word);
  if (words.empty()) return invalid("it is empty; five fields: minutes hours day month weekday");
  auto out =
      words.front().starts_with('@') ? read_nickname(words) : [&]() -> Result<CronExpression> {
    constexpr std::size_t kFewest = 5;
    constexpr std::size_t kMost = 6;
    if (words.size() < kFewest || words.size() > kMost) {
      return invalid(cat("it has ", words.size(), words.size() == 1 ? " field" : " fields",
                         "; five (minutes hours day month weekday), or six with seconds in front",
                         words.size() > kMost ? "; there is no field for the year" : ""));
    }
    return read_fields(words);
  }();
  if (out) out->zone = zone;
  return out;
}

}  // namespace

Result<CronExpression> parse_cron(std::string_view text) {
  constexpr std::size_t kLongest = 1000;
  if (text.size() > kLongest) {
    return invalid(cat("a cron expression has at most ", kLongest, " bytes"));
  }
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = std::min(text.find_first_not_of(" \t", at), text.size());
    at = std::min(text.find_first_of(" \t", begin), text.size());
    if (at > begin) words.emplace_back(text.substr(begin, at - begin));
  }
  auto out = read(std::move(words));
  if (!out) return invalid(cat("the cron expression ", quoted(text), ": ", out.error().message));
  return out;
}

}  // namespace stint::core
