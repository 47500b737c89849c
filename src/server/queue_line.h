// Claims that are held open until there is something to claim: in the order in which they came, one
// line a queue. Only the first in line asks the store; whoever puts something wakes it. What was
// claimed for a client that is gone is given back, unless it asked with a key: it may have it from
// a repeat already. The loop's.
#pragma once

#include <memory>

#include "server/waiters.h"

namespace stint::server {

class QueueLine {
 public:
  QueueLine(const Clock& clock, net::http::Server& http, Wakes& wakes, Metrics& metrics,
            Waiters::Finish finish)
      : clock_(clock), http_(http), wakes_(wakes), metrics_(metrics), finish_(std::move(finish)) {}
  ~QueueLine();
  QueueLine(const QueueLine&) = delete;
  QueueLine& operator=(const QueueLine&) = delete;

  void join(const VisitPtr& visit, const std::shared_ptr<Request>& request, ItemBid bid);
  std::size_t count() const { return count_; }
  // Nobody is held open any more: each is told that there is nothing.
  void close();
  // Those of whom `out` has an answer are told that.
  void turn_out(const Waiters::TurnOut& out);

 private:
  struct Waiter {
    VisitPtr visit;
    std::shared_ptr<Request> request;
    ItemBid bid;
    MonoTime until{};
    bool gone = false;
    bool over = false;
    std::optional<Answer> out = std::nullopt;  // what it is told whatever it would have got
    Waiter(VisitPtr who, std::shared_ptr<Request> how, ItemBid what)
        : visit(std::move(who)), request(std::move(how)), bid(std::move(what)) {}
  };
  using WaiterPtr = std::shared_ptr<Waiter>;
  using Line = LineOf<Waiter>;
  using LinePtr = std::shared_ptr<Line>;
  using Claimed = Result<api::ClaimAnswer>;

  void ask(const LinePtr& line);
  void answered(const LinePtr& line, const WaiterPtr& waiter, const Claimed& answer);
  void hand_over(const WaiterPtr& waiter, const Claimed& answer);
  void give_back(const WaiterPtr& waiter, const api::ClaimedItem& claimed);
  void time_is_up(const LinePtr& line, const WaiterPtr& waiter);
  void leave(const LinePtr& line, const WaiterPtr& waiter);
  void look_in(const LinePtr& line, Millis time);

  const Clock& clock_;
  net::http::Server& http_;
  Wakes& wakes_;
  Metrics& metrics_;
  const Waiters::Finish finish_;
  LineMap<Line> lines_;
  std::size_t count_ = 0;
  bool closed_ = false;
};

}  // namespace stint::server
