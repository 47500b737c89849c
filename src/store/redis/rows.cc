#include "store/redis/rows.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "store/redis/faults.h"

namespace stint::store::redis {
namespace {

constexpr std::uint64_t kMost = 1ULL << 53U;  // Lua counts in doubles

// `count` numbers, each followed by a blank; what comes after them is left in `text`.
template <std::size_t count>
std::optional<std::array<std::uint64_t, count>> take_numbers(std::string_view& text) {
  std::array<std::uint64_t, count> out{};
  for (std::uint64_t& number : out) {
    const std::size_t blank = text.find(' ');
    if (blank == text.npos) return std::nullopt;
    const auto parsed = parse_digits(text.substr(0, blank));
    if (!parsed || *parsed > kMost) return std::nullopt;
    number = *parsed;
    text.remove_prefix(blank + 1);
  }
  return out;
}

std::optional<std::int64_t> number_of(const Reply& reply) {
  if (!reply.is(Reply::Kind::Bulk)) return std::nullopt;
  const auto number = parse_digits(reply.text);
  if (!number || *number > kMost) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

}  // namespace

Result<Now> read_now(const Reply& field, const Reply& seconds, const Reply& micros) {
  const std::string text = cat(field.text, " ");
  std::string_view rest = text;
  const auto numbers = take_numbers<4>(rest);
  const auto s = number_of(seconds);
  const auto us = number_of(micros);
  if (!field.is(Reply::Kind::Bulk) || !numbers || !rest.empty() || !s || !us ||
      *s > static_cast<std::int64_t>(kMost) / 1'000'000) {
    return damaged("its time cannot be read");
  }
  const auto last = static_cast<std::int64_t>((*numbers)[2]);
  const auto ahead = static_cast<std::int64_t>((*numbers)[3]);
  Now out;
  out.revision = (*numbers)[0];
  out.raw_us = *s * 1'000'000 + *us;
  out.now_us = std::max(out.raw_us, last) + ahead;  // the same rule as in the script   G4
  return out;
}

Result<Entry> read_entry(std::string key, const Reply& field, const Now& now) {
  Entry out;
  out.key = std::move(key);
  if (field.is(Reply::Kind::Nil)) return out;
  std::string_view rest = field.text;
  const auto numbers = take_numbers<3>(rest);
  if (!field.is(Reply::Kind::Bulk) || !numbers || (*numbers)[0] == 0) {
    return damaged(cat("the record ", quoted(out.key), " cannot be read"));
  }
  out.version = (*numbers)[0];
  out.value = rest;
  const auto fires = static_cast<std::int64_t>((*numbers)[1]);
  if (fires == 0) return out;
  const Millis ttl(static_cast<std::int64_t>((*numbers)[2]));
  out.timer.state = now.now_us < fires ? TimerState::Running : TimerState::Fired;
  // Rounded up, so that it never shows less than it has; and never more than its length.   G4
  const auto left = std::chrono::ceil<Millis>(std::chrono::microseconds(fires - now.now_us));
  out.timer.remaining = std::min(left, ttl);
  out.timer.ttl = ttl;
  return out;
}

std::string step_code(const Step& step) {
  std::string out;
  switch (step.kind) {
    case Step::Kind::Check: out += 'C'; break;
    case Step::Kind::Set: out += 'S'; break;
    case Step::Kind::Touch: out += 'T'; break;
    case Step::Kind::Remove: out += 'R'; break;
    case Step::Kind::Append: out += 'A'; break;
  }
  switch (step.expect) {
    case Expect::Any: out += '*'; break;
    case Expect::Absent: out += '0'; break;
    case Expect::Seen: out += '='; break;
  }
  if (!step.demand) {
    out += '*';
  } else {
    switch (*step.demand) {
      case TimerState::None: out += 'n'; break;
      case TimerState::Running: out += 'r'; break;
      case TimerState::Fired: out += 'f'; break;
    }
  }
  switch (step.timer) {
    case Step::TimerOp::Keep: out += 'k'; break;
    case Step::TimerOp::Stop: out += 'x'; break;
    case Step::TimerOp::Start: out += 's'; break;
    case Step::TimerOp::Extend: out += 'e'; break;
  }
  return out;
}

std::optional<Bounds> bounds_of(const Store::ScanRange& range) {
  // Everything that begins with the prefix stands below the prefix with a byte that no text has.
  const std::string end = range.prefix + "\xFF";
  std::string low = cat('[', range.prefix);
  std::string high = cat('(', end);
  const bool within = range.prefix <= range.after && range.after < end;
  if (!range.backwards) {
    if (range.after >= end) return std::nullopt;
    if (within && !range.after.empty()) low = cat('(', range.after);
    return Bounds{std::move(low), std::move(high)};
  }
  if (!range.after.empty()) {
    if (range.after < range.prefix) return std::nullopt;
    if (within) high = cat('(', range.after);
  }
  return Bounds{std::move(high), std::move(low)};
}

}  // namespace stint::store::redis
