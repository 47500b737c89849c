#include "api/queue_json.h"

#include <boost/json.hpp>

#include "base/base64.h"
#include "base/text.h"

namespace stint::api {
namespace {

namespace json = boost::json;

json::value moment(const std::optional<WallTime>& t) {
  if (!t) return nullptr;
  return to_ms(*t);
}

json::value text_or_null(const std::string& text) {
  if (text.empty()) return nullptr;
  return json::value(text);
}

// As a string where it is text; otherwise under NAME_base64.
void put_content(json::object& out, const std::string& name,
                 const std::optional<std::string>& bytes) {
  if (!bytes) {
    out[name] = nullptr;
  } else if (is_utf8(*bytes)) {
    out[name] = *bytes;
  } else {
    out[name + "_base64"] = base64(*bytes);
  }
}

void put_time(json::object& out, const std::optional<Nanos>& time) {
  // As text: beyond what a double can hold.
  if (time) out["store_time_ns"] = cat(time->count());
}

void put_age(json::object& out, const std::optional<Millis>& age) {
  if (age) out["age_ms"] = age->count();
}

json::object limits_object(const core::ItemLimits& limits) {
  json::object out;
  out["max_attempts"] = limits.max_attempts;
  out["claim_ttl_ms"] = limits.claim_ttl.count();
  out["progress_timeout_ms"] = limits.progress_timeout.count() > 0
                                   ? json::value(limits.progress_timeout.count())
                                   : json::value(nullptr);
  out["requeue"] = std::string(core::word(limits.requeue));
  out["backoff_ms"] = limits.backoff.count();
  out["backoff_max_ms"] = limits.backoff_max.count();
  return out;
}

json::object item_object(const QueueItem& view) {
  const core::Item& item = view.item;
  json::object out;
  out["id"] = view.id.text();
  out["queue"] = view.id.queue().text();
  out["state"] = std::string(core::word(item.state));
  out["epoch"] = item.epoch.number();
  out["live"] = view.live;
  out["owner"] = text_or_null(item.owner.text());
  out["reason"] = item.epoch.issued() ? json::value(std::string(core::word(item.reason))) : nullptr;
  out["attempt"] = item.attempts;
  out["started"] = item.started;
  out["reports"] = item.reports;
  out["granted"] = !item.claim.empty();
  out["last_word"] = std::string(core::word(item.last));
  out["priority"] = view.id.priority();
  out["labels"] = json::array(view.labels.begin(), view.labels.end());
  out["unique"] = text_or_null(view.unique);
  put_content(out, "payload", view.payload);
  out["payload_bytes"] = view.payload_bytes;
  put_content(out, "checkpoint", view.checkpoint);
  put_content(out, "result", view.result);
  out["progress"] = text_or_null(item.progress);
  out["progress_at_ms"] = moment(item.progress_at);
  out["why"] = text_or_null(item.why);
  out["by"] = text_or_null(item.by);
  out["reserved_for"] = text_or_null(item.reserved_for.text());
  out["parent"] = text_or_null(view.parent);
  out["put_by"] = text_or_null(view.put_by);
  out["put_at_ms"] = to_ms(view.put_at);
  out["not_before_ms"] = moment(view.not_before);
  out["claimed_at_ms"] = moment(item.claimed_at);
  out["ended_at_ms"] = moment(item.ended_at);
  out["ttl_ms"] = view.ttl.count();
  out["remaining_ms"] = view.remaining
                            ? json::value(std::max<std::int64_t>(view.remaining->count(), 0))
                            : json::value(nullptr);
  out["limits"] = limits_object(item.limits);
  return out;
}

}  // namespace

std::string to_json(const QueueItem& item) { return json::serialize(item_object(item)); }

std::string to_json(const std::vector<QueueItem>& items) {
  json::array out;
  for (const QueueItem& item : items) out.push_back(item_object(item));
  return json::serialize(out);
}

std::string to_json(const PutAnswer& put) {
  json::object out;
  out["id"] = put.id.text();
  out["queue"] = put.id.queue().text();
  out["existed"] = put.existed;
  out["replayed"] = put.replayed;
  put_age(out, put.age);
  return json::serialize(out);
}

std::string to_json(const ItemDone& done) {
  json::object out = item_object(done.item);
  out["repeated"] = done.repeated;
  json::array ids;
  for (const core::ItemId& id : done.follow_ups) ids.emplace_back(id.text());
  out["follow_ups"] = std::move(ids);
  out["granted_ttl_ms"] = done.granted_ttl.count();
  put_time(out, done.store_time);
  return json::serialize(out);
}

std::string to_json(const ClaimAnswer& answer) {
  json::object out;
  if (const auto* empty = std::get_if<EmptyQueue>(&answer)) {
    out["item"] = nullptr;
    out["next_in_ms"] =
        empty->next_in ? json::value(empty->next_in->count()) : json::value(nullptr);
    return json::serialize(out);
  }
  const auto& claimed = std::get<ClaimedItem>(answer);
  out["item"] = item_object(claimed.item);
  out["granted_ttl_ms"] = claimed.granted_ttl.count();
  out["replayed"] = claimed.replayed;
  put_time(out, claimed.store_time);
  put_age(out, claimed.age);
  return json::serialize(out);
}

std::string to_json(const core::ItemLimits& limits) {
  return json::serialize(limits_object(limits));
}

std::string to_json(const Tended& tended) {
  json::object out;
  out["requeued"] = tended.requeued;
  out["parked"] = tended.parked;
  out["next_in_ms"] = tended.next_in ? json::value(tended.next_in->count()) : json::value(nullptr);
  return json::serialize(out);
}

std::string to_json(const QueueConfig& config, const QueueCounts& counts, WallTime now) {
  json::object line;
  line["queue"] = config.name.text();
  line["waiting"] = counts.waiting;
  line["ready"] = counts.ready;
  line["claimed"] = counts.claimed;
  line["parked"] = counts.parked;
  line["finished"] = counts.finished;
  line["failed"] = counts.failed;
  line["done"] = counts.done;
  line["oldest_at_ms"] = moment(counts.oldest);
  line["oldest_ms"] =
      counts.oldest ? json::value(std::max<std::int64_t>(to_ms(now) - to_ms(*counts.oldest), 0))
                    : json::value(nullptr);
  line["limits"] = limits_object(config.limits);
  return json::serialize(line);
}

std::string to_json(const std::vector<std::pair<QueueConfig, QueueCounts>>& queues, WallTime now) {
  std::string out = "[";
  for (const auto& [config, counts] : queues) {
    out += cat(out.size() > 1 ? "," : "", to_json(config, counts, now));
  }
  return out + "]";
}

std::string to_json(const Error& error, const ItemLost& lost) {
  json::object inner;
  inner["code"] = std::string(word(error.code));
  inner["message"] = error.message;
  inner["cause"] = std::string(core::word(lost.cause));
  inner["item"] = lost.item ? json::value(item_object(*lost.item)) : json::value(nullptr);
  json::object out;
  out["error"] = std::move(inner);
  return json::serialize(out);
}

}  // namespace stint::api
