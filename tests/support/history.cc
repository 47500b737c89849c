#include "tests/support/history.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/json.hpp>

#include "base/check.h"
#include "base/text.h"
#include "tests/support/process.h"

namespace stint::test {
namespace {

namespace json = boost::json;

std::string_view word(Phase phase) {
  switch (phase) {
    case Phase::Invoke: return "invoke";
    case Phase::Ok: return "ok";
    case Phase::Fail: return "fail";
    case Phase::Info: return "info";
  }
  return "info";
}

std::optional<Phase> parse_phase(std::string_view text) {
  for (const Phase phase : {Phase::Invoke, Phase::Ok, Phase::Fail, Phase::Info}) {
    if (word(phase) == text) return phase;
  }
  return std::nullopt;
}

void put(json::object& out, std::string_view name, std::string_view text) {
  if (!text.empty()) out[name] = json::string_view(text.data(), text.size());
}
void put(json::object& out, std::string_view name, Token token) {
  if (token.issued()) out[name] = token.number();
}
template <class Duration>
void put(json::object& out, std::string_view name, const std::optional<Duration>& d) {
  if (d) out[name] = d->count();
}

std::string text(const json::object& in, std::string_view name) {
  const json::value* value = in.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

std::optional<std::int64_t> number(const json::object& in, std::string_view name) {
  const json::value* value = in.if_contains(name);
  if (value == nullptr || !value->is_int64()) return std::nullopt;
  return value->as_int64();
}

Token token(const json::object& in, std::string_view name) {
  return Token(static_cast<std::uint64_t>(number(in, name).value_or(0)));
}

template <class Duration>
std::optional<Duration> duration(const json::object& in, std::string_view name) {
  const auto count = number(in, name);
  if (!count) return std::nullopt;
  return Duration(*count);
}

}  // namespace

std::string to_line(const HistoryEvent& event) {
  json::object out;
  put(out, "op", event.op);
  put(out, "phase", word(event.phase));
  put(out, "client", event.client);
  put(out, "verb", event.verb);
  put(out, "resource", event.resource);
  put(out, "token", event.token);
  put(out, "ends", event.ends);
  put(out, "holder", event.holder);
  put(out, "cause", event.cause);
  if (event.replayed) out["replayed"] = true;
  put(out, "ttl_ms", event.ttl);
  put(out, "remaining_ms", event.remaining);
  put(out, "local_ns", event.local);
  put(out, "store_ns", event.store_time);
  put(out, "key", event.key);
  if (event.version != 0) out["version"] = event.version;
  return json::serialize(out);
}

Result<HistoryEvent> parse_line(std::string_view line) {
  json::error_code error;
  const json::value parsed = json::parse(json::string_view(line.data(), line.size()), error);
  if (error || !parsed.is_object()) return invalid(cat("not a history line: ", printable(line)));
  const json::object& in = parsed.as_object();
  HistoryEvent event;
  event.op = text(in, "op");
  const auto phase = parse_phase(text(in, "phase"));
  if (!phase || event.op.empty()) return invalid(cat("not a history line: ", printable(line)));
  event.phase = *phase;
  event.client = text(in, "client");
  event.verb = text(in, "verb");
  event.resource = text(in, "resource");
  event.token = token(in, "token");
  event.ends = token(in, "ends");
  event.holder = token(in, "holder");
  event.cause = text(in, "cause");
  event.replayed = in.if_contains("replayed") != nullptr;
  event.ttl = duration<Millis>(in, "ttl_ms");
  event.remaining = duration<Millis>(in, "remaining_ms");
  event.local = duration<Nanos>(in, "local_ns");
  event.store_time = duration<Nanos>(in, "store_ns");
  event.key = text(in, "key");
  event.version = static_cast<std::uint64_t>(number(in, "version").value_or(0));
  return event;
}

History::History(const std::string& path)
    : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
  CHECK(file_, "the history file cannot be opened");
}

void History::write(const HistoryEvent& event) {
  // One write a line: the kernel keeps appended writes apart.
  const std::string line = to_line(event) + '\n';
  const ssize_t written = ::write(file_.get(), line.data(), line.size());
  CHECK(written == static_cast<ssize_t>(line.size()), "the history cannot be written");
}

std::string History::next_op(std::string_view client) {
  return cat(client, '/', ::getpid(), '/', ++last_op_);
}

Result<std::vector<HistoryEvent>> load_history(const std::string& path) {
  const std::string all = read_text(path);
  std::vector<HistoryEvent> out;
  std::string_view rest = all;
  for (auto end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    auto event = parse_line(rest.substr(0, end));
    if (!event) return event.error();
    out.push_back(std::move(*event));
    rest.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace stint::test
