#include "api/wire.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "api/json.h"
#include "base/json_text.h"
#include "base/text.h"

namespace stint::api {
namespace {

void put_time(JsonText& out, const std::optional<Nanos>& time) {
  // As text: beyond what a double can hold.
  if (time) out.field("store_time_ns", cat(time->count()));
}

void put_hold(JsonText& out, Millis ttl, bool replayed, const std::optional<Millis>& age) {
  out.field("granted_ttl_ms", ttl.count()).truth("replayed", replayed);
  if (age) out.field("age_ms", age->count());
}

std::string_view truth(bool value) { return value ? "true" : "false"; }

std::optional<Nanos> read_time(JsonFields& fields) {
  const std::string text = fields.text("store_time_ns");
  if (text.empty()) return std::nullopt;
  const bool negative = text.front() == '-';
  const auto digits = parse_digits(std::string_view(text).substr(negative ? 1 : 0));
  if (!digits || *digits > static_cast<std::uint64_t>(Nanos::max().count())) {
    fields.fail("store_time_ns is no time");
    return std::nullopt;
  }
  const auto count = static_cast<std::int64_t>(*digits);
  return Nanos(negative ? -count : count);
}

// {"error":{...}} with more inside.
std::string error_with(const Error& error, const Lease* lease, std::string_view cause,
                       std::string_view more) {
  std::string out = to_json(error, lease, cause);
  if (more.empty()) return out;
  out.resize(out.size() - 2);
  return cat(out, ",", more, "}}");
}

template <class Enum, std::size_t N>
std::optional<Enum> parse_word_of(std::string_view text, const std::array<Enum, N>& all) {
  for (const Enum one : all) {
    if (word(one) == text) return one;
  }
  return std::nullopt;
}

constexpr std::array kStates = {core::State::Free, core::State::Held, core::State::Reserved,
                                core::State::Resting};
constexpr std::array kCauses = {
    core::Cause::None,      core::Cause::Expired,     core::Cause::Superseded,
    core::Cause::Released,  core::Cause::Transferred, core::Cause::Revoked,
    core::Cause::Stalled,   core::Cause::MaxHold,     core::Cause::Restored,
    core::Cause::NotHolder, core::Cause::WrongToken,  core::Cause::NeverIssued};
constexpr std::array kVerdicts = {core::Verdict::Admitted,    core::Verdict::Done,
                                  core::Verdict::Stale,       core::Verdict::Used,
                                  core::Verdict::NeverIssued, core::Verdict::NeverGranted,
                                  core::Verdict::Foreign,     core::Verdict::NoToken,
                                  core::Verdict::Restored,    core::Verdict::AskStore};
constexpr std::array kCodes = {
    Code::Held,         Code::Lost,    Code::Stale,   Code::Used,           Code::NeverIssued,
    Code::NeverGranted, Code::Foreign, Code::NoToken, Code::UnknownOutcome, Code::Unavailable,
    Code::Invalid,      Code::Denied,  Code::Failed};

core::Reason read_reason(JsonFields& fields, std::string_view name) {
  const auto reason = core::parse_reason(fields.text(name));
  if (!reason) fields.fail(cat(quoted(name), " is no reason"));
  return reason.value_or(core::Reason::First);
}

template <class T>
Result<T> finished(const JsonFields& fields, T value) {
  if (auto ok = fields.done(); !ok) return ok.error();
  return value;
}

void read_hint(JsonFields& fields, Hint& hint) {
  const JsonValue* value = fields.find("hint");
  if (value == nullptr) return;
  JsonFields inner(*value);
  hint.own = static_cast<std::uint64_t>(inner.number("own"));
  hint.alive = static_cast<std::uint64_t>(inner.number("alive"));
  hint.plain = inner.flag("plain", true);
  if (!inner.done()) fields.fail("hint is none");
}

}  // namespace

std::string_view word(core::Verdict verdict) {
  switch (verdict) {
    case core::Verdict::Admitted: return "admitted";
    case core::Verdict::Done: return "done";
    case core::Verdict::AskStore: return "ask_store";
    case core::Verdict::Stale: return "stale";
    case core::Verdict::Used: return "used";
    case core::Verdict::NeverIssued: return "never_issued";
    case core::Verdict::NeverGranted: return "never_granted";
    case core::Verdict::Foreign: return "foreign";
    case core::Verdict::NoToken: return "no_token";
    case core::Verdict::Restored: return "restored";
  }
  return "stale";
}

std::optional<core::Verdict> parse_verdict(std::string_view text) {
  return parse_word_of(text, kVerdicts);
}

Code code_of(core::Verdict verdict) {
  switch (verdict) {
    case core::Verdict::Stale: return Code::Stale;
    case core::Verdict::Used: return Code::Used;
    case core::Verdict::NeverIssued: return Code::NeverIssued;
    case core::Verdict::NeverGranted: return Code::NeverGranted;
    case core::Verdict::Foreign:
    case core::Verdict::Restored: return Code::Foreign;
    case core::Verdict::NoToken: return Code::NoToken;
    case core::Verdict::Admitted:
    case core::Verdict::Done:
    case core::Verdict::AskStore: break;
  }
  return Code::Failed;
}

std::string to_json(const Granted& granted, const std::optional<Claim>& claim) {
  JsonText out;
  put_lease(out, granted.lease);
  if (claim) out.field("claim", claim->hex());
  put_hold(out, granted.granted_ttl, granted.replayed, granted.age);
  out.field("previous_progress", granted.previous_progress);
  out.json("hint", cat("{\"own\":", granted.hint.own, ",\"alive\":", granted.hint.alive,
                       ",\"plain\":", truth(granted.hint.plain), "}"));
  put_time(out, granted.store_time);
  if (!granted.sealed.empty()) out.json("sealed", to_json(granted.sealed));
  if (!granted.sealing.empty()) out.json("sealing", to_json(granted.sealing));
  if (granted.provisional) out.truth("provisional", true);
  return out.done();
}

std::string to_json(const Held& held) {
  JsonText out;
  put_lease(out, held.lease);
  put_hold(out, held.granted_ttl, held.replayed, held.age);
  put_time(out, held.store_time);
  return out.done();
}

std::string to_json(const Refused& refused, std::string_view message) {
  return error_with({Code::Held, std::string(message)}, &refused.lease, {},
                    refused.retry_in ? cat("\"retry_in_ms\":",
                                           std::max<std::int64_t>(refused.retry_in->count(), 0))
                                     : std::string());
}

std::string to_json(const Lost& lost, std::string_view message) {
  return error_with({Code::Lost, std::string(message)}, &lost.lease, core::word(lost.cause),
                    lost.store_time ? cat("\"store_time_ns\":\"", lost.store_time->count(), "\"")
                                    : std::string());
}

std::string to_json(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) out += cat(out.size() > 1 ? "," : "", json_quoted(text));
  return out + "]";
}

namespace {

std::vector<SealedTarget> read_targets(JsonFields& in, std::string_view name) {
  std::vector<SealedTarget> out;
  const JsonValue* value = in.find(name);
  if (value == nullptr) return out;
  if (value->if_list() == nullptr) {
    in.fail(cat(name, " is not a list"));
    return out;
  }
  for (const JsonValue& row : *value->if_list()) {
    JsonFields of(row);
    out.push_back({.words = of.text("target"),
                   .stands = of.flag("sealed"),
                   .token = of.token("token"),
                   .at = of.moment("at_ms"),
                   .first_token = of.token("first_token"),
                   .since = of.moment("since_ms")});
    if (auto ok = of.done(); !ok) in.fail(ok.error().message);
  }
  return out;
}

}  // namespace

std::string to_json(const TokenWord& word) {
  std::vector<std::string> ancestors;
  for (const Generation& one : word.issued.ancestors) ancestors.push_back(one.hex());
  return cat(
      "{\"generation\":", json_quoted(word.issued.generation.hex()),
      ",\"ancestors\":", to_json(ancestors), ",\"newest\":", word.issued.newest.number(),
      ",\"newest_granted\":", truth(word.issued.newest_granted),
      ",\"newest_nobodys\":", truth(word.issued.newest_nobodys),
      ",\"owner\":", json_quoted(word.owner.text()),
      ",\"claim_hash\":", json_quoted(word.claim.hex()), ",\"live\":", truth(word.live),
      ",\"remaining_ms\":", word.remaining ? cat(word.remaining->count()) : std::string("null"),
      ",\"sealed\":", to_json(word.sealed), ",\"sealing\":", to_json(word.sealing),
      ",\"targets\":", to_json(word.targets), "}");
}

std::string to_json(const core::Fence& fence) {
  return cat("{\"generation\":", json_quoted(fence.generation.hex()),
             ",\"resource\":", json_quoted(fence.resource), ",\"token\":", fence.token.number(),
             ",\"used\":", truth(fence.used), ",\"key\":", json_quoted(fence.key),
             ",\"digest\":", json_quoted(fence.digest), ",\"nobodys\":", truth(fence.nobodys), "}");
}

std::string to_json(const Act& act) {
  std::string out =
      cat("{\"name\":", json_quoted(act.name), ",\"key\":", json_quoted(act.key),
          ",\"generation\":", json_quoted(act.generation.hex()),
          ",\"resource\":", json_quoted(act.resource), ",\"token\":", act.token.number(),
          ",\"owner\":", json_quoted(act.owner.text()), ",\"begun_at_ms\":", to_ms(act.begun_at),
          ",\"digest\":", json_quoted(act.digest));
  if (act.result_token) out += cat(",\"result_token\":", act.result_token->number());
  if (act.exit_code) out += cat(",\"exit_code\":", *act.exit_code);
  if (act.ended_at) out += cat(",\"ended_at_ms\":", to_ms(*act.ended_at));
  return out + "}";
}

std::string to_json(const FenceAnswer& answer, const Error* refusal) {
  std::string more = cat("\"verdict\":\"", word(answer.verdict),
                         "\",\"owner\":", json_quoted(answer.owner.text()));
  if (answer.fence) more += cat(",\"fence\":", to_json(*answer.fence));
  if (answer.act) more += cat(",\"act\":", to_json(*answer.act));
  if (refusal == nullptr) return cat("{", more, "}");
  std::string out = to_json(*refusal);
  out.pop_back();
  return cat(out, ",", more, "}");
}

namespace {

constexpr std::array<std::string_view, 4> kSealings = {"ahead", "stands", "refused", "made_anew"};

}  // namespace

std::string to_json(const core::Offer& offer) {
  const std::string_view told = kSealings[static_cast<std::size_t>(offer.sealing)];
  const std::string sealing =
      offer.sealing == core::Sealing::Ahead ? "" : cat(",\"sealing\":", json_quoted(told));
  return cat("{\"generation\":", json_quoted(offer.generation.hex()),
             ",\"resource\":", json_quoted(offer.resource), ",\"token\":", offer.token.number(),
             ",\"mode\":\"", offer.mode == core::FenceMode::Once ? "once" : "at-least",
             "\",\"key\":", json_quoted(offer.key), ",\"digest\":", json_quoted(offer.digest),
             ",\"by_order\":", truth(offer.by_order), ",\"adopt\":", truth(offer.adopt), sealing,
             "}");
}

Result<Lease> parse_lease(const JsonValue& value) {
  JsonFields in(value);
  Lease lease;
  lease.resource = in.text("resource");
  const auto state = parse_word_of(in.text("state"), kStates);
  if (!state) in.fail("'state' is none");
  lease.state = state.value_or(core::State::Free);
  lease.held = in.flag("held");
  lease.owner = in.owner("owner");
  lease.token = in.token("token");
  lease.generation = in.generation("generation");
  if (in.find("reason") != nullptr) lease.reason = read_reason(in, "reason");
  lease.by = in.text("by");
  lease.why = in.text("why");
  lease.ttl = in.millis("ttl_ms");
  lease.remaining = in.maybe_millis("remaining_ms");
  lease.acquired_at = in.moment("acquired_at_ms");
  lease.renewed_at = in.moment("renewed_at_ms");
  lease.note = in.text("note");
  lease.progress = in.text("progress");
  lease.progress_at = in.moment("progress_at_ms");
  return finished(in, std::move(lease));
}

Result<Granted> parse_granted(const JsonValue& value) {
  auto lease = parse_lease(value);
  if (!lease) return lease.error();
  JsonFields in(value);
  Granted out{.lease = std::move(*lease),
              .hint = {},
              .granted_ttl = in.millis("granted_ttl_ms"),
              .replayed = in.flag("replayed"),
              .previous_progress = in.text("previous_progress"),
              .store_time = read_time(in),
              .sealed = in.texts("sealed"),
              .sealing = in.texts("sealing"),
              .age = in.maybe_millis("age_ms"),
              .provisional = in.flag("provisional")};
  read_hint(in, out.hint);
  return finished(in, std::move(out));
}

Result<Held> parse_held(const JsonValue& value) {
  auto lease = parse_lease(value);
  if (!lease) return lease.error();
  JsonFields in(value);
  Held out{.lease = std::move(*lease),
           .granted_ttl = in.millis("granted_ttl_ms"),
           .store_time = read_time(in),
           .replayed = in.flag("replayed"),
           .age = in.maybe_millis("age_ms")};
  return finished(in, std::move(out));
}

Result<PastGrant> parse_past(const JsonValue& value) {
  JsonFields in(value);
  PastGrant out{.token = in.token("token"),
                .owner = in.owner("owner"),
                .reason = read_reason(in, "reason"),
                .by = in.text("by"),
                .why = in.text("why"),
                .acquired_at = in.moment("acquired_at_ms"),
                .ended_at = in.moment("ended_at_ms"),
                .ended = std::nullopt};
  if (in.find("ended") != nullptr) out.ended = read_reason(in, "ended");
  return finished(in, std::move(out));
}

Result<Event> parse_event(const JsonValue& value) {
  JsonFields in(value);
  Event out;
  out.at = in.moment("at_ms").value_or(WallTime{});
  out.kind = in.text("kind");
  out.resource = in.text("resource");
  out.token = in.token("token").number();
  out.owner = in.text("owner");
  out.number = in.text("number");
  if (value.if_object() == nullptr) return invalid("an event is expected");
  constexpr std::array<std::string_view, 6> kOwn = {"at_ms", "kind",  "resource",
                                                    "token", "owner", "number"};
  for (const auto& [name, detail] : *value.if_object()) {
    if (std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end()) continue;
    if (const auto* text = detail.if_text()) out.details.emplace_back(name, *text);
    if (const auto* number = detail.if_number()) out.details.emplace_back(name, *number);
  }
  return finished(in, std::move(out));
}

Result<TokenWord> parse_word(const JsonValue& value) {
  JsonFields in(value);
  TokenWord out;
  out.issued.generation = in.generation("generation");
  for (const std::string& text : in.texts("ancestors")) {
    auto one = Generation::parse(text);
    if (!one) return one.error();
    out.issued.ancestors.push_back(*one);
  }
  out.issued.newest = in.token("newest");
  out.issued.newest_granted = in.flag("newest_granted");
  out.issued.newest_nobodys = in.flag("newest_nobodys");
  out.owner = in.owner("owner");
  out.claim = ClaimHash(in.text("claim_hash"));
  out.live = in.flag("live");
  out.remaining = in.maybe_millis("remaining_ms");
  out.sealed = in.texts("sealed");
  out.sealing = in.texts("sealing");
  out.targets = read_targets(in, "targets");
  return finished(in, std::move(out));
}

Result<core::Fence> parse_fence(const JsonValue& value) {
  JsonFields in(value);
  core::Fence out{.generation = in.generation("generation"),
                  .resource = in.text("resource"),
                  .token = in.token("token"),
                  .used = in.flag("used"),
                  .key = in.text("key"),
                  .digest = in.text("digest"),
                  .nobodys = in.flag("nobodys")};
  return finished(in, std::move(out));
}

Result<Act> parse_act(const JsonValue& value) {
  JsonFields in(value);
  Act out{.name = in.text("name"),
          .key = in.text("key"),
          .generation = in.generation("generation"),
          .resource = in.text("resource"),
          .token = in.token("token"),
          .owner = in.owner("owner"),
          .begun_at = in.moment("begun_at_ms").value_or(WallTime{}),
          .result_token = std::nullopt,
          .exit_code = std::nullopt,
          .digest = in.text("digest"),
          .ended_at = in.moment("ended_at_ms")};
  if (in.find("result_token") != nullptr) out.result_token = in.token("result_token");
  if (const auto code = in.maybe_number("exit_code")) out.exit_code = static_cast<int>(*code);
  return finished(in, std::move(out));
}

Result<FenceAnswer> parse_fence_answer(const JsonValue& value) {
  JsonFields in(value);
  FenceAnswer out;
  const auto verdict = parse_verdict(in.text("verdict"));
  if (!verdict) in.fail("'verdict' is none");
  out.verdict = verdict.value_or(core::Verdict::Stale);
  out.owner = in.owner("owner");
  if (const JsonValue* inner = in.find("fence")) {
    auto fence = parse_fence(*inner);
    if (!fence) return fence.error();
    out.fence = std::move(*fence);
  }
  if (const JsonValue* inner = in.find("act")) {
    auto act = parse_act(*inner);
    if (!act) return act.error();
    out.act = std::move(*act);
  }
  return finished(in, std::move(out));
}

std::optional<core::Offer> read_offer(JsonFields& fields) {
  const JsonValue* value = fields.find("offer");
  if (value == nullptr) {
    fields.fail("'offer' is missing");
    return std::nullopt;
  }
  JsonFields in(*value);
  core::Offer out{.generation = in.generation("generation"),
                  .resource = in.text("resource"),
                  .token = in.token("token"),
                  .mode = core::FenceMode::AtLeast,
                  .key = in.text("key"),
                  .digest = in.text("digest"),
                  .by_order = in.flag("by_order"),
                  .adopt = in.flag("adopt")};
  const std::string mode = in.text("mode");
  if (mode == "once") out.mode = core::FenceMode::Once;
  if (!mode.empty() && mode != "once" && mode != "at-least") in.fail("'mode' is at-least or once");
  const std::string sealing = in.text("sealing");
  const auto* const known = std::ranges::find(kSealings, sealing);
  if (known != kSealings.end()) {
    out.sealing = static_cast<core::Sealing>(known - kSealings.begin());
  } else if (!sealing.empty()) {
    in.fail("'sealing' is ahead, stands, refused or made_anew");
  }
  in.refuse_others();
  if (auto ok = in.done(); !ok) {
    fields.fail(cat("offer: ", ok.error().message));
    return std::nullopt;
  }
  return out;
}

Result<Told> parse_error(std::string_view body) {
  auto value = JsonValue::parse(body);
  if (!value) return value.error();
  return parse_error(*value);
}

Result<Told> parse_error(const JsonValue& value) {
  JsonFields outer(value);
  const JsonValue* inner = outer.find("error");
  if (inner == nullptr) return invalid("an error is expected");
  JsonFields in(*inner);
  Told out;
  const auto code = parse_word_of(in.text("code"), kCodes);
  if (!code) return invalid("an error without a code");
  out.error = {*code, in.text("message")};
  out.cause = parse_word_of(in.text("cause"), kCauses).value_or(core::Cause::None);
  out.retry_in = in.maybe_millis("retry_in_ms");
  out.store_time = read_time(in);
  if (const JsonValue* lease = in.find("lease")) {
    auto parsed = parse_lease(*lease);
    if (!parsed) return parsed.error();
    out.lease = std::move(*parsed);
  }
  return finished(in, std::move(out));
}

}  // namespace stint::api
