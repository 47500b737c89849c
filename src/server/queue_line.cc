#include "server/queue_line.h"

#include "server/visit.h"

namespace stint::server {
namespace {

constexpr Millis kLongestLook{30'000};  // a wake-up may be lost with its writer
constexpr Millis kBusyLook{250};

}  // namespace

QueueLine::~QueueLine() { stop_waking(lines_); }

void QueueLine::join(const VisitPtr& visit, const std::shared_ptr<Request>& request, ItemBid bid) {
  const auto waiter = std::make_shared<Waiter>(visit, request, std::move(bid));
  waiter->until = clock_.mono() + waiter->bid.wait;
  const core::QueueName queue = waiter->bid.claim.queue;
  const LinePtr line = line_named(lines_, queue.text());
  line->waiting.push_back(waiter);
  ++count_;
  metrics_.claims_waiting = static_cast<std::int64_t>(count_);
  visit->call->on_gone([this, line, waiter] {
    waiter->gone = true;
    ++metrics_.vanished;
    // Who is being asked for keeps its place until the answer is there: it must be given back.
    if (!asked_for(*line, waiter)) leave(line, waiter);
  });
  http_.later(waiter->bid.wait, [this, line, waiter] { time_is_up(line, waiter); });
  if (line->waiting.size() > 1) return;
  // Its first call comes when the watch stands: what is put from then on is not missed.
  line->wakes = wakes_.subscribe(Wakes::of_queue(queue), [this, weak = std::weak_ptr(line)] {
    if (const auto here = weak.lock()) ask(here);
  });
}

void QueueLine::ask(const LinePtr& line) {
  if (!begin_asking(*line)) return;
  const WaiterPtr waiter = line->waiting.front();
  const bool queued = http_.work([this, line, waiter] {
    auto answer = waiter->request->queue().claim(waiter->bid.claim);
    http_.post(
        [this, line, waiter, answer = std::move(answer)] { answered(line, waiter, answer); });
  });
  if (queued) return;
  line->asking = false;
  look_in(line, kBusyLook);
}

void QueueLine::answered(const LinePtr& line, const WaiterPtr& waiter, const Claimed& answer) {
  line->asking = false;
  const auto* empty = answer ? std::get_if<api::EmptyQueue>(&*answer) : nullptr;
  if (empty == nullptr) {
    leave(line, waiter);
    hand_over(waiter, answer);
    return ask(line);  // there may be more
  }
  if (waiter->gone) {
    leave(line, waiter);
  } else if (clock_.mono() >= waiter->until || closed_ || waiter->out) {
    leave(line, waiter);
    hand_over(waiter, answer);
  }
  if (line->waiting.empty()) return;
  if (line->again || line->waiting.front() != waiter) return ask(line);
  look_in(line, std::min(kLongestLook, empty->next_in.value_or(kLongestLook)));
}

void QueueLine::hand_over(const WaiterPtr& waiter, const Claimed& answer) {
  const auto* claimed = answer ? std::get_if<api::ClaimedItem>(&*answer) : nullptr;
  if (waiter->gone || waiter->over) {
    if (claimed != nullptr) give_back(waiter, *claimed);
    return;
  }
  waiter->over = true;
  if (waiter->out) {
    finish_(waiter->visit, std::move(*waiter->out));
    if (claimed != nullptr) give_back(waiter, *claimed);
    return;
  }
  Answer out = item_bid_answer(*waiter->request, answer);
  if (claimed != nullptr) {
    out.sent = [this, waiter, item = *claimed](bool sent) {
      if (!sent) give_back(waiter, item);
    };
  }
  finish_(waiter->visit, std::move(out));
}

void QueueLine::give_back(const WaiterPtr& waiter, const api::ClaimedItem& claimed) {
  // Who asked with a key may have it from a repeat already; else the claim runs out by itself.
  if (waiter->bid.claim.once) return;
  // If there is no thread for it, the claim runs out by itself.
  (void)http_.work([waiter, ref = api::ItemRef{claimed.item.id, claimed.item.item.epoch}] {
    (void)waiter->request->queue().release(ref);
  });
}

void QueueLine::leave(const LinePtr& line, const WaiterPtr& waiter) {
  if (!leave_line(lines_, line, waiter)) return;
  --count_;
  metrics_.claims_waiting = static_cast<std::int64_t>(count_);
}

void QueueLine::look_in(const LinePtr& line, Millis time) {
  alarm_in(http_, line, time, [this](const LinePtr& here) { ask(here); });
}

void QueueLine::time_is_up(const LinePtr& line, const WaiterPtr& waiter) {
  if (waiter->over || waiter->gone || asked_for(*line, waiter)) return;
  leave(line, waiter);
  hand_over(waiter, api::ClaimAnswer(api::EmptyQueue{}));
}

void QueueLine::turn_out(const Waiters::TurnOut& out) {
  for_all_waiting(lines_, [&](const LinePtr& line, const WaiterPtr& one) {
    if (one->over || one->gone || one->out) return;
    one->out = out(one->visit->caller);
    // What is being asked for is given back when the answer is there.
    if (one->out) time_is_up(line, one);
  });
}

void QueueLine::close() {
  closed_ = true;
  for_all_waiting(lines_,
                  [this](const LinePtr& line, const WaiterPtr& one) { time_is_up(line, one); });
}

}  // namespace stint::server
