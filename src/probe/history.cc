#include "probe/history.h"

#include "base/json_text.h"
#include "base/json_value.h"
#include "base/text.h"

namespace stint::probe {
namespace {

std::string_view phase_word(Phase phase) {
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
    if (phase_word(phase) == text) return phase;
  }
  return std::nullopt;
}

void put_token(JsonText& out, std::string_view name, Token token) {
  if (token.issued()) out.field(name, static_cast<std::int64_t>(token.number()));
}
template <class Duration>
void put_length(JsonText& out, std::string_view name, const std::optional<Duration>& length) {
  if (length) out.field(name, static_cast<std::int64_t>(length->count()));
}

Token token_in(JsonFields& in, std::string_view name) {
  return Token(static_cast<std::uint64_t>(in.maybe_number(name).value_or(0)));
}
template <class Duration>
std::optional<Duration> length_in(JsonFields& in, std::string_view name) {
  const auto count = in.maybe_number(name);
  return count ? std::optional(Duration(*count)) : std::nullopt;
}

}  // namespace

std::string to_line(const HistoryEvent& event) {
  JsonText out;
  out.field("op", event.op)
      .field("phase", phase_word(event.phase))
      .field_if("client", event.client)
      .field_if("verb", event.verb)
      .field_if("resource", event.resource);
  put_token(out, "token", event.token);
  put_token(out, "ends", event.ends);
  put_token(out, "holder", event.holder);
  out.field_if("cause", event.cause);
  if (event.replayed) out.field("replayed", 1);
  put_length(out, "ttl_ms", event.ttl);
  put_length(out, "remaining_ms", event.remaining);
  put_length(out, "local_ns", event.local);
  put_length(out, "store_ns", event.store_time);
  out.field_if("target", event.target).field_if("key", event.key);
  if (event.version != 0) out.field("version", static_cast<std::int64_t>(event.version));
  return out.done();
}

Result<HistoryEvent> parse_line(std::string_view line) {
  const auto parsed = JsonValue::parse(line);
  if (!parsed) return invalid(cat("not a history line: ", printable(line)));
  JsonFields in(*parsed);
  HistoryEvent event;
  event.op = in.text("op");
  const auto phase = parse_phase(in.text("phase"));
  if (phase) event.phase = *phase;
  event.client = in.text("client");
  event.verb = in.text("verb");
  event.resource = in.text("resource");
  event.token = token_in(in, "token");
  event.ends = token_in(in, "ends");
  event.holder = token_in(in, "holder");
  event.cause = in.text("cause");
  event.replayed = in.maybe_number("replayed").value_or(0) != 0;
  event.ttl = length_in<Millis>(in, "ttl_ms");
  event.remaining = length_in<Millis>(in, "remaining_ms");
  event.local = length_in<Nanos>(in, "local_ns");
  event.store_time = length_in<Nanos>(in, "store_ns");
  event.target = in.text("target");
  event.key = in.text("key");
  event.version = static_cast<std::uint64_t>(in.maybe_number("version").value_or(0));
  if (!in.done() || !phase || event.op.empty()) {
    return invalid(cat("not a history line: ", printable(line)));
  }
  return event;
}

void History::write(const HistoryEvent& event) { append_(to_line(event) + '\n'); }

std::string History::next_op(std::string_view client) {
  return cat(client, '/', process_, '/', ++last_op_);
}

Result<std::vector<HistoryEvent>> parse_history(std::string_view text) {
  std::vector<HistoryEvent> out;
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    auto event = parse_line(text.substr(0, end));
    if (!event) return event.error();
    out.push_back(std::move(*event));
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace stint::probe
