#include "api/queue.h"

#include <array>

#include "base/sha256.h"
#include "base/text.h"

namespace stint::api {
namespace {

Status check_line(std::string_view what, const std::string& text, std::size_t most) {
  if (text.size() <= most && is_utf8(text) && !has_control(text)) return {};
  return invalid(cat(what, " is at most ", most, " bytes of UTF-8 in one line"));
}

constexpr std::array<std::pair<ItemGroup, std::string_view>, 5> kGroupWords = {
    {{ItemGroup::Claimed, "claimed"},
     {ItemGroup::Ready, "ready"},
     {ItemGroup::Later, "later"},
     {ItemGroup::Parked, "parked"},
     {ItemGroup::Ended, "ended"}}};

ItemGroup group_of(const QueueItem& item) {
  switch (item.item.state) {
    case core::ItemState::Claimed: return ItemGroup::Claimed;
    case core::ItemState::Parked: return ItemGroup::Parked;
    case core::ItemState::Failed:
    case core::ItemState::Cancelled:
    case core::ItemState::Done: return ItemGroup::Ended;
    case core::ItemState::Waiting: break;
  }
  const bool later = item.not_before || !item.item.reserved_for.empty();
  return later ? ItemGroup::Later : ItemGroup::Ready;
}

void add(Sha256& sum, std::string_view part) {
  sum.add(cat(part.size(), ":"));
  sum.add(part);
}

}  // namespace

std::string digest_of(const Completion& completion) {
  Sha256 sum;
  sum.add(completion.result ? "r" : "-");
  if (completion.result) add(sum, *completion.result);
  for (const FollowUp& next : completion.then) {
    add(sum, next.queue.text());
    add(sum, next.payload);
  }
  return to_hex(sum.done()).substr(0, 32);
}

Millis tend_all(Queue& queue, Millis longest) {
  constexpr Millis kSoonest{250};
  Millis next = longest;
  const auto all = queue.queues();
  // What the store does not answer now is looked at the next time.
  for (const QueueConfig& one : all ? *all : std::vector<QueueConfig>()) {
    const auto tended = queue.tend(one.name);
    if (tended && tended->next_in) next = std::min(next, *tended->next_in);
  }
  return std::max(next, kSoonest);
}

Status check_data(std::string_view what, const std::string& data) {
  if (data.size() <= kMostContentBytes) return {};
  return invalid(cat(what, " is at most ", kMostContentBytes, " bytes, and this has ", data.size(),
                     ": put what is larger into a file, and the file's name here"));
}

Status check_length(std::string_view what, Millis length) {
  constexpr Millis kLongest{std::int64_t{366} * 24 * 3600 * 1000};
  if (length.count() >= 0 && length <= kLongest) return {};
  return invalid(cat(what, " is not negative, nor longer than a year"));
}

Status check_put(const PutRequest& request) {
  if (auto ok = check_data("a payload", request.payload); !ok) return ok;
  if (request.priority < core::kLowestPriority || request.priority > core::kHighestPriority) {
    return invalid(
        cat("a priority is a number from ", core::kLowestPriority, " to ", core::kHighestPriority));
  }
  if (!check_length("", request.delay)) return invalid("not-before is at most a year from now");
  if (auto ok = check_line("a unique key", request.unique, kMostUniqueBytes); !ok) return ok;
  std::size_t bytes = 0;
  for (const std::string& label : request.labels) {
    if (label.empty()) return invalid("a label is empty");
    if (auto ok = check_line("a label", label, kMostLabelBytes); !ok) return ok;
    bytes += label.size();
  }
  if (request.labels.size() > kMostLabels || bytes > kMostLabelBytes) {
    return invalid(cat("at most ", kMostLabels, " labels, ", kMostLabelBytes, " bytes together"));
  }
  if (auto ok = check_line("who puts it", request.by, Owner::kMaxBytes); !ok) return ok;
  return request.limits ? core::check_new_limits(*request.limits) : Status();
}

Status check_claim(const ClaimRequest& request) {
  if (request.owner.empty()) return invalid("the owner is empty");
  core::ItemLimits limits;
  if (request.ttl.count() != 0) limits.claim_ttl = request.ttl;
  return core::check_new_limits(limits);
}

Status check_ref(const ItemRef& ref) {
  if (ref.epoch.issued() && ref.epoch.number() <= Token::kMax) return {};
  return invalid("an epoch is a number above zero, as 'stint queue claim' gave it");
}

Status check_marker(const std::string& marker) {
  return check_line("a marker", marker, kMostMarkerBytes);
}

Status check_why(const std::string& why, bool required) {
  if (required && why.empty()) return invalid("--why is missing: say why, it goes on record");
  return check_line("the why", why, kMostWhyBytes);
}

Status check_completion(const Completion& completion) {
  if (auto ok = check_ref(completion.ref); !ok) return ok;
  if (completion.result) {
    if (auto ok = check_data("a result", *completion.result); !ok) return ok;
  }
  if (completion.then.size() > kMostFollowUps) {
    return invalid(cat("at most ", kMostFollowUps, " follow-ups of one item"));
  }
  for (const FollowUp& next : completion.then) {
    if (auto ok = check_data("the payload of a follow-up", next.payload); !ok) return ok;
  }
  return {};
}

Status check_order(const core::ItemOrder& order) {
  if (order.expected && !order.expected->issued()) {
    return invalid("an expected epoch is a number above zero, as 'stint queue show' tells it");
  }
  if (auto ok = check_length("the time that it is kept for another", order.hold); !ok) return ok;
  if (auto ok = check_line("who ordered it", order.by, Owner::kMaxBytes); !ok) return ok;
  return check_why(order.why, true);
}

std::string cursor_of(const QueueItem& item) {
  return cat(kGroupWords.at(static_cast<std::size_t>(group_of(item))).second, ".", item.id.text());
}

Result<ItemCursor> parse_cursor(const ItemPage& page) {
  if (page.after.empty()) return ItemCursor{};
  for (const auto& [group, word] : kGroupWords) {
    const std::string head = cat(word, ".");
    if (!page.after.starts_with(head)) continue;
    auto id = core::ItemId::parse(std::string_view(page.after).substr(head.size()));
    if (id && id->queue() == page.queue) return ItemCursor{group, id->suffix()};
  }
  return invalid("'after' is the 'next' of the page before, of the same queue");
}

Status declare_limit(core::ItemLimits& limits, std::string_view key, const std::string& value) {
  if (key == "max_attempts") {
    const auto number = parse_digits(value);
    if (!number || *number == 0 || *number > 0xffff'ffff) {
      return invalid("must be a whole number above zero");
    }
    limits.max_attempts = static_cast<std::uint32_t>(*number);
    return {};
  }
  if (key == "requeue") {
    const auto requeue = core::parse_requeue(value);
    if (!requeue) return invalid("is never, if-no-progress or always");
    limits.requeue = *requeue;
    return {};
  }
  const std::array<std::pair<std::string_view, Millis*>, 4> times = {
      {{"ttl", &limits.claim_ttl},
       {"progress_timeout", &limits.progress_timeout},
       {"backoff", &limits.backoff},
       {"backoff_max", &limits.backoff_max}}};
  for (const auto& [name, target] : times) {
    if (name != key) continue;
    auto time = parse_duration(value);
    if (!time) return time.error();
    *target = *time;
    return {};
  }
  return invalid(
      "unknown key (known: max_attempts, ttl, progress_timeout, requeue, backoff, backoff_max)");
}

Status declare_queues(Queue& queue, const std::vector<QueueConfig>& declared) {
  for (const QueueConfig& wanted : declared) {
    auto present = queue.config(wanted.name);
    if (!present && present.error().code != Code::Invalid) return present.error();
    if (present && present->limits == wanted.limits) continue;
    if (auto made = queue.configure(wanted); !made) return made;
  }
  return {};
}

Error unknown_queue(const core::QueueName& queue) {
  return invalid(cat("there is no queue ", quoted(queue.text()),
                     ": 'stint queue put' makes one when it is told to --create it"));
}

}  // namespace stint::api
