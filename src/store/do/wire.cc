#include "store/do/wire.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "base/base64.h"
#include "base/text.h"

namespace stint::store::durable {
namespace json = boost::json;
namespace {

constexpr char kPacked = '\x01';
// The store's times are at most so far from 1970: beyond the year 9999.
constexpr std::int64_t kLatest = 1LL << 48U;

Error damaged(std::string_view what) {
  return unavailable(cat("the store gave an answer that is none (", printable(what), ")"));
}

bool plain(std::string_view text) {
  return is_utf8(text) && text.find('\0') == std::string_view::npos;
}

Status check_key(std::string_view key) {
  if (plain(key) && key.size() <= Store::kMaxKeyBytes) return {};
  return invalid(cat("this is no key of a record: ", quoted(key.substr(0, 100))));
}

Result<std::int64_t> whole(const json::object& from, std::string_view name) {
  const json::value* value = from.if_contains(name);
  if (value == nullptr || !value->is_int64()) return damaged(name);
  const std::int64_t number = value->get_int64();
  if (number > kLatest || number < -kLatest) return damaged(name);
  return number;
}

Result<std::string> text(const json::object& from, std::string_view name) {
  const json::value* value = from.if_contains(name);
  if (value == nullptr || !value->is_string()) return damaged(name);
  return std::string(value->get_string());
}

Result<std::uint64_t> digits(const json::object& from, std::string_view name) {
  auto said = text(from, name);
  if (!said) return said.error();
  const auto number = parse_digits(*said);
  if (!number) return damaged(name);
  return *number;
}

Result<const json::array*> list(const json::object& from, std::string_view name) {
  const json::value* value = from.if_contains(name);
  if (value == nullptr || !value->is_array()) return damaged(name);
  return &value->get_array();
}

Result<Timer> parse_timer(const json::object& from) {
  Timer out;
  if (!from.contains("left_ms")) return out;
  auto left = whole(from, "left_ms");
  auto ttl = whole(from, "ttl_ms");
  if (!left || !ttl || *ttl < 0) return damaged("timer");
  out.state = *left > 0 ? TimerState::Running : TimerState::Fired;
  out.remaining = Millis(std::min(*left, *ttl));
  out.ttl = Millis(*ttl);
  return out;
}

Result<Entry> parse_entry(const json::value& from, std::string key) {
  Entry out;
  out.key = std::move(key);
  if (from.is_null()) return out;
  if (!from.is_object()) return damaged("entry");
  auto value = text(from.get_object(), "value");
  if (!value) return value.error();
  auto bytes = unpacked(*value);
  if (!bytes) return bytes.error();
  out.value = std::move(*bytes);
  auto version = digits(from.get_object(), "version");
  if (!version || *version == 0) return damaged("version");
  out.version = *version;
  auto timer = parse_timer(from.get_object());
  if (!timer) return timer.error();
  out.timer = *timer;
  return out;
}

void show_time(const Stamp& stamp, std::optional<WallTime>& wall, std::optional<Nanos>& time) {
  wall = WallTime(Millis(stamp.now_ms));
  time = Millis(stamp.now_ms);
}

std::string_view word(Step::Kind kind) {
  switch (kind) {
    case Step::Kind::Check: return "check";
    case Step::Kind::Set: return "set";
    case Step::Kind::Touch: return "touch";
    case Step::Kind::Remove: return "remove";
    case Step::Kind::Append: return "append";
  }
  return "";
}

std::string_view word(TimerState state) {
  switch (state) {
    case TimerState::None: return "none";
    case TimerState::Running: return "running";
    case TimerState::Fired: return "fired";
  }
  return "";
}

bool times(const Step& step) {
  const bool kind = step.kind == Step::Kind::Set || step.kind == Step::Kind::Touch;
  return kind && (step.timer == Step::TimerOp::Start || step.timer == Step::TimerOp::Extend);
}

void add_timer(const Step& step, json::object& out) {
  if (step.kind != Step::Kind::Set && step.kind != Step::Kind::Touch) return;
  switch (step.timer) {
    case Step::TimerOp::Keep: return;
    case Step::TimerOp::Stop: out["timer"] = "stop"; return;
    case Step::TimerOp::Start: out["timer"] = "start"; break;
    case Step::TimerOp::Extend: out["timer"] = "extend"; break;
  }
  out["ttl_ms"] = step.ttl.count();
}

json::object step_json(const Step& step) {
  json::object out = {{"kind", word(step.kind)}, {"key", step.key}};
  if (step.expect == Expect::Absent) out["version"] = "0";
  if (step.expect == Expect::Seen) out["version"] = std::to_string(step.version);
  if (step.demand) out["demand"] = word(*step.demand);
  const bool writes = step.kind == Step::Kind::Set || step.kind == Step::Kind::Append;
  if (writes) out["value"] = packed(step.value);
  add_timer(step, out);
  return out;
}

// A client that may make no store says so with every request: opening asks nothing.
std::string with_right(json::object body, bool may_create) {
  if (may_create) body["create"] = true;
  return json::serialize(body);
}

}  // namespace

std::string packed(std::string_view value) {
  if (plain(value) && !value.starts_with(kPacked)) return std::string(value);
  return cat(std::string_view(&kPacked, 1), base64(value));
}

Result<std::string> unpacked(std::string_view text) {
  if (!text.starts_with(kPacked)) return std::string(text);
  auto bytes = decode_base64(text.substr(1));
  if (!bytes) return damaged("value");
  return std::move(*bytes);
}

Result<std::string> read_body(const std::vector<std::string>& keys, bool may_create) {
  if (keys.size() > kMostKeys) return invalid(cat("a read has at most ", kMostKeys, " keys"));
  json::array all;
  for (const std::string& key : keys) {
    if (auto ok = check_key(key); !ok) return ok.error();
    all.emplace_back(key);
  }
  return with_right({{"keys", std::move(all)}}, may_create);
}

Result<std::string> scan_body(const Store::ScanRange& range, bool may_create) {
  for (const std::string* key : {&range.prefix, &range.after}) {
    if (auto ok = check_key(*key); !ok) return ok.error();
  }
  json::object out = {{"prefix", range.prefix}, {"limit", std::min(range.limit, kMostKeys)}};
  if (!range.after.empty()) out["after"] = range.after;
  if (range.backwards) out["backwards"] = true;
  return with_right(std::move(out), may_create);
}

Result<std::string> count_body(const std::string& prefix, bool may_create) {
  if (auto ok = check_key(prefix); !ok) return ok.error();
  return with_right({{"prefix", prefix}, {"count", true}}, may_create);
}

Result<std::string> commit_body(const std::vector<Step>& steps, bool may_create) {
  json::array all;
  for (const Step& step : steps) {
    if (auto ok = check_key(step.key); !ok) return ok.error();
    all.emplace_back(step_json(step));
  }
  return with_right({{"steps", std::move(all)}}, may_create);
}

Result<std::string> watch_body(std::string_view key, bool may_create) {
  if (auto ok = check_key(key); !ok) return ok.error();
  return with_right({{"key", key}}, may_create);
}

Result<Stamp> parse_stamp(const json::object& from) {
  auto revision = digits(from, "revision");
  if (!revision) return revision.error();
  auto now = whole(from, "now_ms");
  if (!now) return now.error();
  return Stamp{*revision, *now};
}

Result<Reading> parse_reading(const json::object& from, const std::vector<std::string>& keys) {
  auto stamp = parse_stamp(from);
  if (!stamp) return stamp.error();
  auto entries = list(from, "entries");
  if (!entries) return entries.error();
  if ((*entries)->size() != keys.size()) return damaged("entries");
  Reading out;
  show_time(*stamp, out.store_wall, out.store_time);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto entry = parse_entry((**entries)[i], keys[i]);
    if (!entry) return entry.error();
    out.entries.push_back(std::move(*entry));
  }
  return out;
}

Result<Page> parse_page(const json::object& from) {
  auto stamp = parse_stamp(from);
  if (!stamp) return stamp.error();
  auto entries = list(from, "entries");
  if (!entries) return entries.error();
  Page out;
  show_time(*stamp, out.reading.store_wall, out.reading.store_time);
  const json::value* more = from.if_contains("more");
  if (more == nullptr || !more->is_bool()) return damaged("more");
  out.more = more->get_bool();
  for (const json::value& one : **entries) {
    if (!one.is_object()) return damaged("entry");
    auto key = text(one.get_object(), "key");
    if (!key) return key.error();
    auto entry = parse_entry(one, std::move(*key));
    if (!entry) return entry.error();
    out.reading.entries.push_back(std::move(*entry));
  }
  return out;
}

Result<std::uint64_t> parse_count(const json::object& from) {
  auto count = whole(from, "count");
  if (!count || *count < 0) return damaged("count");
  return static_cast<std::uint64_t>(*count);
}

Result<CommitAnswer> parse_commit(const json::object& from, const std::vector<Step>& steps) {
  if (from.contains("conflict")) {
    auto step = whole(from, "conflict");
    const bool good = step && *step >= 0 && static_cast<std::size_t>(*step) < steps.size();
    if (!good) return damaged("conflict");
    return CommitAnswer(Conflict{static_cast<std::size_t>(*step)});
  }
  auto stamp = parse_stamp(from);
  if (!stamp) return stamp.error();
  auto versions = list(from, "versions");
  if (!versions || (*versions)->size() != steps.size()) return damaged("versions");
  Committed out;
  out.revision = stamp->revision;
  show_time(*stamp, out.store_wall, out.store_time);
  for (const json::value& one : **versions) {
    const auto version =
        one.is_string() ? parse_digits(std::string_view(one.get_string())) : std::nullopt;
    if (!version) return damaged("versions");
    out.versions.push_back(*version);
  }
  for (const Step& step : steps) out.granted_ttl.push_back(times(step) ? step.ttl : Millis(0));
  return CommitAnswer(std::move(out));
}

Result<About> parse_about(const json::object& from) {
  const json::value* about = from.if_contains("about");
  if (about == nullptr || !about->is_object()) return damaged("about");
  const json::object& said = about->get_object();
  auto worker = text(said, "worker");
  auto ahead = whole(said, "ahead_ms");
  if (!worker || !ahead) return damaged("about");
  auto colo = text(said, "colo");
  return About{printable(*worker), colo ? printable(*colo) : std::string(), *ahead};
}

}  // namespace stint::store::durable
