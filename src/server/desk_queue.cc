// What the desk does for queues: claims that wait, the janitor, and their numbers.
#include "base/text.h"
#include "server/desk.h"

namespace stint::server {

void Desk::run_claim(const VisitPtr& visit, const std::shared_ptr<Request>& request) {
  auto bid = read_item_bid(*request);
  if (!bid) return finish(visit, fault_answer(bid.error()));
  if (bid->wait.count() == 0) return run(visit, request);
  if (request->once && !serve_.backend.queue->keeps_answers()) {
    return finish(visit, fault_answer(invalid("on this store a claim with an idempotency key "
                                              "cannot wait: leave out 'wait_ms', or the key")));
  }
  if (line_->count() + waiters_->count() >= serve_.limits.waiters) {
    metrics_.denied("limit");
    return finish(visit, error_answer(429, {Code::Denied, "too many wait already"}, Millis(1000)));
  }
  line_->join(visit, request, std::move(*bid));
}

// What the queues hold is asked of the store, so not on the loop; the connections are the loop's.
void Desk::serve_metrics(const VisitPtr& visit) {
  (void)streams_->count();  // whose clients are gone is not counted
  const bool queued = http_->work([this, visit, connections = http_->connections()] {
    Metrics::Facts facts{.connections = connections,
                         .version = serve_.version,
                         .generation = serve_.backend.leases->generation().hex(),
                         .queues = {},
                         .traffic = {}};
    api::Queue* queue = serve_.backend.queue;
    if (queue != nullptr) {
      facts.traffic = queue->traffic();
      const auto all = queue->queues();
      for (const api::QueueConfig& one : all ? *all : std::vector<api::QueueConfig>()) {
        if (!visit->caller.reaches(one.name.text())) continue;
        if (auto counts = queue->count(one.name))
          facts.queues.emplace_back(one.name.text(), *counts);
      }
    }
    Answer answer = ok(metrics_.text(facts));
    answer.type = "text/plain; version=0.0.4; charset=utf-8";
    finish(visit, std::move(answer));
  });
  if (!queued) finish(visit, error_answer(503, unavailable("too much is waiting"), Millis(1000)));
}

void Desk::tend_in(Millis time) {
  http_->later(time, [this] {
    if (stopping_) return;
    const bool queued = http_->work([this] {
      const Millis next = api::tend_all(*serve_.backend.queue, serve_.limits.tend_every);
      http_->post([this, next] { tend_in(next); });
    });
    if (!queued) tend_in(serve_.limits.tend_every);
  });
}

}  // namespace stint::server
