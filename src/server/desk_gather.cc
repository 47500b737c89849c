// What came while the store was busy goes to it together.
#include "base/text.h"
#include "server/desk.h"

namespace stint::server {
namespace {

// Those that Desk::gather() takes.
const Route* short_route(std::string_view target) {
  for (const Route& route : routes()) {
    const bool taken =
        route.path == "/v1/acquire" || route.path == "/v1/renew" || route.path == "/v1/release";
    if (taken && route.path == target && route.method == "POST") return &route;
  }
  return nullptr;
}

}  // namespace

bool Desk::gather(const VisitPtr& visit, const std::shared_ptr<Request>& request) {
  if (serve_.backend.batch == nullptr || visit->route->method != "POST") return false;
  auto ask = read_ask(*request, visit->route->path);
  if (!ask) {
    finish(visit, fault_answer(ask.error()));
    return true;
  }
  return *ask && line_up(visit, request, std::move(**ask));
}

bool Desk::line_up(const VisitPtr& visit, const std::shared_ptr<Request>& request, api::Ask ask) {
  if (serve_.backend.batch == nullptr || gathered_.size() >= serve_.limits.most_queued) {
    return false;
  }
  gathered_.push_back({visit, request, std::move(ask)});
  ++metrics_.queued;
  if (std::exchange(gathering_, true)) return true;
  // After what else this turn of the loop brings.
  http_->post([this] { run_gathered(); });
  return true;
}

void Desk::finish_all(std::vector<Gathered>& batch, Answers& answers) {
  for (auto& [i, answer] : answers) {
    answer.is_short = true;
    finish(batch[i].visit, std::move(answer));
  }
}

void Desk::run_gathered() {
  constexpr std::size_t kMost = 256;
  auto batch = std::make_shared<std::vector<Gathered>>();
  // The loop's own memory goes back to it, in the end, not to the clerk's.
  auto asks = std::make_shared<std::vector<api::Ask>>();
  if (gathered_.size() <= kMost) {
    batch->swap(gathered_);
  } else {
    const auto end = gathered_.begin() + kMost;
    batch->assign(std::make_move_iterator(gathered_.begin()), std::make_move_iterator(end));
    gathered_.erase(gathered_.begin(), end);
  }
  if (batch->empty()) {
    gathering_ = false;
    return;
  }
  metrics_.queued -= static_cast<std::int64_t>(batch->size());
  const bool queued = http_->work_in_turn([this, batch, asks] {
    const MonoTime began = clock_.mono();
    asks->reserve(batch->size());
    for (Gathered& one : *batch) asks->push_back(std::move(one.ask));
    auto answers = std::make_shared<Answers>();
    answers->reserve(batch->size());
    const auto tell = [&](std::size_t i, const api::AskAnswer& told) {
      answers->emplace_back(i, ask_answer(*(*batch)[i].request, (*asks)[i], told));
    };
    // What waits for no disk does not wait for what the others have written.
    const auto pause = [&] {
      if (answers->empty()) return;
      auto early = std::make_shared<Answers>();
      early->reserve(batch->size() - answers->size());
      early.swap(answers);
      http_->post([this, batch, early] { finish_all(*batch, *early); });
    };
    serve_.backend.batch->many(*asks, tell, pause);
    metrics_.store_time.observe(clock_.mono() - began);
    http_->post([this, batch, asks, answers] {
      // The next ones are on their way to the store before these are told.
      run_gathered();
      finish_all(*batch, *answers);
    });
  });
  if (queued) return;
  for (const Gathered& one : *batch) {
    finish(one.visit, error_answer(503,
                                   unavailable("too much is waiting for the store: ask again. "
                                               "Nothing was done."),
                                   Millis(1000)));
  }
  run_gathered();
}

// Only the way of what is well: whatever is to be refused is refused by the loop, in one place. So
// nothing is counted or taken for it before it is sure to be served here.
std::optional<api::Ask> Desk::short_ask(const VisitPtr& visit, Request& request) {
  if (visit->route->path != "/v1/acquire") {
    auto ask = read_ask(request, visit->route->path);
    if (!ask || !*ask || !keeper_.within_rate(visit->caller)) return std::nullopt;
    return std::move(**ask);
  }
  auto bid = read_bid(request);
  if (!bid || bid->listed || bid->wait.count() > 0) return std::nullopt;
  // The rate last: what is declined for another reason is counted once, by the loop.
  if (!take_places(*visit, *bid) || !keeper_.within_rate(visit->caller)) return std::nullopt;
  request.made = bid->made;
  return std::move(bid->first);
}

std::optional<Desk::Gathered> Desk::read_short(const std::shared_ptr<net::http::ShortCall>& call) {
  const net::http::RequestHead& head = call->head();
  const Route* const route = head.method == "POST" ? short_route(head.target) : nullptr;
  if (route == nullptr || stopping_ || call->body().size() > serve_.limits.body_bytes) {
    return std::nullopt;
  }
  auto admitted = keeper_.admit(head);
  auto* const caller = std::get_if<Caller>(&admitted);
  if (caller == nullptr || !caller->may(route->rights)) return std::nullopt;
  auto visit = std::make_shared<Visit>();
  visit->call = call;
  visit->began = clock_.mono();
  visit->route = route;
  visit->caller = std::move(*caller);
  auto request = request_of(visit);
  if (read_once(visit, *request, std::string(call->body()))) return std::nullopt;
  auto parsed = JsonValue::parse(call->body());
  if (!parsed) return std::nullopt;
  request->body = std::move(*parsed);
  auto ask = short_ask(visit, *request);
  if (!ask) return std::nullopt;
  visit->id = cat(id_prefix_, "-", next_id_.fetch_add(1));
  note_use(visit->caller);
  return Gathered{std::move(visit), std::move(request), std::move(*ask)};
}

void Desk::turn(net::http::Turn& turn) {
  const auto& calls = turn.calls();
  std::vector<Gathered> batch;
  std::vector<api::Ask> asks;
  batch.reserve(calls.size());
  asks.reserve(calls.size());
  for (const auto& call : calls) {
    auto one = read_short(call);
    if (!one) continue;
    asks.push_back(std::move(one->ask));
    batch.push_back(std::move(*one));
  }
  if (asks.empty()) return;
  const MonoTime began = clock_.mono();
  serve_.backend.batch->many(
      asks,
      [&](std::size_t i, const api::AskAnswer& told) {
        finish(batch[i].visit, ask_answer(*batch[i].request, asks[i], told));
      },
      [&turn] { turn.send(); });
  metrics_.store_time.observe(clock_.mono() - began);
}

}  // namespace stint::server
