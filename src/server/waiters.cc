#include "server/waiters.h"

#include <algorithm>

#include "api/json.h"
#include "api/words.h"
#include "base/text.h"
#include "server/visit.h"

namespace stint::server {
namespace {

constexpr Millis kLongestSleep{30'000};
constexpr Millis kLastSecond{50};
constexpr Millis kBusyLook{250};  // no thread was free to ask

}  // namespace

Waiters::~Waiters() {
  stop_waking(lines_);
  for_all_waiting(lines_, [](const LinePtr& /*line*/, const WaiterPtr& one) { one->line.reset(); });
}

void Waiters::join(const VisitPtr& visit, const std::shared_ptr<Request>& request, Bid bid) {
  const auto waiter = std::make_shared<Waiter>(visit, request, std::move(bid));
  waiter->ttl = waiter->bid.first.terms.ttl;
  waiter->until = clock_.mono() + waiter->bid.wait;
  waiter->number = ++arrived_;
  ++count_;
  metrics_.waiters = static_cast<std::int64_t>(count_);
  visit->call->on_gone([this, waiter] {
    waiter->gone = true;
    ++metrics_.vanished;
    // Who is being asked for keeps its place until the answer is there: it must be given back.
    if (waiter->line && !asked_for(*waiter->line, waiter)) leave_unanswered(waiter);
  });
  http_.later(waiter->bid.wait, [this, waiter] { time_is_up(waiter); });
  const LinePtr line = line_named(lines_, waiter->bid.resources.front().text());
  if (!line->waiting.empty()) waiter->has_waited();
  stand(waiter, line);
}

// By arrival, but never before the one that is being asked for.
void Waiters::stand(const WaiterPtr& waiter, const LinePtr& line) {
  auto place = line->waiting.end();
  const auto first = std::next(line->waiting.begin(), line->asking ? 1 : 0);
  while (place != first && (*std::prev(place))->number > waiter->number) --place;
  line->waiting.insert(place, waiter);
  waiter->line = line;
  if (line->waiting.size() > 1) return;
  // Its first call comes when the watch stands: what changes from then on is not missed.
  line->wakes = wakes_.subscribe(line->name, [this, weak = std::weak_ptr(line)] {
    if (const auto here = weak.lock()) ask(here);
  });
}

void Waiters::move(const WaiterPtr& waiter, const std::string& in_the_way) {
  const LinePtr left = std::exchange(waiter->line, nullptr);
  leave_line(lines_, left, waiter);
  const LinePtr line = line_named(lines_, in_the_way);
  stand(waiter, line);
}

std::string Waiters::to_json(const Caller& caller) const {
  constexpr std::size_t kMostShown = 1000;
  std::vector<std::vector<api::JsonField>> rows;
  for (const auto& [name, line] : lines_) {
    for (const WaiterPtr& waiter : line->waiting) {
      const auto waited =
          std::chrono::duration_cast<Millis>(clock_.mono() - waiter->visit->began).count();
      for (const ResourceName& one : waiter->bid.resources) {
        if (!caller.reaches(one.text()) || rows.size() >= kMostShown) continue;
        rows.push_back({{"resource", one.text()},
                        {"owner", waiter->bid.first.owner.text()},
                        {"waiting_ms", std::int64_t{waited}}});
      }
    }
  }
  return cat("{\"waiters\":", api::to_json(rows), "}");
}

void Waiters::ask(const LinePtr& line) {
  if (!begin_asking(*line)) return;
  const WaiterPtr waiter = line->waiting.front();
  const bool queued = http_.work([this, line, waiter] {
    auto answers = take_bid(*waiter->request, waiter->bid);
    // Of one who waits one refusal is told.
    waiter->bid.first.count_refusal = false;
    http_.post(
        [this, line, waiter, answers = std::move(answers)] { answered(line, waiter, answers); });
  });
  if (queued) return;
  line->asking = false;
  look_in(line, kBusyLook);
}

void Waiters::answered(const LinePtr& line, const WaiterPtr& waiter, const Answers& answers) {
  line->asking = false;
  const bool refused = answers && std::holds_alternative<api::Refused>(answers->front());
  if (!refused) {
    leave(waiter);
    if (!answers) {
      if (!waiter->gone) finish_(waiter->visit, fault_answer(answers.error()));
      waiter->visit->places.reset();
      ask(line);
      return;
    }
    if (waiter->gone || waiter->done || waiter->out) {
      for (const auto& one : *answers) metrics_.acquired(one);
      if (waiter->out && !waiter->gone) finish_(waiter->visit, std::move(*waiter->out));
      give_back(waiter, *answers);
    } else {
      // Who is still in line when its time is over is told of the one who has it now.
      for (const auto& one : *answers) {
        const api::Lease& won = std::get<api::Granted>(one).lease;
        if (won.resource == line->name)
          line->last = api::Refused{.lease = won, .retry_in = won.remaining};
      }
      granted(waiter, *answers);
    }
    // The next in line is woken by the next change; a holder that is never heard of again runs out.
    if (!line->waiting.empty()) look_in(line, kProvisional + kLastSecond);
    return;
  }
  still_waiting(line, waiter, std::get<api::Refused>(answers->front()));
}

void Waiters::still_waiting(const LinePtr& line, const WaiterPtr& waiter,
                            const api::Refused& in_the_way) {
  waiter->has_waited();
  const bool elsewhere = in_the_way.lease.resource != line->name;
  if (elsewhere) move(waiter, in_the_way.lease.resource);
  waiter->line->last = in_the_way;
  if (waiter->gone) {
    leave_unanswered(waiter);
  } else if (clock_.mono() >= waiter->until || closed_ || waiter->out) {
    refuse(waiter);
  } else if (elsewhere && waiter->line->waiting.size() == 1) {
    // Where others wait, the next look is set, by an answer that may be newer than this one.
    look_again(waiter->line, in_the_way);
  }
  if (line->waiting.empty()) return;
  if (line->again || line->waiting.front() != waiter) return ask(line);
  look_again(line, in_the_way);
}

void Waiters::look_again(const LinePtr& line, const api::Refused& in_the_way) {
  Millis next = kLongestSleep;
  // Expiry wakes nobody.
  if (in_the_way.retry_in) {
    next = std::min(
        next, in_the_way.retry_in->count() > 0 ? *in_the_way.retry_in + Millis(1) : kLastSecond);
  }
  look_in(line, next);
}

void Waiters::granted(const WaiterPtr& waiter, std::vector<api::AcquireAnswer> answers) {
  waiter->done = true;
  for (auto& one : answers) std::get<api::Granted>(one).provisional = waiter->provisional();
  Answer answer = bid_answer(*waiter->request, waiter->bid, answers);
  answer.sent = [this, waiter, answers](bool sent) {
    if (!sent) give_back(waiter, answers);
  };
  finish_(waiter->visit, std::move(answer));
}

void Waiters::give_back(const WaiterPtr& waiter, const std::vector<api::AcquireAnswer>& answers) {
  // Who asked with a key may have it from a repeat already; else it runs out by itself, and soon.
  if (waiter->bid.first.once) return waiter->visit->places.reset();
  // If there is no thread for it, it runs out by itself.
  const bool queued = http_.work([waiter, answers] {
    for (const auto& one : answers) {
      const auto& granted = std::get<api::Granted>(one);
      auto resource = ResourceName::parse(granted.lease.resource);
      if (!resource) continue;
      const auto released = waiter->request->leases().release(
          {*resource, granted.lease.token, waiter->bid.first.claim, waiter->bid.first.owner,
           granted.hint},
          false);
      if (released) waiter->request->metrics.released(*released);
    }
    waiter->visit->places.reset();
  });
  if (!queued) waiter->visit->places.reset();
}

void Waiters::refuse(const WaiterPtr& waiter) {
  waiter->done = true;
  const std::optional<api::Refused> last = waiter->line->last;
  leave(waiter);
  if (waiter->out) return finish_(waiter->visit, std::move(*waiter->out));
  if (closed_) {
    finish_(waiter->visit,
            error_answer(503, unavailable("the server is stopping: ask again"), Millis(1000)));
    return;
  }
  if (!last) {
    finish_(waiter->visit,
            error_answer(503, unavailable("the store did not answer in time"), Millis(1000)));
    return;
  }
  metrics_.acquired(api::AcquireAnswer(*last));
  finish_(waiter->visit, acquire_answer(api::AcquireAnswer(*last), std::nullopt, clock_.wall()));
}

void Waiters::leave(const WaiterPtr& waiter) {
  const LinePtr line = std::exchange(waiter->line, nullptr);
  if (!line || !leave_line(lines_, line, waiter)) return;
  --count_;
  metrics_.waiters = static_cast<std::int64_t>(count_);
}

// Nobody will: its visit may live on for a while, the places that it took must not.
void Waiters::leave_unanswered(const WaiterPtr& waiter) {
  leave(waiter);
  waiter->visit->places.reset();
}

void Waiters::look_in(const LinePtr& line, Millis time) {
  alarm_in(http_, line, time, [this](const LinePtr& here) { ask(here); });
}

void Waiters::time_is_up(const WaiterPtr& waiter) {
  if (waiter->done || waiter->gone || !waiter->line || asked_for(*waiter->line, waiter)) return;
  refuse(waiter);
}

void Waiters::turn_out(const TurnOut& out) {
  for_all_waiting(lines_, [&](const LinePtr& /*line*/, const WaiterPtr& one) {
    if (one->done || one->gone || one->out) return;
    one->out = out(one->visit->caller);
    // What is being asked for is given back when the answer is there.
    if (one->out) time_is_up(one);
  });
}

void Waiters::close() {
  closed_ = true;
  for_all_waiting(lines_,
                  [this](const LinePtr& /*line*/, const WaiterPtr& one) { time_is_up(one); });
}

}  // namespace stint::server
