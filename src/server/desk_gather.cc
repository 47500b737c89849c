// What came while the store was busy goes to it together.
#include <algorithm>

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
  if (serve_.backend.batch == nullptr) return false;
  if (gathered_.size() + in_look_ >= serve_.limits.most_queued) return false;
  gathered_.push_back({visit, request, std::move(ask)});
  ++unseen_;
  ++metrics_.queued;
  // After what else this turn of the loop brings.
  if (!std::exchange(gathering_, true)) {
    http_->post([this] { run_gathered(); });
  } else {
    look_soon();
  }
  return true;
}

void Desk::finish_all(std::vector<Gathered>& batch, Answers& answers) {
  for (auto& [i, answer] : answers) {
    answer.is_short = true;
    finish(batch[i].visit, std::move(answer));
  }
}

void Desk::run_gathered() {
  constexpr std::size_t kMost = api::BatchedLeases::kMostTogether;
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
  unseen_ = std::min(unseen_, gathered_.size());
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

// A batch that is over so soon is not worth a look.
void Desk::look_soon() {
  constexpr Millis kQuickBatch{1};
  if (!std::exchange(looking_, true)) http_->later(kQuickBatch, [this] { look_at_gathered(); });
}

void Desk::look_at_gathered() {
  if (unseen_ == 0) {
    looking_ = false;
    return;
  }
  auto batch = std::make_shared<std::vector<Gathered>>();
  const auto from = gathered_.end() - static_cast<std::ptrdiff_t>(std::exchange(unseen_, 0));
  batch->assign(std::make_move_iterator(from), std::make_move_iterator(gathered_.end()));
  gathered_.erase(from, gathered_.end());
  in_look_ = batch->size();
  const bool queued = http_->work_beside([this, batch] {
    std::vector<api::Ask> asks;
    asks.reserve(batch->size());
    for (Gathered& one : *batch) asks.push_back(std::move(one.ask));
    auto refused = std::make_shared<Answers>();
    serve_.backend.batch->look(asks, 0, [&](std::size_t i, const api::AskAnswer& told) {
      refused->emplace_back(i, ask_answer(*(*batch)[i].request, asks[i], told));
    });
    for (std::size_t i = 0; i < asks.size(); ++i) (*batch)[i].ask = std::move(asks[i]);
    http_->post([this, batch, refused] { looked_at(*batch, *refused); });
  });
  Answers nobody;
  if (!queued) looked_at(*batch, nobody);
}

void Desk::looked_at(std::vector<Gathered>& batch, Answers& refused) {
  finish_all(batch, refused);
  for (const auto& [i, answer] : refused) batch[i].visit = nullptr;
  metrics_.queued -= static_cast<std::int64_t>(refused.size());
  std::erase_if(batch, [](const Gathered& one) { return one.visit == nullptr; });
  // Before those who have come since.
  gathered_.insert(gathered_.end() - static_cast<std::ptrdiff_t>(unseen_),
                   std::make_move_iterator(batch.begin()), std::make_move_iterator(batch.end()));
  in_look_ = 0;
  looking_ = false;
  if (!std::exchange(gathering_, true)) {
    run_gathered();
  } else if (unseen_ > 0) {
    look_soon();
  }
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

// What a lane has read for one turn.
class Desk::LaneSitting final : public net::http::Sitting {
 public:
  explicit LaneSitting(Desk& desk) : desk_(desk) {}

  bool take(const std::shared_ptr<net::http::ShortCall>& call) override {
    auto one = desk_.read_short(call);
    if (!one) return false;
    asks_.push_back(std::move(one->ask));
    batch_.push_back(std::move(*one));
    return true;
  }

  void look() override {
    bool any = false;
    leases().look(asks_, seen_, [&](std::size_t i, const api::AskAnswer& told) {
      tell(i, told);
      batch_[i].visit = nullptr;
      any = true;
    });
    if (any) forget_told();
    seen_ = batch_.size();
  }

  void serve(const Pause& pause) override {
    const MonoTime began = desk_.clock_.mono();
    // Who is refused does not wait for those before him.
    if (asks_.size() > api::BatchedLeases::kMostTogether) look();
    leases().many(
        asks_, [this](std::size_t i, const api::AskAnswer& told) { tell(i, told); }, pause);
    desk_.metrics_.store_time.observe(desk_.clock_.mono() - began);
    batch_.clear();
    asks_.clear();
    seen_ = 0;
  }

 private:
  api::BatchedLeases& leases() const { return *desk_.serve_.backend.batch; }
  void tell(std::size_t i, const api::AskAnswer& told) {
    desk_.finish(batch_[i].visit, ask_answer(*batch_[i].request, asks_[i], told));
  }
  void forget_told() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      if (batch_[i].visit == nullptr) continue;
      if (kept != i) {
        batch_[kept] = std::move(batch_[i]);
        asks_[kept] = std::move(asks_[i]);
      }
      ++kept;
    }
    batch_.erase(batch_.begin() + static_cast<std::ptrdiff_t>(kept), batch_.end());
    asks_.erase(asks_.begin() + static_cast<std::ptrdiff_t>(kept), asks_.end());
  }

  Desk& desk_;
  std::vector<Gathered> batch_;
  std::vector<api::Ask> asks_;  // beside it
  std::size_t seen_ = 0;        // so many of them were looked at
};

std::unique_ptr<net::http::Sitting> Desk::sit() { return std::make_unique<LaneSitting>(*this); }

}  // namespace stint::server
