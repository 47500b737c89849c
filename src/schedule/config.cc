// toml++ is slow to compile and throws: it stays in this one file.
#define TOML_EXCEPTIONS 0
// "[[= 1" is an assertion in it, and an ordinary error a few lines further: a file must not end us.
#define TOML_ASSERT(expr) static_assert(true)
#include "schedule/config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/toml_letters.h"
#include "core/holder_policy.h"

namespace stint::schedule {
namespace {

constexpr Millis kDefaultTtl{90'000};
constexpr Millis kDefaultBackoff{10'000};
constexpr std::int64_t kMostRetries = 100;
constexpr std::int64_t kMostConcurrency = 10'000;
constexpr std::size_t kMostJobNameBytes = 200;
// It stands in the job's record, which has a size.
constexpr std::size_t kMostScheduleBytes = 250;

constexpr std::array<std::string_view, 18> kJobKeys = {
    "schedule", "tz",       "command",          "resource",       "ttl",
    "on_held",  "or",       "max_backfill",     "backfill_order", "start_deadline",
    "at_least", "max_hold", "progress_timeout", "seal",           "env",
    "dir",      "retries",  "backoff"};

Error at(const std::string& path, const toml::source_region& where, std::string_view why) {
  return invalid(cat(path, ":", where.begin.line, ":", where.begin.column, ": ", why));
}

std::string toml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    constexpr unsigned char kFirstPrintable = 0x20;
    constexpr unsigned char kDelete = 0x7F;
    if (c == '"' || c == '\\') {
      out += cat('\\', c);
    } else if (byte < kFirstPrintable || byte == kDelete) {
      out += cat("\\u00", to_hex(std::string_view(&c, 1)));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// What a job's table has in it once it was read: strings, whole numbers, lists and a table of
// strings. (toml++'s own writer needs the mathematical library, which the program does without.)
std::string toml_text(const toml::node& node) {
  std::string out;
  if (const auto* text = node.as_string()) return toml_text(text->get());
  if (const auto* number = node.as_integer()) return cat(number->get());
  if (const toml::array* list = node.as_array()) {
    for (const toml::node& item : *list) out += cat(out.empty() ? "" : ", ", toml_text(item));
    return cat("[", out, "]");
  }
  if (const toml::table* table = node.as_table()) {
    for (const auto& [key, value] : *table) {
      out += cat(out.empty() ? "" : ", ", toml_text(key.str()), " = ", toml_text(value));
    }
  }
  return cat("{ ", out, " }");
}

// Reads one job's table; the first thing that is wrong ends it.
class JobReader {
 public:
  JobReader(const std::string& path, std::string name, const toml::table& table,
            const FindZone& find_zone)
      : path_(path), name_(std::move(name)), table_(table), find_zone_(find_zone) {}

  Result<JobConfig> go() {
    if (auto ok = known_keys(); !ok) return ok.error();
    if (auto ok = schedule(); !ok) return ok.error();
    if (auto ok = command(); !ok) return ok.error();
    if (auto ok = resources(); !ok) return ok.error();
    if (auto ok = times(); !ok) return ok.error();
    if (auto ok = catching_up(); !ok) return ok.error();
    if (auto ok = texts("seal", out_.seal); !ok) return ok.error();
    if (auto ok = environment(); !ok) return ok.error();
    auto dir = text("dir");
    if (!dir) return dir.error();
    out_.dir = dir->value_or("");
    if (out_.dir.find('\0') != std::string::npos) {
      return wrong(*table_.get("dir"), "dir", "must not contain a NUL byte");
    }
    out_.source = cat("[job.", toml_text(name_), "]\n");
    for (const auto& [key, node] : table_) {
      out_.source += cat(key.str(), " = ", toml_text(node), "\n");
    }
    return std::move(out_);
  }

 private:
  Error wrong(const toml::node& node, std::string_view key, std::string_view why) const {
    return at(path_, node.source(), cat("job ", quoted(name_), ": ", key, ": ", why));
  }

  Status known_keys() const {
    for (const auto& [key, node] : table_) {
      if (std::ranges::find(kJobKeys, key.str()) != kJobKeys.end()) continue;
      std::string known;
      for (const std::string_view each : kJobKeys) known += cat(known.empty() ? "" : ", ", each);
      return at(
          path_, key.source(),
          cat("job ", quoted(name_), ": unknown key ", quoted(key.str()), " (known: ", known, ")"));
    }
    return {};
  }

  Result<std::optional<std::string>> text(std::string_view key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return std::optional<std::string>();
    const auto value = node->value<std::string>();
    if (!value || !node->is_string()) return wrong(*node, key, "must be a string");
    return std::optional<std::string>(*value);
  }

  // A list of strings, or one string.
  Status texts(std::string_view key, std::vector<std::string>& out) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    if (const auto one = node->value<std::string>(); one && node->is_string()) {
      out.push_back(*one);
      return {};
    }
    const toml::array* list = node->as_array();
    if (list == nullptr) return wrong(*node, key, "must be a list of strings");
    for (const toml::node& item : *list) {
      const auto value = item.value<std::string>();
      if (!value || !item.is_string()) return wrong(item, key, "must be a list of strings");
      out.push_back(*value);
    }
    return {};
  }

  Result<std::optional<Millis>> duration(std::string_view key) const {
    auto found = text(key);
    if (!found) return found.error();
    if (!*found) return std::optional<Millis>();
    auto parsed = parse_duration(**found);
    if (!parsed) return wrong(*table_.get(key), key, parsed.error().message);
    return std::optional<Millis>(*parsed);
  }

  Result<std::int64_t> number(std::string_view key, std::int64_t most,
                              std::int64_t fallback) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return fallback;
    const auto value = node->value<std::int64_t>();
    if (!value || !node->is_integer() || *value < 0 || *value > most) {
      return wrong(*node, key, cat("must be a whole number from 0 to ", most));
    }
    return *value;
  }

  Status schedule() {
    core::JobRule& rule = out_.rule;
    const bool good = !name_.empty() && name_.size() <= kMostJobNameBytes && is_utf8(name_) &&
                      !has_control(name_) && name_.find('@') == std::string::npos;
    if (!good) {
      return at(path_, table_.source(),
                "a job's name is 1 to 200 bytes without control characters and without @");
    }
    rule.name = name_;
    auto found = text("schedule");
    if (!found) return found.error();
    if (!*found) return at(path_, table_.source(), cat("job ", quoted(name_), ": no schedule"));
    rule.schedule = **found;
    const toml::node& node = *table_.get("schedule");
    if (rule.schedule.size() > kMostScheduleBytes) {
      return wrong(node, "schedule", cat("is longer than ", kMostScheduleBytes, " bytes"));
    }
    auto expression = core::parse_cron(rule.schedule);
    if (!expression) return wrong(node, "schedule", expression.error().message);
    if (!core::ever_fires(*expression)) return wrong(node, "schedule", "it never fires");
    rule.expression = std::move(*expression);
    auto tz = text("tz");
    if (!tz) return tz.error();
    rule.tz = tz->value_or("");
    const std::string zone = core::zone_name(rule.expression, rule.tz);
    auto clock = find_zone_(zone);
    const toml::node* where = table_.get("tz");
    if (!clock) return wrong(where == nullptr ? node : *where, "tz", clock.error().message);
    rule.zone = std::move(*clock);
    rule.digest = core::schedule_digest(rule.schedule, zone);
    return {};
  }

  Status command() {
    const toml::node* node = table_.get("command");
    if (node == nullptr)
      return at(path_, table_.source(), cat("job ", quoted(name_), ": no command"));
    if (auto ok = texts("command", out_.command); !ok) return ok;
    if (out_.command.empty() || out_.command.front().empty()) {
      return wrong(*node, "command", "must not be empty");
    }
    for (const std::string& word : out_.command) {
      if (word.find('\0') != std::string::npos) {
        return wrong(*node, "command", "must not contain a NUL byte");
      }
    }
    if (node->is_string()) out_.command = {"/bin/sh", "-c", out_.command.front()};
    return {};
  }

  Status resources() {
    auto first = text("resource");
    if (!first) return first.error();
    std::vector<std::string> names = {first->value_or(name_)};
    if (auto ok = texts("or", names); !ok) return ok;
    for (const std::string& each : names) {
      auto name = ResourceName::parse(each);
      const toml::node* node = table_.get("resource");
      if (!name) return wrong(node == nullptr ? table_ : *node, "resource", name.error().message);
      out_.resources.push_back(*name);
    }
    auto held = text("on_held");
    if (!held) return held.error();
    if (!*held) return {};
    auto policy = holder::parse_held_policy(**held);
    if (!policy) return wrong(*table_.get("on_held"), "on_held", policy.error().message);
    out_.held = *policy;
    out_.rule.waits = policy->what == holder::OnHeld::Wait || policy->what == holder::OnHeld::Retry;
    return {};
  }

  Status times() {
    auto ttl = duration("ttl");
    if (!ttl) return ttl.error();
    out_.terms.ttl = ttl->value_or(kDefaultTtl);
    const toml::node* node = table_.get("ttl");
    if (out_.terms.ttl < core::kShortestRunTtl) return wrong(*node, "ttl", "1s is the least");
    for (auto [key, target] : {std::pair{"at_least", &out_.terms.at_least},
                               std::pair{"max_hold", &out_.terms.max_hold}}) {
      auto length = duration(key);
      if (!length) return length.error();
      *target = length->value_or(Millis(0));
    }
    const toml::node& where = node == nullptr ? static_cast<const toml::node&>(table_) : *node;
    if (auto ok = core::check_terms(out_.terms); !ok)
      return wrong(where, "ttl", ok.error().message);
    auto progress = duration("progress_timeout");
    if (!progress) return progress.error();
    out_.progress_timeout = *progress;
    auto start = duration("start_deadline");
    if (!start) return start.error();
    out_.rule.start_deadline = *start;
    return {};
  }

  Status catching_up() {
    auto backfill = number("max_backfill", core::kMostBackfill, 1);
    if (!backfill) return backfill.error();
    out_.rule.max_backfill = static_cast<std::size_t>(*backfill);
    auto order = text("backfill_order");
    if (!order) return order.error();
    if (*order && **order != "oldest" && **order != "newest") {
      return wrong(*table_.get("backfill_order"), "backfill_order", "is oldest or newest");
    }
    out_.rule.newest_first = *order && **order == "newest";
    auto retries = number("retries", kMostRetries, 0);
    if (!retries) return retries.error();
    out_.rule.retries = static_cast<int>(*retries);
    auto backoff = duration("backoff");
    if (!backoff) return backoff.error();
    out_.rule.backoff = backoff->value_or(kDefaultBackoff);
    return {};
  }

  Status environment() {
    const toml::node* node = table_.get("env");
    if (node == nullptr) return {};
    const toml::table* table = node->as_table();
    if (table == nullptr) return wrong(*node, "env", "must be a table of strings");
    for (const auto& [key, value] : *table) {
      const auto text = value.value<std::string>();
      const bool good = text && value.is_string() && text->find('\0') == std::string::npos;
      if (!good) return wrong(value, "env", "must be a table of strings");
      if (key.str().empty() || key.str().find('=') != std::string_view::npos) {
        return wrong(value, "env", "a variable's name is not empty and has no =");
      }
      out_.env.emplace_back(key.str(), *text);
    }
    return {};
  }

  const std::string& path_;
  const std::string name_;
  const toml::table& table_;
  const FindZone& find_zone_;
  JobConfig out_;
};

Status read_jobs(const std::string& path, const toml::node& node, const FindZone& find_zone,
                 Config& out) {
  const toml::table* jobs = node.as_table();
  if (jobs == nullptr) return at(path, node.source(), "job must be tables: [job.NAME]");
  for (const auto& [name, job] : *jobs) {
    const toml::table* table = job.as_table();
    if (table == nullptr) {
      out.problems.push_back(
          at(path, job.source(), cat("job ", quoted(name.str()), " must be a table")));
      continue;
    }
    auto read = JobReader(path, std::string(name.str()), *table, find_zone).go();
    if (read) {
      out.jobs.push_back(std::move(*read));
    } else {
      out.problems.push_back(read.error());
    }
  }
  return {};
}

// A wrong queue is an error of the file: whoever works on it would go by other limits.
Status read_queues(const std::string& path, const toml::node& node,
                   std::vector<api::QueueConfig>& out) {
  const toml::table* queues = node.as_table();
  if (queues == nullptr) return at(path, node.source(), "queue must be tables: [queue.NAME]");
  for (const auto& [key, value] : *queues) {
    auto name = core::QueueName::parse(key.str());
    if (!name) return at(path, key.source(), name.error().message);
    const toml::table* table = value.as_table();
    if (table == nullptr) return at(path, value.source(), "a queue must be a table");
    api::QueueConfig config{.name = *name, .limits = {}};
    for (const auto& [limit, told] : *table) {
      const auto* text = told.as_string();
      const auto* number = told.as_integer();
      if (text == nullptr && number == nullptr) {
        return at(path, told.source(),
                  cat("queue ", quoted(key.str()), ": ", limit.str(), ": a string or a number"));
      }
      auto set = api::declare_limit(config.limits, limit.str(),
                                    text != nullptr ? text->get() : cat(number->get()));
      if (!set) {
        return at(path, told.source(),
                  cat("queue ", quoted(key.str()), ": ", limit.str(), ": ", set.error().message));
      }
    }
    if (auto fine = core::check_limits(config.limits); !fine) {
      return at(path, table->source(),
                cat("queue ", quoted(key.str()), ": ", fine.error().message));
    }
    out.push_back(std::move(config));
  }
  return {};
}

Status read_top(const std::string& path, std::string_view key, const toml::node& node,
                const FindZone& find_zone, Config& out) {
  if (key == "job") return read_jobs(path, node, find_zone, out);
  if (key == "queue") return read_queues(path, node, out.queues);
  if (key == "concurrency") {
    const auto value = node.value<std::int64_t>();
    if (!value || !node.is_integer() || *value < 1 || *value > kMostConcurrency) {
      return at(path, node.source(),
                cat("concurrency must be a whole number from 1 to ", kMostConcurrency));
    }
    out.concurrency = static_cast<std::size_t>(*value);
    return {};
  }
  const auto text = node.value<std::string>();
  if (!text || !node.is_string()) return at(path, node.source(), cat(key, " must be a string"));
  if (key == "store") {
    out.store = *text;
    return {};
  }
  // Zero is a meaning of its own here.
  auto stagger = *text == "0s" ? Result<Millis>(Millis(0)) : parse_duration(*text);
  if (!stagger) return at(path, node.source(), cat("stagger: ", stagger.error().message));
  out.stagger = *stagger;
  return {};
}

}  // namespace

Result<Config> parse_config(const std::string& text, const std::string& path,
                            const FindZone& find_zone) {
  if (auto ok = check_toml_letters(text, path); !ok) return ok.error();
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) return at(path, parsed.error().source(), parsed.error().description());
  Config out;
  for (const auto& [key, node] : parsed.table()) {
    const std::string_view name = key.str();
    constexpr std::array<std::string_view, 5> kTopKeys = {"job", "queue", "store", "concurrency",
                                                          "stagger"};
    if (std::ranges::find(kTopKeys, name) == kTopKeys.end()) {
      return at(path, key.source(),
                cat("unknown key ", quoted(name),
                    " (known: store, concurrency, stagger, [job.NAME], [queue.NAME])"));
    }
    if (auto ok = read_top(path, name, node, find_zone, out); !ok) return ok.error();
  }
  if (out.jobs.empty() && out.problems.empty() && out.queues.empty()) {
    return invalid(
        cat(path, ": there is no job in it; a job is [job.NAME] with schedule and command"));
  }
  return out;
}

Result<std::vector<api::QueueConfig>> parse_queues(const std::string& text,
                                                   const std::string& path) {
  if (auto ok = check_toml_letters(text, path); !ok) return ok.error();
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) return at(path, parsed.error().source(), parsed.error().description());
  std::vector<api::QueueConfig> out;
  if (const toml::node* node = parsed.table().get("queue")) {
    if (auto ok = read_queues(path, *node, out); !ok) return ok.error();
  }
  return out;
}

}  // namespace stint::schedule
