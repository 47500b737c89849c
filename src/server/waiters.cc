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
constexpr Millis kListPoll{250};  // several resources: any of them may be what is in the way

}  // namespace

Waiters::~Waiters() { stop_waking(lines_); }

void Waiters::join(const VisitPtr& visit, const std::shared_ptr<Request>& request, Bid bid) {
  const auto waiter = std::make_shared<Waiter>(visit, request, std::move(bid));
  waiter->ttl = waiter->bid.first.terms.ttl;
  waiter->until = clock_.mono() + waiter->bid.wait;
  std::string name;
  for (const ResourceName& one : waiter->bid.resources) name += cat(one.text(), "\n");
  const LinePtr line = line_named(lines_, name);
  line->waiting.push_back(waiter);
  if (line->waiting.size() > 1) waiter->has_waited();
  ++count_;
  metrics_.waiters = static_cast<std::int64_t>(count_);
  visit->call->on_gone([this, line, waiter] {
    waiter->gone = true;
    ++metrics_.vanished;
    // Who is being asked for keeps its place until the answer is there: it must be given back.
    if (!asked_for(*line, waiter)) leave_unanswered(line, waiter);
  });
  http_.later(waiter->bid.wait, [this, line, waiter] { time_is_up(line, waiter); });
  if (line->waiting.size() > 1) return;
  if (waiter->bid.resources.size() == 1) {
    // Its first call comes when the watch stands: what changes from then on is not missed.
    line->wakes =
        wakes_.subscribe(waiter->bid.resources.front().text(), [this, weak = std::weak_ptr(line)] {
          if (const auto here = weak.lock()) ask(here);
        });
  } else {
    ask(line);
  }
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
  look_in(line, kListPoll);
}

void Waiters::answered(const LinePtr& line, const WaiterPtr& waiter, const Answers& answers) {
  line->asking = false;
  const bool refused = answers && std::holds_alternative<api::Refused>(answers->front());
  if (!refused) {
    leave(line, waiter);
    if (!answers) {
      if (!waiter->gone) finish_(waiter->visit, fault_answer(answers.error()));
      waiter->visit->places.reset();
      ask(line);
      return;
    }
    if (waiter->gone || waiter->done) {
      // With a key it stands until it runs out.
      if (waiter->bid.first.once) {
        for (const auto& one : *answers) metrics_.acquired(one);
      }
      give_back(waiter, *answers);
    } else {
      // Who is still in line when its time is over is told of the one who has it now.
      const auto& won = std::get<api::Granted>(answers->front());
      line->last = api::Refused{.lease = won.lease, .retry_in = won.lease.remaining};
      granted(waiter, *answers);
    }
    // The next in line is woken by the next change; a holder that is never heard of again runs out.
    if (!line->waiting.empty()) look_in(line, kProvisional + kLastSecond);
    return;
  }
  const auto& in_the_way = std::get<api::Refused>(answers->front());
  line->last = in_the_way;
  waiter->has_waited();
  if (waiter->gone) {
    leave_unanswered(line, waiter);
  } else if (clock_.mono() >= waiter->until || closed_) {
    refuse(line, waiter);
  }
  if (line->waiting.empty()) return;
  if (line->again || line->waiting.front() != waiter) return ask(line);
  Millis next = waiter->bid.resources.size() > 1 ? kListPoll : kLongestSleep;
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
      (void)waiter->request->leases().release(
          {*resource, granted.lease.token, waiter->bid.first.claim, waiter->bid.first.owner,
           granted.hint},
          false);
    }
    waiter->visit->places.reset();
  });
  if (!queued) waiter->visit->places.reset();
}

void Waiters::refuse(const LinePtr& line, const WaiterPtr& waiter) {
  waiter->done = true;
  leave(line, waiter);
  if (closed_) {
    finish_(waiter->visit,
            error_answer(503, unavailable("the server is stopping: ask again"), Millis(1000)));
    return;
  }
  if (!line->last) {
    finish_(waiter->visit,
            error_answer(503, unavailable("the store did not answer in time"), Millis(1000)));
    return;
  }
  metrics_.acquired(api::AcquireAnswer(*line->last));
  finish_(waiter->visit,
          acquire_answer(api::AcquireAnswer(*line->last), std::nullopt, clock_.wall()));
}

void Waiters::leave(const LinePtr& line, const WaiterPtr& waiter) {
  if (!leave_line(lines_, line, waiter)) return;
  --count_;
  metrics_.waiters = static_cast<std::int64_t>(count_);
}

// Nobody will: its visit may live on for a while, the places that it took must not.
void Waiters::leave_unanswered(const LinePtr& line, const WaiterPtr& waiter) {
  leave(line, waiter);
  waiter->visit->places.reset();
}

void Waiters::look_in(const LinePtr& line, Millis time) {
  alarm_in(http_, line, time, [this](const LinePtr& here) { ask(here); });
}

void Waiters::time_is_up(const LinePtr& line, const WaiterPtr& waiter) {
  if (waiter->done || waiter->gone || asked_for(*line, waiter)) return;
  const bool here =
      std::find(line->waiting.begin(), line->waiting.end(), waiter) != line->waiting.end();
  if (here) refuse(line, waiter);
}

void Waiters::close() {
  closed_ = true;
  for_all_waiting(lines_,
                  [this](const LinePtr& line, const WaiterPtr& one) { time_is_up(line, one); });
}

}  // namespace stint::server
