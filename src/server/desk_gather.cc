// What came while the store was busy goes to it together.
#include "base/text.h"
#include "server/desk.h"

namespace stint::server {

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
  metrics_.queued = static_cast<std::int64_t>(gathered_.size());
  if (std::exchange(gathering_, true)) return true;
  // After what else this turn of the loop brings.
  http_->post([this] { run_gathered(); });
  return true;
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
  const bool queued = http_->work_in_turn([this, batch, asks] {
    const MonoTime began = clock_.mono();
    asks->reserve(batch->size());
    for (Gathered& one : *batch) asks->push_back(std::move(one.ask));
    auto answers = std::make_shared<std::vector<std::pair<std::size_t, Answer>>>();
    answers->reserve(batch->size());
    serve_.backend.batch->many(*asks, [&](std::size_t i, const api::AskAnswer& told) {
      Answer answer = ask_answer(*(*batch)[i].request, (*asks)[i], told);
      constexpr int kDone = 200;
      if (answer.status == kDone) {
        answers->emplace_back(i, std::move(answer));
        return;
      }
      // What is refused does not wait for what the others have written.
      http_->post([this, batch, i, no = std::move(answer)]() mutable {
        finish((*batch)[i].visit, std::move(no));
      });
    });
    metrics_.store_time.observe(clock_.mono() - began);
    http_->post([this, batch, asks, answers] {
      // The next ones are on their way to the store before these are told.
      run_gathered();
      for (auto& [i, answer] : *answers) finish((*batch)[i].visit, std::move(answer));
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

}  // namespace stint::server
