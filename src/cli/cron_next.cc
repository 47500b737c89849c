// stint cron next: the times at which an expression fires.
#include "api/json.h"
#include "app/zones.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "cli/cron.h"
#include "cli/exit_codes.h"
#include "cli/session.h"
#include "core/cron.h"

namespace stint::cli {
namespace {

struct NextAsked {
  core::CronExpression expression;
  std::string zone_name;
  core::Zone zone;
  WallTime after;
  bool inclusive = false;
  bool previous = false;
  std::uint64_t count = 5;
};

Result<std::string> zone_name(Session& session, const core::CronExpression& expression) {
  const auto given = session.words().value("--tz");
  if (expression.zone.empty()) return given.value_or("UTC");
  if (given && *given != expression.zone) {
    session.say(cat("the expression's own zone ", quoted(expression.zone), " counts, not --tz ",
                    printable(*given)));
  }
  return expression.zone;
}

Result<NextAsked> next_asked(Session& session) {
  const Words& words = session.words();
  NextAsked out;
  auto expression = core::parse_cron(words.operands()[1]);
  if (!expression) return expression.error();
  out.expression = std::move(*expression);
  auto name = zone_name(session, out.expression);
  if (!name) return name.error();
  out.zone_name = *name;
  auto zone = app::find_zone(out.zone_name, session.environment());
  if (!zone) return zone.error();
  out.zone = std::move(*zone);
  out.after = session.clock().wall();
  if (const auto text = words.value("--after")) {
    const auto after = parse_rfc3339(*text);
    if (!after) return Error{Code::Invalid, cat("--after: ", after.error().message)};
    out.after = *after;
  }
  out.inclusive = words.has("--inclusive");
  out.previous = words.has("--previous");
  if (const auto text = words.value("-n")) {
    constexpr std::uint64_t kMost = 100'000;
    const auto count = parse_digits(*text);
    if (!count || *count < 1 || *count > kMost) {
      return invalid(cat("-n ", quoted(*text), " is not a number from 1 to ", kMost));
    }
    out.count = *count;
  }
  return out;
}

std::vector<core::CronTime> times(const NextAsked& asked) {
  const std::chrono::sys_time<Millis> after(asked.after.time_since_epoch());
  auto from = std::chrono::floor<std::chrono::seconds>(after);
  // Slots are whole seconds: within one, the last has passed and the next has not come.
  const bool between = from != after;
  const bool inclusive = between ? asked.previous : asked.inclusive;
  auto bound = inclusive ? core::Bound::Inclusive : core::Bound::Exclusive;
  std::vector<core::CronTime> out;
  while (out.size() < asked.count) {
    const auto found = asked.previous
                           ? core::previous_time(asked.expression, asked.zone, from, bound)
                           : core::next_time(asked.expression, asked.zone, from, bound);
    if (!found) break;
    out.push_back(*found);
    from = found->instant;
    bound = core::Bound::Exclusive;
  }
  return out;
}

}  // namespace

int cron_next(Session& session) {
  const auto asked = next_asked(session);
  if (!asked) return session.fail(asked.error());
  const std::vector<core::CronTime> found = times(*asked);
  std::vector<std::vector<api::JsonField>> rows;
  for (const core::CronTime& time : found) {
    const std::string at = format_rfc3339(time.instant, time.offset);
    if (session.json()) {
      const Millis since = time.instant.time_since_epoch();
      rows.push_back({{"at", at},
                      {"at_ms", since.count()},
                      {"nominal", format_local(time.nominal)},
                      {"zone", asked->zone_name}});
    } else {
      session.print(at);
    }
  }
  if (session.json()) session.print(api::to_json(rows));
  if (!found.empty()) return kDone;
  if (!session.json()) session.print("never");
  if (core::ever_fires(asked->expression)) {
    session.say("it fires, but not there: times go from the year 1 to the year 9999");
  }
  return kFailed;
}

}  // namespace stint::cli
