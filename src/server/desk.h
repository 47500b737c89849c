// The server's desk: takes requests on the loop, looks at who asks, sends what may wait to the
// store threads, and answers.
#pragma once

#include <atomic>

#include "server/gatekeeper.h"
#include "server/metrics.h"
#include "server/queue_line.h"
#include "server/readiness.h"
#include "server/streams.h"
#include "server/visit.h"
#include "server/waiters.h"
#include "server/wakes.h"

namespace stint::server {

class Desk final : public Server, public net::http::Handler, public net::http::TurnHandler {
 public:
  Desk(const ServeRequest& request, const Clock& clock)
      : serve_(request),
        clock_(clock),
        metrics_(clock, request.limits.resources > 0),
        keeper_(serve_, clock) {}
  ~Desk() override;
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;
  Status open();

  std::uint16_t port() const override { return http_->port(); }
  bool stop(Millis patience) override;
  Status reload() override { return http_->reload(); }
  void request(const std::shared_ptr<net::http::Call>& call) override;
  std::unique_ptr<net::http::Sitting> sit() override;

 private:
  // The first one that says no answers.
  bool find_route(const VisitPtr& visit);
  bool look_at_caller(const VisitPtr& visit);
  void serve(const VisitPtr& visit);
  void serve_stream(const VisitPtr& visit);
  bool serve_plain(const VisitPtr& visit);
  void take_body(const VisitPtr& visit, const std::string& body);
  void run(const VisitPtr& visit, const std::shared_ptr<Request>& request);
  // What came while the store was busy with the last ones goes to it together: one disk sync for
  // all of a turn.
  bool gather(const VisitPtr& visit, const std::shared_ptr<Request>& request);
  // False: this store has no batches, or too much waits already.
  bool line_up(const VisitPtr& visit, const std::shared_ptr<Request>& request, api::Ask ask);
  struct Gathered {
    VisitPtr visit;
    std::shared_ptr<Request> request;
    api::Ask ask;
  };
  class LaneSitting;
  using Answers = std::vector<std::pair<std::size_t, Answer>>;
  void run_gathered();
  // Those who are refused as things stand do not wait for the batch that is under way.
  void look_soon();
  void look_at_gathered();
  void looked_at(std::vector<Gathered>& batch, Answers& refused);
  void finish_all(std::vector<Gathered>& batch, Answers& answers);
  // Of a lane: what can be asked of the store together with the others. Nothing: the loop's.
  std::optional<Gathered> read_short(const std::shared_ptr<net::http::ShortCall>& call);
  std::optional<api::Ask> short_ask(const VisitPtr& visit, Request& request);
  void run_claim(const VisitPtr& visit, const std::shared_ptr<Request>& request);
  void serve_metrics(const VisitPtr& visit);
  // The janitor: no server leads, each looks after all queues, at its own pace.
  void tend_in(Millis time);
  // False: its key would hold too many with these.
  bool take_places(Visit& visit, const Bid& bid);
  void run_acquire(const VisitPtr& visit, const std::shared_ptr<Request>& request);
  std::optional<std::string> read_once(const VisitPtr& visit, Request& request,
                                       const std::string& body) const;
  void ready(const VisitPtr& visit);
  void finish(const VisitPtr& visit, Answer answer);
  void note(const Visit& visit, int status) const;
  void refresh_keys();
  void look_at_keys();
  void note_use(const Caller& caller);
  std::shared_ptr<Request> request_of(const VisitPtr& visit);

  const ServeRequest serve_;
  const Clock& clock_;
  Metrics metrics_;
  ClaimBook claims_;
  InHand lists_;
  Gatekeeper keeper_;
  std::unique_ptr<Wakes::Subscription> key_wakes_;
  std::atomic<std::uint64_t> next_id_{1};
  std::string id_prefix_;
  std::atomic<bool> stopping_ = false;
  Readiness readiness_;
  // ---- the loop's alone
  std::vector<Gathered> gathered_;
  std::size_t unseen_ = 0;   // at its end: not looked at yet
  bool gathering_ = false;   // a batch is under way, or about to be
  bool looking_ = false;     // some of those that are gathered are being looked at, or soon will be
  std::size_t in_look_ = 0;  // so many, which are not among them meanwhile
  Mutex used_mutex_;
  // When the use of a key was written last.
  std::map<std::string, MonoTime> used_ GUARDED_BY(used_mutex_);
  // In this order: each stands on the one before, and the loop ends before all of them.
  std::unique_ptr<net::http::Server> http_;
  std::unique_ptr<Wakes> wakes_;
  std::unique_ptr<Waiters> waiters_;
  std::unique_ptr<QueueLine> line_;
  std::unique_ptr<Streams> streams_;
  std::unique_ptr<Watch> key_watch_;
  std::unique_ptr<net::http::Watching> key_watching_;
};

}  // namespace stint::server
