// Queues over the link.
//
// What a lost answer means: a put, a claim, a completion with follow-ups and an operator's verb go
// with an idempotency key, so that asking again is the same request. Every other verb of a worker
// is the same by its epoch; a refusal after a lost answer proves nothing, and stays unknown. A
// renewal is asked once.
#include <algorithm>

#include "api/queue_wire.h"
#include "api/wire.h"
#include "base/json_text.h"
#include "base/text.h"
#include "client/faces.h"

namespace stint::client {
namespace {

constexpr std::size_t kMostItemsAtOnce = 1000;

Error no_answer(const Error& error) {
  return unavailable(cat("the server's answer: ", error.message));
}
// Of what may have been done.
Error no_word(const Error& error) {
  return {Code::UnknownOutcome, cat("the server's answer: ", error.message)};
}

Result<api::ItemAnswer> item_answer_of(const Result<Link::Reply>& reply) {
  if (!reply) return reply.error();
  if (reply->status == 200) {
    auto done = api::parse_item_done(reply->json);
    if (!done) return no_word(done.error());
    return api::ItemAnswer(std::move(*done));
  }
  auto lost = api::parse_item_lost(reply->json);
  if (!lost) return Link::error_of(*reply);
  return api::ItemAnswer(std::move(*lost));
}

}  // namespace

Result<api::ItemAnswer> HttpQueue::work(const std::string& path, const api::ItemRef& ref,
                                        const std::string& body, Link::Again again) {
  if (auto ok = api::check_ref(ref); !ok) return ok.error();
  return item_answer_of(link_.post(cat("/v1/queues/", path), body, again));
}

// ---- queues

Status HttpQueue::configure(const api::QueueConfig& config,
                            const std::optional<api::Once>& /*once: the link makes one*/) {
  if (auto ok = core::check_limits(config.limits); !ok) return ok;
  auto reply = link_.post("/v1/queues/configure", api::to_json(config), Link::Again::Yes);
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  return {};
}

Result<std::pair<api::QueueConfig, api::QueueCounts>> HttpQueue::one(const core::QueueName& queue) {
  auto reply = link_.get("/v1/queues/queue", {{"queue", queue.text()}});
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  auto parsed = api::parse_queue(reply->json);
  if (!parsed) return no_answer(parsed.error());
  return parsed;
}

Result<api::QueueConfig> HttpQueue::config(const core::QueueName& queue) {
  auto found = one(queue);
  if (!found) return found.error();
  return std::move(found->first);
}

Result<api::QueueCounts> HttpQueue::count(const core::QueueName& queue) {
  auto found = one(queue);
  if (!found) return found.error();
  return found->second;
}

Result<std::vector<api::QueueConfig>> HttpQueue::queues() {
  auto reply = link_.get("/v1/queues");
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  const JsonValue* list = JsonFields(reply->json).find("queues");
  if (list == nullptr || list->if_list() == nullptr) return no_answer(invalid("no queues"));
  std::vector<api::QueueConfig> out;
  for (const JsonValue& row : *list->if_list()) {
    auto parsed = api::parse_queue(row);
    if (!parsed) return no_answer(parsed.error());
    out.push_back(std::move(parsed->first));
  }
  return out;
}

// ---- put and claim

Result<api::PutAnswer> HttpQueue::put(const api::PutRequest& request) {
  if (auto ok = api::check_put(request); !ok) return ok.error();
  auto reply = link_.post_once("/v1/queues/put", api::to_json(request));
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  auto answer = api::parse_put(reply->json);
  if (!answer) return no_word(answer.error());
  return answer;
}

Result<api::ClaimAnswer> HttpQueue::claim(const api::ClaimRequest& request) {
  if (auto ok = api::check_claim(request); !ok) return ok.error();
  auto reply = link_.post_once("/v1/queues/claim", api::to_json(request));
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  auto answer = api::parse_claim(reply->json);
  if (!answer) return no_word(answer.error());
  return answer;
}

// ---- the worker's verbs

Result<api::ItemAnswer> HttpQueue::start(const api::ItemRef& ref, bool reports) {
  return work("start", ref, api::to_json(ref, reports ? ",\"reports\":true" : ""),
              Link::Again::Leave);
}

// Once: who renews asks again by itself, and counts from before it asked.   G6
Result<api::ItemAnswer> HttpQueue::renew(const api::ItemRef& ref, Millis ttl) {
  return work("renew", ref, api::to_json(ref, cat(",\"ttl_ms\":", ttl.count())), Link::Again::No);
}

Result<api::ItemAnswer> HttpQueue::checkpoint(const api::ItemRef& ref, const std::string& marker,
                                              const std::optional<std::string>& data) {
  if (auto ok = api::check_marker(marker); !ok) return ok.error();
  if (data) {
    if (auto ok = api::check_data("a checkpoint", *data); !ok) return ok.error();
  }
  const std::string further =
      cat(",\"marker\":", json_quoted(marker), api::content_field("data", data));
  return work("checkpoint", ref, api::to_json(ref, further), Link::Again::Leave);
}

Result<api::ItemAnswer> HttpQueue::complete(const api::Completion& completion) {
  if (auto ok = api::check_completion(completion); !ok) return ok.error();
  const std::string body = api::to_json(completion);
  // With follow-ups, the repeated answer is to name them, too.
  if (completion.then.empty()) return work("complete", completion.ref, body, Link::Again::Yes);
  return item_answer_of(link_.post_once("/v1/queues/complete", body));
}

Result<api::ItemAnswer> HttpQueue::fail(const api::ItemRef& ref, const std::string& why,
                                        std::optional<Millis> later) {
  if (auto ok = api::check_why(why, false); !ok) return ok.error();
  std::string further = cat(",\"why\":", json_quoted(why));
  if (later) further += cat(",\"later_ms\":", later->count());
  return work("fail", ref, api::to_json(ref, further), Link::Again::Yes);
}

Result<api::ItemAnswer> HttpQueue::release(const api::ItemRef& ref) {
  return work("release", ref, api::to_json(ref), Link::Again::Yes);
}

Result<api::ItemAnswer> HttpQueue::order(const core::ItemId& id, const core::ItemOrder& order,
                                         const std::optional<api::Once>& /*once*/) {
  if (auto ok = api::check_order(order); !ok) return ok.error();
  return item_answer_of(
      link_.post_once(cat("/v1/queues/", core::word(order.what)), api::to_json(id, order)));
}

// ---- looking

Result<std::optional<api::QueueItem>> HttpQueue::show(const core::ItemId& id) {
  using Answer = std::optional<api::QueueItem>;
  auto reply = link_.get("/v1/queues/item", {{"id", id.text()}});
  if (!reply) return reply.error();
  if (reply->status != 200) {
    const auto lost = api::parse_item_lost(reply->json);
    if (lost && lost->cause == core::ItemCause::NotThere) return Answer();
    return Link::error_of(*reply);
  }
  auto item = api::parse_item(reply->json);
  if (!item) return no_answer(item.error());
  return Answer(std::move(*item));
}

Result<std::vector<api::QueueItem>> HttpQueue::list(const api::ItemPage& page) {
  std::vector<api::QueueItem> out;
  std::string after = page.after;
  while (out.size() < page.limit) {
    const std::size_t limit = std::min(kMostItemsAtOnce, page.limit - out.size());
    auto reply =
        link_.get("/v1/queues/items",
                  {{"queue", page.queue.text()},
                   {"state", page.state ? std::string(core::word(*page.state)) : std::string()},
                   {"after", after},
                   {"limit", cat(limit)}});
    if (!reply) return reply.error();
    if (reply->status != 200) return Link::error_of(*reply);
    JsonFields in(reply->json);
    const JsonValue* list = in.find("items");
    if (list == nullptr || list->if_list() == nullptr) return no_answer(invalid("no items"));
    for (const JsonValue& one_item : *list->if_list()) {
      auto item = api::parse_item(one_item);
      if (!item) return no_answer(item.error());
      out.push_back(std::move(*item));
    }
    after = in.text("next");
    if (after.empty()) break;
  }
  return out;
}

Result<api::Tended> HttpQueue::tend(const core::QueueName& queue) {
  auto reply = link_.post("/v1/queues/tend", cat("{\"queue\":", json_quoted(queue.text()), "}"),
                          Link::Again::Yes);
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  auto tended = api::parse_tended(reply->json);
  if (!tended) return no_answer(tended.error());
  return *tended;
}

}  // namespace stint::client
