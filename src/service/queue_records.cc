#include "service/queue_records.h"

#include <algorithm>

#include "base/base64.h"
#include "base/json_text.h"
#include "base/text.h"
#include "service/record_fields.h"

namespace stint::service {
namespace {

constexpr char kUnit = '\x1F';
// Of bytes before base64 makes four of three.
constexpr std::size_t kPieceBytes = store::Store::kMaxValueBytes / 4 * 3;

std::string_view word(Shelf shelf) {
  switch (shelf) {
    case Shelf::Ready: return "ready/";
    case Shelf::Later: return "later/";
    case Shelf::Claimed: return "claimed/";
    case Shelf::Parked: return "parked/";
    case Shelf::Ended: return "ended/";
  }
  return "";
}

char topic(Shelf shelf) {
  switch (shelf) {
    case Shelf::Ready:
    case Shelf::Later: return 'w';
    case Shelf::Claimed:
    case Shelf::Parked: return 'c';
    case Shelf::Ended: return 'e';
  }
  return 'e';
}

std::string padded(std::int64_t number, std::size_t width) {
  std::string digits = cat(number);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return digits;
}

bool plain_text(std::string_view bytes) { return is_utf8(bytes) && bytes.find('\0') == bytes.npos; }

void put_field(JsonText& out, const std::string& name, const Content& content) {
  if (!content.given) return;
  out.field(name + "_bytes", static_cast<std::int64_t>(content.bytes));
  if (content.pieces > 0) {
    out.field(name + "_pieces", static_cast<std::int64_t>(content.pieces));
    out.field(name + "_in", content.what);
  } else if (plain_text(content.text)) {
    out.field(name, content.text);
  } else {
    out.field(name + "_base64", base64(content.text));
  }
}

void put_field(JsonText& out, std::string_view name, const std::optional<WallTime>& t) {
  if (t) out.field(name, to_ms(*t));
}
void put_field(JsonText& out, std::string_view name, Token token) {
  if (token.issued()) out.field(name, static_cast<std::int64_t>(token.number()));
}

void put_field(JsonText& out, const core::ItemLimits& limits) {
  out.field("max_attempts", static_cast<std::int64_t>(limits.max_attempts));
  out.field("claim_ttl_ms", limits.claim_ttl.count());
  if (limits.progress_timeout.count() > 0)
    out.field("progress_timeout_ms", limits.progress_timeout.count());
  out.field("requeue", core::word(limits.requeue));
  out.field("backoff_ms", limits.backoff.count());
  out.field("backoff_max_ms", limits.backoff_max.count());
}

std::size_t size_field(Fields& fields, const std::string& name, std::int64_t most) {
  const std::int64_t n = fields.number(name);
  if (n >= 0 && n <= most) return static_cast<std::size_t>(n);
  fields.fail(cat(name, " is not a size"));
  return 0;
}

Content content_of(Fields& fields, const std::string& name) {
  Content content;
  if (fields.find(name + "_bytes") == nullptr) return content;
  content.given = true;
  content.bytes = size_field(fields, name + "_bytes", api::kMostContentBytes);
  content.pieces = size_field(fields, name + "_pieces", 64);
  content.what = fields.text(name + "_in");
  if (content.pieces > 0) return content;
  if (fields.find(name + "_base64") == nullptr) {
    content.text = fields.text(name);
  } else if (auto bytes = decode_base64(fields.text(name + "_base64"))) {
    content.text = std::move(*bytes);
  } else {
    fields.fail(cat(name, " is not base64"));
  }
  if (content.text.size() != content.bytes) fields.fail(cat(name, " is not whole"));
  return content;
}

std::uint32_t count_field(Fields& fields, std::string_view name) {
  const std::int64_t n = fields.number(name);
  if (n >= 0 && n <= 1'000'000) return static_cast<std::uint32_t>(n);
  fields.fail(cat(name, " is not a count"));
  return 0;
}

core::ItemLimits limits_of(Fields& fields) {
  core::ItemLimits limits;
  limits.max_attempts = count_field(fields, "max_attempts");
  limits.claim_ttl = fields.duration("claim_ttl_ms");
  limits.progress_timeout = fields.duration("progress_timeout_ms");
  const auto requeue = core::parse_requeue(fields.text("requeue"));
  if (!requeue) fields.fail("requeue is unknown");
  limits.requeue = requeue.value_or(core::Requeue::Never);
  limits.backoff = fields.duration("backoff_ms");
  limits.backoff_max = fields.duration("backoff_max_ms");
  if (auto ok = core::check_limits(limits); !ok) fields.fail(ok.error().message);
  return limits;
}

void put_claim(JsonText& out, const core::Item& item) {
  put_field(out, "epoch", item.epoch);
  if (item.attempts > 0) out.field("attempts", static_cast<std::int64_t>(item.attempts));
  out.field_if("owner", item.owner.text());
  out.field_if("claim", item.claim.hex());
  if (item.reason != core::Reason::First) out.field("reason", core::word(item.reason));
  put_field(out, "claimed_at_ms", item.claimed_at);
  if (item.started) out.field("started", 1);
  if (item.reports) out.field("reports", 1);
  out.field_if("progress", item.progress);
  put_field(out, "progress_at_ms", item.progress_at);
  put_field(out, "progress_epoch", item.progress_epoch);
  if (item.last != core::LastWord::Open) out.field("last", core::word(item.last));
  out.field_if("digest", item.digest);
  out.field_if("why", item.why);
  out.field_if("by", item.by);
  out.field_if("order", item.order);
  out.field_if("reserved_for", item.reserved_for.text());
  put_field(out, "ended_at_ms", item.ended_at);
}

void read_claim(Fields& fields, core::Item& item) {
  item.epoch = fields.token("epoch");
  item.attempts = count_field(fields, "attempts");
  item.owner = fields.owner("owner");
  item.claim = ClaimHash(fields.text("claim"));
  if (fields.find("reason") != nullptr) item.reason = fields.reason("reason");
  item.claimed_at = fields.moment("claimed_at_ms");
  item.started = fields.number("started") != 0;
  item.reports = fields.number("reports") != 0;
  item.progress = fields.text("progress");
  item.progress_at = fields.moment("progress_at_ms");
  item.progress_epoch = fields.token("progress_epoch");
  if (fields.find("last") != nullptr) {
    const auto last = core::parse_last_word(fields.text("last"));
    if (!last) fields.fail("its last word is unknown");
    item.last = last.value_or(core::LastWord::Open);
  }
  item.digest = fields.text("digest");
  item.why = fields.text("why");
  item.by = fields.text("by");
  item.order = fields.text("order");
  item.reserved_for = fields.owner("reserved_for");
  item.ended_at = fields.moment("ended_at_ms");
}

}  // namespace

std::string queue_key(const core::QueueName& queue) { return cat(kQueuePrefix, queue.text()); }
std::string shelf_prefix(Shelf shelf, const core::QueueName& queue) {
  return cat(word(shelf), queue.text(), ':', topic(shelf), kUnit);
}
std::string shelf_key(Shelf shelf, const core::ItemId& id) {
  return shelf_prefix(shelf, id.queue()) + id.suffix();
}
std::string bell_key(const core::QueueName& queue) { return cat("idle/", queue.text(), ":i"); }
std::string due_prefix(const core::QueueName& queue) {
  return cat("due/", queue.text(), ":d", kUnit);
}
std::string due_key(const core::ItemId& id, WallTime not_before) {
  constexpr std::size_t kDigits = 15;
  return cat(due_prefix(id.queue()), padded(std::max<std::int64_t>(to_ms(not_before), 0), kDigits),
             kUnit, id.suffix());
}
std::string reserved_prefix(const core::QueueName& queue) {
  return cat("to/", queue.text(), ":d", kUnit);
}
std::string reserved_key(const core::ItemId& id, const Owner& owner) {
  return cat(reserved_prefix(id.queue()), owner.text(), kUnit, id.suffix());
}
std::string pace_prefix(const core::QueueName& queue) {
  return cat("pace/", queue.text(), ":p", kUnit);
}
std::string pace_key(const core::ItemId& id) { return pace_prefix(id.queue()) + id.suffix(); }
std::string unique_key(const core::QueueName& queue, std::string_view key) {
  return cat("uniq/", queue.text(), ":u", kUnit, key);
}
std::string stop_key(const core::ItemId& id) { return cat("stop/", id.text()); }
std::string blob_prefix(const core::ItemId& id) { return cat("blob/", id.text(), kUnit); }
std::string blob_key(const core::ItemId& id, std::string_view what, std::size_t piece) {
  return cat(blob_prefix(id), what, '.', padded(static_cast<std::int64_t>(piece), 2));
}

std::optional<core::ItemId> id_of(const core::QueueName& queue, std::string_view key) {
  const std::size_t unit = key.rfind(kUnit);
  if (unit == key.npos) return std::nullopt;
  auto id = core::ItemId::parse(cat(queue.text(), '-', key.substr(unit + 1)));
  if (!id) return std::nullopt;
  return *id;
}

Shelf shelf_of(const core::Item& item, bool delayed) {
  switch (item.state) {
    case core::ItemState::Waiting: return delayed ? Shelf::Later : Shelf::Ready;
    case core::ItemState::Claimed: return Shelf::Claimed;
    case core::ItemState::Parked: return Shelf::Parked;
    case core::ItemState::Failed:
    case core::ItemState::Cancelled:
    case core::ItemState::Done: return Shelf::Ended;
  }
  return Shelf::Ended;
}

std::vector<std::string> index_keys(const core::ItemId& id, const StoredItem& stored) {
  std::vector<std::string> keys;
  if (!stored.item.reserved_for.empty()) keys.push_back(reserved_key(id, stored.item.reserved_for));
  if (stored.not_before) keys.push_back(due_key(id, *stored.not_before));
  return keys;
}

std::string encode(const StoredItem& stored) {
  JsonText out;
  out.field("state", core::word(stored.item.state));
  put_claim(out, stored.item);
  put_field(out, stored.item.limits);
  put_field(out, "payload", stored.payload);
  put_field(out, "checkpoint", stored.checkpoint);
  put_field(out, "result", stored.result);
  std::string labels;
  for (const std::string& label : stored.labels) labels += cat(labels.empty() ? "" : "\n", label);
  out.field_if("labels", labels);
  out.field_if("unique", stored.unique);
  out.field_if("put_by", stored.put_by);
  out.field("put_at_ms", to_ms(stored.put_at));
  out.field_if("parent", stored.parent);
  put_field(out, "not_before_ms", stored.not_before);
  return out.done();
}

Result<StoredItem> decode_item(std::string_view value) {
  Fields fields("item", value);
  StoredItem stored;
  const auto state = core::parse_item_state(fields.text("state"));
  if (!state) fields.fail("its state is unknown");
  stored.item.state = state.value_or(core::ItemState::Parked);
  read_claim(fields, stored.item);
  stored.item.limits = limits_of(fields);
  stored.payload = content_of(fields, "payload");
  stored.checkpoint = content_of(fields, "checkpoint");
  stored.result = content_of(fields, "result");
  const std::string labels = fields.text("labels");
  if (!labels.empty()) {
    for (const std::string_view label : split(labels, '\n')) stored.labels.emplace_back(label);
  }
  stored.unique = fields.text("unique");
  stored.put_by = fields.text("put_by");
  stored.put_at = wall_from_ms(fields.number("put_at_ms"));
  stored.parent = fields.text("parent");
  stored.not_before = fields.moment("not_before_ms");
  return fields.done(std::move(stored));
}

std::string encode(const core::ItemLimits& limits) {
  JsonText out;
  put_field(out, limits);
  return out.done();
}

Result<core::ItemLimits> decode_limits(std::string_view value) {
  Fields fields("queue", value);
  core::ItemLimits limits = limits_of(fields);
  return fields.done(limits);
}

Content make_content(const core::ItemId& id, std::string what, const std::string& bytes,
                     std::size_t room, std::vector<store::Step>& steps) {
  Content content{.given = true, .bytes = bytes.size(), .text = {}, .pieces = 0, .what = {}};
  const bool text = plain_text(bytes);
  // As it would stand there: a quote takes two bytes, a control character six.
  const std::size_t inside =
      text ? JsonText().field("", bytes).done().size() : bytes.size() / 3 * 4 + 4;
  if (bytes.size() <= room && inside <= room + 16) {
    content.text = bytes;
    return content;
  }
  content.what = std::move(what);
  for (std::size_t at = 0; at < bytes.size(); at += kPieceBytes) {
    store::Step& step = steps.emplace_back();
    step.kind = store::Step::Kind::Set;
    step.key = blob_key(id, content.what, content.pieces++);
    step.value = base64(std::string_view(bytes).substr(at, kPieceBytes));
  }
  return content;
}

}  // namespace stint::service
