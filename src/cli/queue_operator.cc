// stint queue ls, show, and the operator's verbs.
#include <array>

#include "api/json.h"
#include "api/queue_json.h"
#include "base/text.h"
#include "cli/exit_codes.h"
#include "cli/queue.h"
#include "cli/table.h"
#include "os/host.h"

namespace stint::cli {
namespace {

int list_queues(Session& session, api::Queue& queue) {
  auto all = queue.queues();
  if (!all) return session.fail(all.error());
  std::vector<std::pair<api::QueueConfig, api::QueueCounts>> rows;
  for (const api::QueueConfig& one : *all) {
    auto counts = queue.count(one.name);
    if (!counts) return session.fail(counts.error());
    rows.emplace_back(one, *counts);
  }
  if (session.json()) {
    session.print(api::to_json(rows, session.clock().wall()));
    return kDone;
  }
  const auto number = [](std::size_t n) { return cat(n, n >= api::kMostCounted ? "+" : ""); };
  Table table({"QUEUE", "WAITING", "CLAIMED", "PARKED", "FINISHED", "OLDEST", "REQUEUE"});
  for (const auto& [config, counts] : rows) {
    table.add({config.name.text(), number(counts.waiting), number(counts.claimed),
               number(counts.parked), number(counts.finished), when(counts.oldest),
               std::string(core::word(config.limits.requeue))});
  }
  session.print_table(table);
  return kDone;
}

}  // namespace

int queue_ls(Session& session) {
  const Words& words = session.words();
  auto queue = open_queue(session);
  if (!queue) return session.fail(queue.error());
  if (words.operands().size() < 2) return list_queues(session, **queue);
  auto name = core::QueueName::parse(words.operands()[1]);
  if (!name) return session.fail(name.error());
  api::ItemPage page{.queue = *name, .state = std::nullopt, .limit = 1000};
  if (const auto text = words.value("--state")) {
    page.state = core::parse_item_state(*text);
    if (!page.state) {
      return session.fail(
          invalid("--state is waiting, claimed, parked, failed, cancelled or done"));
    }
  }
  if (const auto text = words.value("--limit")) {
    const auto number = parse_digits(*text);
    if (!number || *number == 0 || *number > 100'000) {
      return session.fail(invalid("--limit is a number from 1 to 100000"));
    }
    page.limit = *number;
  }
  auto items = (*queue)->list(page);
  if (!items) return session.fail(items.error());
  if (session.json()) {
    session.print(api::to_json(*items));
    return kDone;
  }
  Table table({"ID", "STATE", "EPOCH", "OWNER", "ATTEMPT", "LEFT", "PROGRESS", "WHY"});
  for (const api::QueueItem& item : *items) {
    table.add({item.id.text(), std::string(core::word(item.item.state)),
               cat(item.item.epoch.number()), or_dash(item.item.owner.text()),
               cat(item.item.attempts, "/", item.item.limits.max_attempts),
               item.remaining ? rough_duration(*item.remaining) : "-", or_dash(item.item.progress),
               or_dash(item.item.why)});
  }
  session.print_table(table);
  return kDone;
}

int queue_show(Session& session) {
  auto id = item_id(session);
  if (!id) return session.fail(id.error());
  auto queue = open_queue(session);
  if (!queue) return session.fail(queue.error());
  auto found = (*queue)->show(*id);
  if (!found) return session.fail(found.error());
  if (!*found) {
    return session.nothing(cat("there is no item ", quoted(id->text())));
  }
  const api::QueueItem& item = **found;
  if (session.json()) {
    session.print(api::to_json(item));
    return kDone;
  }
  Table card({"", ""});
  const auto line = [&](std::string_view name, std::string text) {
    if (!text.empty() && text != "-") card.add({std::string(name), std::move(text)});
  };
  line("id", item.id.text());
  line("state", std::string(core::word(item.item.state)));
  line("epoch", cat(item.item.epoch.number()));
  line("owner", or_dash(item.item.owner.text()));
  line("attempt", cat(item.item.attempts, " of ", item.item.limits.max_attempts));
  line("left", item.remaining ? rough_duration(*item.remaining) : "-");
  line("started", item.item.started ? "yes" : "no");
  line("progress", or_dash(item.item.progress));
  line("why", or_dash(item.item.why));
  line("by", or_dash(item.item.by));
  line("reserved for", or_dash(item.item.reserved_for.text()));
  line("not before", when(item.not_before));
  line("put", when(item.put_at));
  line("put by", or_dash(item.put_by));
  line("parent", or_dash(item.parent));
  line("requeue", std::string(core::word(item.item.limits.requeue)));
  line("payload", cat(item.payload_bytes, " bytes"));
  line("result", item.result ? cat(item.result->size(), " bytes") : "-");
  bool header = true;
  for (const std::string& text : card.lines()) {
    if (!header) session.print(text);
    header = false;
  }
  return kDone;
}

int queue_order(Session& session) {
  using What = core::ItemOrder::What;
  const Words& words = session.words();
  constexpr std::array<What, 6> kOrders = {What::Park,   What::Requeue, What::Reassign,
                                           What::Cancel, What::Replay,  What::Drop};
  auto id = item_id(session);
  if (!id) return session.fail(id.error());
  core::ItemOrder order;
  for (const What what : kOrders) {
    if (words.operands().front() == core::word(what)) order.what = what;
  }
  order.why = words.value("--why").value_or("");
  if (const auto text = words.value("--epoch")) {
    auto epoch = Token::parse(*text);
    if (!epoch) return session.fail(invalid(cat("--epoch: ", epoch.error().message)));
    order.expected = *epoch;
  }
  if (const auto text = words.value("--to")) {
    if (order.what != What::Reassign) return session.fail(invalid("--to is for reassign"));
    auto to = Owner::parse(*text);
    if (!to) return session.fail(to.error());
    order.to = *to;
  }
  order.by = words.value("--by").value_or(os::user_name());
  order.id = session.random().id_hex();
  if (auto ok = api::check_order(order); !ok) return session.fail(ok.error());
  auto queue = open_queue(session);
  if (!queue) return session.fail(queue.error());
  return tell(session, (*queue)->order(*id, order), order.expected.value_or(Token()));
}

}  // namespace stint::cli
