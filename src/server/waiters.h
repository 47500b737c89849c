// Acquires that are held open until the lease is had: first come, first served among those of this
// server. Only who is first in line asks the store; across servers and direct clients the store's
// own order decides, and nobody is passed over for ever by it. Who wants several resources stands
// in the line of the one that is in its way, at the place of its arrival; it holds up nobody who
// wants another of them.
//
// What was waited for may come to nobody: the client may be gone. So such a grant is provisional:
// it stands for min(ttl, 5 s) until its first renewal, and is released at once when the client is
// seen to be gone - unless it asked with an idempotency key: then a repeat may have been told of it
// already, and it runs out by itself. The loop's.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include "server/line.h"
#include "server/routes.h"
#include "server/wakes.h"

namespace stint::server {

struct Visit;  // one request and how it is answered
using VisitPtr = std::shared_ptr<Visit>;

constexpr Millis kProvisional{5000};

class Waiters {
 public:
  using Finish = std::function<void(const VisitPtr&, Answer)>;
  Waiters(const Clock& clock, net::http::Server& http, Wakes& wakes, Metrics& metrics,
          Finish finish)
      : clock_(clock), http_(http), wakes_(wakes), metrics_(metrics), finish_(std::move(finish)) {}
  ~Waiters();
  Waiters(const Waiters&) = delete;
  Waiters& operator=(const Waiters&) = delete;

  // `request` must live as long as the visit.
  void join(const VisitPtr& visit, const std::shared_ptr<Request>& request, Bid bid);
  std::size_t count() const { return count_; }
  // Who waits, as far as `caller` reaches; {"waiters":[...]}.
  std::string to_json(const Caller& caller) const;
  // Nobody is held open any more: each is refused, and may ask elsewhere.
  void close();
  // Those of whom `out` has an answer are told that.
  using TurnOut = std::function<std::optional<Answer>(const Caller&)>;
  void turn_out(const TurnOut& out);

 private:
  struct Line;
  using LinePtr = std::shared_ptr<Line>;
  struct Waiter {
    VisitPtr visit;
    std::shared_ptr<Request> request;
    Bid bid;
    std::uint64_t number = 0;  // by arrival
    LinePtr line = nullptr;    // where it stands; null: it has left
    Millis ttl{0};             // that was asked for
    MonoTime until{};
    bool waited = false;  // no: its first question was granted, as if it had not asked to wait
    bool gone = false;
    bool done = false;
    std::optional<Answer> out = std::nullopt;  // what it is told whatever it would have got
    void has_waited() {
      waited = true;
      bid.first.terms.ttl = std::min(ttl, kProvisional);
    }
    bool provisional() const { return waited && ttl > kProvisional; }
    Waiter(VisitPtr who, std::shared_ptr<Request> how, Bid what)
        : visit(std::move(who)), request(std::move(how)), bid(std::move(what)) {}
  };
  using WaiterPtr = std::shared_ptr<Waiter>;
  struct Line : LineOf<Waiter> {
    std::optional<api::Refused> last;
  };
  using Answers = Result<std::vector<api::AcquireAnswer>>;

  void stand(const WaiterPtr& waiter, const LinePtr& line);
  void move(const WaiterPtr& waiter, const std::string& in_the_way);
  void ask(const LinePtr& line);
  void answered(const LinePtr& line, const WaiterPtr& waiter, const Answers& answers);
  void still_waiting(const LinePtr& line, const WaiterPtr& waiter, const api::Refused& in_the_way);
  void look_again(const LinePtr& line, const api::Refused& in_the_way);
  void granted(const WaiterPtr& waiter, std::vector<api::AcquireAnswer> answers);
  void give_back(const WaiterPtr& waiter, const std::vector<api::AcquireAnswer>& answers);
  void refuse(const WaiterPtr& waiter);
  void leave(const WaiterPtr& waiter);
  void leave_unanswered(const WaiterPtr& waiter);
  void look_in(const LinePtr& line, Millis time);
  void time_is_up(const WaiterPtr& waiter);

  const Clock& clock_;
  net::http::Server& http_;
  Wakes& wakes_;
  Metrics& metrics_;
  const Finish finish_;
  LineMap<Line> lines_;
  std::size_t count_ = 0;
  std::uint64_t arrived_ = 0;
  bool closed_ = false;
};

}  // namespace stint::server
