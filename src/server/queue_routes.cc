// Queues and their items.
#include "api/queue_wire.h"
#include "api/words.h"
#include "base/text.h"
#include "server/routes.h"
#include "server/wakes.h"

namespace stint::server {
namespace {

constexpr std::size_t kMostItems = 1000;

Status reach_queue(const Caller& caller, const core::QueueName& queue) {
  if (!caller.reaches(queue.text())) return out_of_reach(caller, queue.text());
  return {};
}

Result<core::QueueName> reachable_queue(Request& request, JsonFields& in) {
  auto queue = api::read_queue(in);
  if (!queue) return queue.error();
  if (auto ok = reach_queue(request.caller, *queue); !ok) return ok.error();
  return queue;
}

Result<core::QueueName> asked_queue(Request& request) {
  auto queue = core::QueueName::parse(query_text(request, "queue"));
  if (!queue) return queue.error();
  if (auto ok = reach_queue(request.caller, *queue); !ok) return ok.error();
  return queue;
}

// An id names its queue: a key that does not reach the queue does not reach the item.
Result<core::ItemId> reachable_id(Request& request, JsonFields& in) {
  auto id = api::read_item_id(in);
  if (!id) return id.error();
  if (auto ok = reach_queue(request.caller, id->queue()); !ok) return ok.error();
  return id;
}

// Who has the key stands in front of what they call themselves.
Result<std::string> signed_by(const Request& request, const std::string& label) {
  if (!request.caller.key) return label;
  if (label.empty()) return request.caller.name();
  auto owner = request.caller.owner(label);
  if (!owner) return owner.error();
  return owner->text();
}

Answer item_answer(const Result<api::ItemAnswer>& answer, const core::ItemId& id, Token offered) {
  if (!answer) return fault_answer(answer.error());
  if (const auto* done = std::get_if<api::ItemDone>(&*answer)) return ok(api::to_json(*done));
  const auto& lost = std::get<api::ItemLost>(*answer);
  const Error error{Code::Lost, api::describe_loss(lost, id, offered)};
  return {.status = status_of(Code::Lost), .body = api::to_json(error, lost)};
}

Error another_keys(const Request& request, const api::ItemRef& ref, const Owner& owner) {
  return {Code::Denied, cat("epoch ", ref.epoch.number(), " of ", quoted(ref.id.text()),
                            " was given to ", quoted(owner.text()), ", which is no run of the key ",
                            quoted(request.caller.name()))};
}

// Empty: the claim is one of the caller's key. Otherwise what is answered.
std::optional<Answer> not_mine(Request& request, const api::ItemRef& ref) {
  if (!request.caller.key) return std::nullopt;
  auto owner = request.claims.find(ref);
  if (!owner) {
    auto item = request.queue().show(ref.id);
    if (!item) return fault_answer(item.error());
    // Nobody has it: the verb itself says so, better than anything that is said here.
    if (!*item || ref.epoch < (*item)->item.epoch) return std::nullopt;
    if (ref.epoch > (*item)->item.epoch) {
      const api::ItemLost never{.cause = core::ItemCause::NeverIssued, .item = std::move(**item)};
      return item_answer(api::ItemAnswer(never), ref.id, ref.epoch);
    }
    owner = (*item)->item.owner;
    if (owner->empty()) return std::nullopt;
    request.claims.note(ref, *owner);
  }
  if (owner->text().starts_with(request.caller.name() + "/")) return std::nullopt;
  return fault_answer(another_keys(request, ref, *owner));
}

// A worker's verb: the claim's reference, and what else the verb reads.
template <class Verb>
Answer work(Request& request, Verb verb) {
  JsonFields in(request.body);
  auto id = reachable_id(request, in);
  if (!id) return fault_answer(id.error());
  in.require("epoch");
  api::ItemRef ref{.id = std::move(*id), .epoch = in.token("epoch"), .once = request.once};
  if (auto fine = in.done(); !fine) return fault_answer(fine.error());
  if (auto fine = api::check_ref(ref); !fine) return fault_answer(fine.error());
  if (auto no = not_mine(request, ref)) return std::move(*no);
  Result<api::ItemAnswer> answer = verb(ref, in);
  return item_answer(answer, ref.id, ref.epoch);
}

// What the verb has read is all that there may be.
Status all_read(JsonFields& in) {
  in.refuse_others();
  return in.done();
}

Answer carry_order(Request& request, core::ItemOrder::What what) {
  JsonFields in(request.body);
  auto id = reachable_id(request, in);
  if (!id) return fault_answer(id.error());
  in.require("why");
  core::ItemOrder order{.what = what,
                        .expected = std::nullopt,
                        .why = in.text("why"),
                        .by = {},
                        .id = in.text("order"),
                        .to = {},
                        .hold = {}};
  auto by = signed_by(request, in.text("by"));
  if (!by) return fault_answer(by.error());
  order.by = *by;
  if (in.find("epoch") != nullptr) order.expected = in.token("epoch");
  if (what == core::ItemOrder::What::Reassign) {
    order.to = in.owner("to");
    order.hold = in.millis("hold_ms");
  } else {
    in.find("to");
    in.find("hold_ms");
  }
  if (auto fine = all_read(in); !fine) return fault_answer(fine.error());
  constexpr std::size_t kMostOrder = 64;
  if (order.id.size() > kMostOrder || !is_utf8(order.id) || has_control(order.id)) {
    return fault_answer(invalid("'order' is a text of at most 64 bytes"));
  }
  // The same order again is recognised by its name.
  if (order.id.empty() && request.once) order.id = request.once->key.substr(0, 32);
  return item_answer(request.queue().order(*id, order, request.once), *id,
                     order.expected.value_or(Token()));
}

}  // namespace

Answer list_queues(Request& request) {
  auto all = request.queue().queues();
  if (!all) return fault_answer(all.error());
  std::vector<std::pair<api::QueueConfig, api::QueueCounts>> rows;
  for (const api::QueueConfig& one : *all) {
    if (!request.caller.reaches(one.name.text())) continue;
    auto counts = request.queue().count(one.name);
    if (!counts) return fault_answer(counts.error());
    rows.emplace_back(one, *counts);
  }
  return ok(cat("{\"queues\":", api::to_json(rows, request.clock.wall()), "}"));
}

Answer get_queue(Request& request) {
  auto name = asked_queue(request);
  if (!name) return fault_answer(name.error());
  auto config = request.queue().config(*name);
  if (!config) return fault_answer(config.error());
  auto counts = request.queue().count(*name);
  if (!counts) return fault_answer(counts.error());
  return ok(api::to_json(*config, *counts, request.clock.wall()));
}

Answer configure_queue(Request& request) {
  JsonFields in(request.body);
  auto queue = reachable_queue(request, in);
  if (!queue) return fault_answer(queue.error());
  in.require("limits");
  const JsonValue* told = in.find("limits");
  api::QueueConfig config{.name = *queue, .limits = {}};
  if (told != nullptr) config.limits = api::read_limits(*told, in);
  if (auto fine = all_read(in); !fine) return fault_answer(fine.error());
  if (auto ok = core::check_new_limits(config.limits); !ok) return fault_answer(ok.error());
  if (auto done = request.queue().configure(config, request.once); !done)
    return fault_answer(done.error());
  return ok(api::to_json(config));
}

Answer list_items(Request& request) {
  auto name = asked_queue(request);
  if (!name) return fault_answer(name.error());
  auto limit = query_limit(request, 100, kMostItems);
  if (!limit) return fault_answer(limit.error());
  api::ItemPage page{.queue = *name,
                     .state = std::nullopt,
                     .limit = *limit,
                     .after = query_text(request, "after")};
  if (const std::string state = query_text(request, "state"); !state.empty()) {
    page.state = core::parse_item_state(state);
    if (!page.state) {
      return fault_answer(
          invalid("'state' is waiting, claimed, parked, failed, cancelled or done"));
    }
  }
  auto items = request.queue().list(page);
  if (!items) return fault_answer(items.error());
  std::string out = cat("{\"items\":", api::to_json(*items));
  // A cursor has no character that JSON would write otherwise.
  if (items->size() == *limit) out += cat(",\"next\":\"", api::cursor_of(items->back()), "\"");
  return ok(out + "}");
}

Answer get_item(Request& request) {
  auto id = core::ItemId::parse(query_text(request, "id"));
  if (!id) return fault_answer(id.error());
  if (auto fine = reach_queue(request.caller, id->queue()); !fine) {
    return fault_answer(fine.error());
  }
  auto item = request.queue().show(*id);
  if (!item) return fault_answer(item.error());
  if (*item) return ok(api::to_json(**item));
  const api::ItemLost none{.cause = core::ItemCause::NotThere, .item = std::nullopt};
  return item_answer(api::ItemAnswer(none), *id, Token());
}

Answer put_item(Request& request) {
  JsonFields in(request.body);
  auto queue = reachable_queue(request, in);
  if (!queue) return fault_answer(queue.error());
  const auto payload = api::read_content(in, "payload");
  const std::int64_t priority = in.number("priority");
  if (priority < core::kLowestPriority || priority > core::kHighestPriority) {
    in.fail(
        cat("'priority' is a number from ", core::kLowestPriority, " to ", core::kHighestPriority));
  }
  auto by = signed_by(request, in.text("by"));
  if (!by) return fault_answer(by.error());
  api::PutRequest put{.queue = *queue,
                      .payload = payload.value_or(""),
                      .priority = static_cast<int>(priority),
                      .delay = in.millis("delay_ms"),
                      .unique = in.text("unique"),
                      .labels = in.texts("labels"),
                      .by = *by,
                      .limits = std::nullopt,
                      .create = in.flag("create"),
                      .once = request.once};
  if (const JsonValue* limits = in.find("limits")) put.limits = api::read_limits(*limits, in);
  if (auto fine = all_read(in); !fine) return fault_answer(fine.error());
  auto answer = request.queue().put(put);
  if (!answer) return fault_answer(answer.error());
  return ok(api::to_json(*answer));
}

Result<ItemBid> read_item_bid(Request& request) {
  JsonFields in(request.body);
  auto queue = reachable_queue(request, in);
  if (!queue) return queue.error();
  const std::string label = in.text("owner");
  const std::string claim_text = in.text("claim");
  const Millis ttl = in.millis("ttl_ms");
  const bool start = in.flag("start");
  const bool reports = in.flag("reports");
  const bool starts_later = in.flag("starts_later");
  const bool will_wait = in.flag("will_wait");
  const Millis wait = in.millis("wait_ms");
  if (label.empty() && !request.caller.key) in.fail("'owner' is missing");
  if (auto fine = all_read(in); !fine) return fine.error();
  if (wait > request.serve.limits.longest_wait) {
    return invalid(cat("'wait_ms' is at most ", request.serve.limits.longest_wait.count()));
  }
  auto owner = request.caller.owner(label.empty() ? "run" : label);
  if (!owner) return owner.error();
  auto claim = claim_text.empty() ? Result<Claim>(make_claim(request)) : Claim::parse(claim_text);
  if (!claim) return std::move(claim.error()).during("reading 'claim'");
  return ItemBid{.claim = {.queue = *queue,
                           .owner = *owner,
                           .claim = *claim,
                           .ttl = ttl,
                           .start = start,
                           .reports = reports,
                           .starts_later = starts_later,
                           .will_wait = will_wait || wait.count() > 0,
                           .once = request.once},
                 .wait = wait};
}

Answer item_bid_answer(Request& request, const Result<api::ClaimAnswer>& answer) {
  if (!answer) return fault_answer(answer.error());
  if (const auto* claimed = std::get_if<api::ClaimedItem>(&*answer)) {
    const api::QueueItem& item = claimed->item;
    if (!claimed->replayed) request.claims.note({item.id, item.item.epoch}, item.item.owner);
  }
  return ok(api::to_json(*answer));
}

Answer claim_item(Request& request) {
  auto bid = read_item_bid(request);
  if (!bid) return fault_answer(bid.error());
  return item_bid_answer(request, request.queue().claim(bid->claim));
}

Answer start_item(Request& request) {
  return work(request, [&](const api::ItemRef& ref, JsonFields& in) -> Result<api::ItemAnswer> {
    const bool reports = in.flag("reports");
    if (auto fine = all_read(in); !fine) return fine.error();
    return request.queue().start(ref, reports);
  });
}

Answer renew_item(Request& request) {
  request.once.reset();  // never replayed
  return work(request, [&](const api::ItemRef& ref, JsonFields& in) -> Result<api::ItemAnswer> {
    const Millis ttl = in.millis("ttl_ms");
    if (auto fine = all_read(in); !fine) return fine.error();
    return request.queue().renew(ref, ttl);
  });
}

Answer checkpoint_item(Request& request) {
  return work(request, [&](const api::ItemRef& ref, JsonFields& in) -> Result<api::ItemAnswer> {
    const std::string marker = in.text("marker");
    const auto data = api::read_content(in, "data");
    if (auto fine = all_read(in); !fine) return fine.error();
    return request.queue().checkpoint(ref, marker, data);
  });
}

Answer complete_item(Request& request) {
  return work(request, [&](const api::ItemRef& ref, JsonFields& in) -> Result<api::ItemAnswer> {
    api::Completion completion{
        .ref = ref, .result = api::read_content(in, "result"), .then = api::read_follow_ups(in)};
    if (auto fine = all_read(in); !fine) return fine.error();
    for (const api::FollowUp& next : completion.then) {
      if (auto fine = reach_queue(request.caller, next.queue); !fine) return fine.error();
    }
    return request.queue().complete(completion);
  });
}

// Who asks without a key is told the same way that it was done before.
Result<std::string> done_again(const Request& /*request*/, std::string kept) {
  constexpr std::string_view kFirst = "\"repeated\":false";
  const std::size_t at = kept.find(kFirst);  // within a text its quotes would be escaped
  if (at != kept.npos) kept.replace(at, kFirst.size(), "\"repeated\":true");
  return kept;
}

Answer fail_item(Request& request) {
  return work(request, [&](const api::ItemRef& ref, JsonFields& in) -> Result<api::ItemAnswer> {
    const std::string why = in.text("why");
    const auto later = in.maybe_millis("later_ms");
    if (auto fine = all_read(in); !fine) return fine.error();
    return request.queue().fail(ref, why, later);
  });
}

Answer release_item(Request& request) {
  return work(request, [&](const api::ItemRef& ref, JsonFields& in) -> Result<api::ItemAnswer> {
    if (auto fine = all_read(in); !fine) return fine.error();
    return request.queue().release(ref);
  });
}

Answer park_item(Request& request) { return carry_order(request, core::ItemOrder::What::Park); }
Answer requeue_item(Request& request) {
  return carry_order(request, core::ItemOrder::What::Requeue);
}
Answer reassign_item(Request& request) {
  return carry_order(request, core::ItemOrder::What::Reassign);
}
Answer cancel_item(Request& request) { return carry_order(request, core::ItemOrder::What::Cancel); }
Answer replay_item(Request& request) { return carry_order(request, core::ItemOrder::What::Replay); }
Answer drop_item(Request& request) { return carry_order(request, core::ItemOrder::What::Drop); }

Answer tend_queue(Request& request) {
  JsonFields in(request.body);
  auto queue = reachable_queue(request, in);
  if (!queue) return fault_answer(queue.error());
  if (auto fine = all_read(in); !fine) return fault_answer(fine.error());
  auto tended = request.queue().tend(*queue);
  if (!tended) return fault_answer(tended.error());
  return ok(api::to_json(*tended));
}

Result<std::string> watched_queue(const Caller& caller,
                                  const std::map<std::string, std::string>& query) {
  const auto name = query.find("queue");
  const auto item = query.find("id");
  if ((name == query.end()) == (item == query.end())) {
    return invalid("'queue' or 'id' in the query: one of them");
  }
  if (name != query.end()) {
    auto queue = core::QueueName::parse(name->second);
    if (!queue) return queue.error();
    if (auto fine = reach_queue(caller, *queue); !fine) return fine.error();
    return Wakes::of_queue(*queue);
  }
  auto id = core::ItemId::parse(item->second);
  if (!id) return id.error();
  if (auto fine = reach_queue(caller, id->queue()); !fine) return fine.error();
  return Wakes::of_item(*id);
}

}  // namespace stint::server
