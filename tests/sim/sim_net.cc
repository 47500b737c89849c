#include "tests/sim/sim_net.h"

#include <algorithm>
#include <deque>

#include "base/check.h"
#include "base/text.h"
#include "net/http_client.h"
#include "os/clock.h"
#include "tests/sim/sim_os.h"

namespace stint::test {

using net::http::Answer;
using net::http::Call;
using net::http::Forward;
using net::http::Forwarded;

namespace {

SimNet* present_net = nullptr;
constexpr std::uint64_t kUsualTravelNanos = 2'000'000;
constexpr std::uint64_t kSlowTravelNanos = 5'000'000'000;
constexpr std::uint64_t kUsualWorkNanos = 50'000'000;
constexpr std::uint64_t kLongestStopNanos = 90'000'000'000;

}  // namespace

void SimExchange::end(int with, std::string text) {
  if (over) return;
  over = true;
  status = with;
  answer = std::move(text);
  news.signal();
  over_event.signal();
}

void SimExchange::close() {
  if (over) return;
  over = closed = true;
  news.signal();
  over_event.signal();
}

SimNet::SimNet(Scheduler& scheduler, SimTally& tally, SimHost& nowhere)
    : scheduler_(scheduler), tally_(tally), nowhere_(nowhere) {
  CHECK(present_net == nullptr, "one network at a time");
  present_net = this;
}
SimNet::~SimNet() { present_net = nullptr; }

SimNet& SimNet::present() {
  CHECK(present_net != nullptr, "outside of a simulation with a network");
  return *present_net;
}

bool SimNet::chance(unsigned per_thousand, const char* fault) {
  if (per_thousand == 0 || scheduler_.random().below(1000) >= per_thousand) return false;
  tally_.fault(fault);
  scheduler_.note(cat("http ", fault));
  return true;
}

bool SimNet::loses(const char* what) { return chance(troubles_.lose, what); }

void SimNet::may_stop() {
  if (!chance(troubles_.stop, "http_proxy_stopped")) return;
  scheduler_.freeze(*scheduler_.process(), Nanos(1 + scheduler_.random().below(kLongestStopNanos)));
  scheduler_.give_way();
}

void SimNet::travel() {
  const bool slow = chance(troubles_.slow, "http_slow");
  const std::uint64_t longest = slow ? kSlowTravelNanos : kUsualTravelNanos;
  scheduler_.interleave(Nanos(1 + scheduler_.random().below(longest)));
}

const std::string* SimNet::text_at(const std::string& path) const {
  const auto found = texts_.find(path);
  return found == texts_.end() ? nullptr : &found->second;
}

SimServer* SimNet::front() {
  return servers_.empty() ? nullptr : servers_[turn_ % servers_.size()];
}

// ---- the application

void SimNet::carry_out(SimPassage& passage) {
  const std::string& path = passage.head.target;
  if (passage.head.method == "GET") {
    const std::string* text = text_at(path);
    passage.status = text == nullptr ? 404 : 200;
    if (text != nullptr) passage.answer = *text;
    return;
  }
  texts_[path] = passage.body;
  passage.status = 200;
  if (look_) look_(passage.head, passage.body);
}

// It works on a request whether or not somebody still waits for the answer, and never longer than
// kLongestWork from the moment at which it was sent.
std::shared_ptr<SimPassage> SimNet::pass(const net::http::RequestHead& head,
                                         const std::string& body) {
  auto passage = std::make_shared<SimPassage>();
  passage->head = head;
  passage->body = body;
  const bool slowly = chance(troubles_.work, "http_long_work");
  const auto most = static_cast<std::uint64_t>(Nanos(kLongestWork).count());
  const Nanos length(1 + scheduler_.random().below(slowly ? most : kUsualWorkNanos));
  scheduler_.start_once(
      nowhere_, "application",
      [this, passage, length] {
        SimOs& os = SimOs::present();
        const MonoTime done = nowhere_.clock->mono() + length;
        while (!passage->let_go && nowhere_.clock->mono() < done && scheduler_.alive()) {
          os.wait({passage->to_application.fd()}, done);
        }
        // Who is left alone may stop, and may not.
        if (passage->let_go && scheduler_.random().below(2) == 0) return;
        while (nowhere_.clock->mono() < done && scheduler_.alive()) os.wait({}, done);
        if (!scheduler_.alive()) return;
        carry_out(*passage);
        passage->answered = true;
        passage->to_proxy.signal();
      },
      [] {});
  return passage;
}

// ---- the server

class SimCall;

class SimServer final : public net::http::Server {
 public:
  SimServer(const net::http::ServerOptions& options, net::http::Handler& handler,
            const Clock& clock)
      : options_(options), handler_(handler), clock_(clock) {
    SimNet::present().listen(*this);
    threads_.push_back(scheduler().start_thread([this] { loop(); }));
  }
  ~SimServer() override {
    SimNet::present().leave(*this);
    stopped_ = true;
    for (const auto& one : open_) one->close();
    wake_.signal();
    close_all_.signal();
    // Threads that are joined may start others.
    for (std::size_t i = 0; i < threads_.size(); ++i) scheduler().join(threads_[i]);
  }

  std::uint16_t port() const override { return options_.listen.port; }
  void post(std::function<void()> task) override {
    tasks_.push_back(std::move(task));
    wake_.signal();
  }
  void later(Millis delay, std::function<void()> task) override {
    timers_.emplace(clock_.mono() + delay, std::move(task));
    wake_.signal();
  }
  std::unique_ptr<net::http::Watching> watch(int /*fd*/, std::function<void()> /*task*/) override {
    return nullptr;
  }
  std::size_t connections() const override { return open_.size(); }
  Status reload() override { return {}; }
  bool work(std::function<void()> task) override {
    if (waiting_.size() >= options_.most_work) return false;
    waiting_.push_back(std::move(task));
    if (working_ < options_.workers) {
      ++working_;
      start([this] { labour(); });
    }
    return true;
  }
  bool work_in_turn(std::function<void()> task) override { return work(std::move(task)); }
  bool work_beside(std::function<void()> task) override { return work(std::move(task)); }
  bool stop(Millis patience) override;

  void accept(const std::shared_ptr<SimExchange>& exchange);
  void pass(const std::shared_ptr<SimCall>& call, const Forward& order);

 private:
  static Scheduler& scheduler() { return Scheduler::present(); }
  bool runs() const { return !stopped_ && scheduler().alive(); }
  void start(std::function<void()> body) {
    if (stopped_) return;
    threads_.push_back(scheduler().start_thread(std::move(body)));
  }
  void loop() {
    while (runs()) {
      wake_.drain();
      while (runs() && !tasks_.empty()) {
        const auto task = std::move(tasks_.front());
        tasks_.pop_front();
        task();
      }
      while (runs() && !timers_.empty() && timers_.begin()->first <= clock_.mono()) {
        const auto task = std::move(timers_.begin()->second);
        timers_.erase(timers_.begin());
        task();
      }
      if (!tasks_.empty() && runs()) continue;
      SimOs::present().wait({wake_.fd()},
                            timers_.empty() ? std::nullopt : std::optional(timers_.begin()->first));
    }
  }
  void labour() {
    while (runs() && !waiting_.empty()) {
      const auto task = std::move(waiting_.front());
      waiting_.pop_front();
      task();
    }
    --working_;
  }
  void forward(const std::shared_ptr<SimCall>& call, const Forward& order);

  const net::http::ServerOptions options_;
  net::http::Handler& handler_;
  const Clock& clock_;
  std::deque<std::function<void()>> tasks_;
  std::multimap<MonoTime, std::function<void()>> timers_;
  std::deque<std::function<void()>> waiting_;
  std::size_t working_ = 0;
  std::vector<std::shared_ptr<SimExchange>> open_;
  std::vector<std::uint64_t> threads_;
  os::EventFd wake_;
  os::EventFd close_all_;
  bool stopped_ = false;
};

class SimCall final : public Call, public std::enable_shared_from_this<SimCall> {
 public:
  SimCall(SimServer& server, std::shared_ptr<SimExchange> exchange)
      : server_(server), exchange_(std::move(exchange)) {}
  const net::http::RequestHead& head() const override { return exchange_->head; }
  void answer(Answer answer) override {
    if (Scheduler::present().alive()) exchange_->end(answer.status, std::move(answer.body));
  }
  void forward(Forward forward) override { server_.pass(shared_from_this(), forward); }
  void gather(std::function<void()> then) override { then(); }
  void collect(std::size_t /*most*/, std::function<void(std::string)> then) override {
    then(exchange_->body);
  }
  std::shared_ptr<net::http::Feed> stream(Answer /*head*/) override { return nullptr; }
  void on_gone(std::function<void()> /*then*/) override {}
  std::string peer() const override { return "client"; }
  void cut() override {
    is_cut_ = true;
    exchange_->close();
    cut_.signal();
  }

  bool is_cut() const { return is_cut_; }
  int cut_event() const { return cut_.fd(); }
  SimExchange& exchange() { return *exchange_; }

 private:
  SimServer& server_;
  std::shared_ptr<SimExchange> exchange_;
  os::EventFd cut_;
  bool is_cut_ = false;
};

void SimServer::accept(const std::shared_ptr<SimExchange>& exchange) {
  std::erase_if(open_, [](const auto& one) { return one->over; });
  open_.push_back(exchange);
  post([this, exchange] { handler_.request(std::make_shared<SimCall>(*this, exchange)); });
}

bool SimServer::stop(Millis patience) {
  SimNet::present().leave(*this);
  const auto all_over = [this] {
    return std::ranges::all_of(open_, [](const auto& one) { return one->over; });
  };
  const MonoTime until = clock_.mono() + patience;
  while (runs() && !all_over() && clock_.mono() < until) {
    const auto waits = std::ranges::find_if(open_, [](const auto& one) { return !one->over; });
    SimOs::present().wait({(*waits)->over_event.fd()}, until);
  }
  if (!runs()) return false;
  const bool clean = all_over();
  for (const auto& one : open_) one->close();
  stopped_ = true;
  wake_.signal();
  close_all_.signal();
  return clean;
}

void SimServer::pass(const std::shared_ptr<SimCall>& call, const Forward& order) {
  start([this, call, order] { forward(call, order); });
}

void SimServer::forward(const std::shared_ptr<SimCall>& call, const Forward& order) {
  SimNet& net = SimNet::present();
  const auto ended = [&](Forwarded how) {
    if (order.ended) post([told = order.ended, how] { told(how); });
  };
  net.travel();
  net.may_stop();
  if (!runs()) return;
  const bool reached = !net.loses("http_connect");
  if (!reached || call->is_cut() || (order.may_send && !order.may_send())) {
    ended(Forwarded::NotSent);
    return call->exchange().end(reached ? 503 : 502, "nothing was sent");
  }
  // From here on it is on its way, whatever becomes of this proxy.
  const auto passage = net.pass(call->head(), call->exchange().body);
  const bool breaks = net.loses("http_upstream_lost");
  const MonoTime until = clock_.mono() + (breaks ? Millis(1) : options_.limits.answer_time);
  while (runs() && !passage->answered && !call->is_cut() && clock_.mono() < until) {
    SimOs::present().wait({passage->to_proxy.fd(), call->cut_event(), close_all_.fd()}, until);
  }
  const bool answered = passage->answered && !breaks && !call->is_cut();
  passage->let_go = true;
  passage->to_application.signal();
  if (!runs()) return;
  ended(answered ? Forwarded::Answered : Forwarded::Unanswered);
  if (answered) {
    call->exchange().end(passage->status, passage->answer);
  } else {
    call->exchange().end(504, "it may or may not have been carried out");
  }
}

// ---- the client

namespace {

net::HttpOutcome failure(net::HttpFailure::Kind kind, const char* why) {
  return {.answer = {},
          .failure = net::HttpFailure{.kind = kind, .tls = false, .time = false, .text = why}};
}

class SimHttpClient final : public net::HttpClient {
 public:
  net::HttpOutcome send(const net::HttpRequest& request) override {
    using Kind = net::HttpFailure::Kind;
    Scheduler& scheduler = Scheduler::present();
    SimNet& net = SimNet::present();
    const MonoTime until = os::system_clock().mono() + request.timeout;
    net.travel();
    SimServer* server = net.front();
    if (!scheduler.alive() || server == nullptr || net.loses("http_refused")) {
      net.turn_away();
      return failure(Kind::NotSent, "not reached");
    }
    const auto exchange = std::make_shared<SimExchange>();
    exchange->head = head_of(request);
    exchange->body = request.body;
    server->accept(exchange);
    const bool lost = net.loses("http_answer_lost");
    while (scheduler.alive() && !exchange->over && os::system_clock().mono() < until) {
      SimOs::present().wait({exchange->news.fd()}, until);
    }
    if (!scheduler.alive() || lost || !exchange->over || exchange->closed) {
      net.turn_away();
      return failure(Kind::MaybeSent, "no answer");
    }
    net.travel();
    if (exchange->status == 503) net.turn_away();
    return {.answer = {.status = exchange->status, .body = exchange->answer}, .failure = {}};
  }
  std::unique_ptr<net::HttpStream> stream() override { return nullptr; }

 private:
  static net::http::RequestHead head_of(const net::HttpRequest& request) {
    net::http::RequestHead head;
    head.method = request.body.empty() ? "GET" : "POST";
    const std::size_t host = request.url.find("://") + 3;
    const std::size_t path = request.url.find('/', host);
    head.target = path == std::string::npos ? "/" : request.url.substr(path);
    for (const std::string& line : request.headers) {
      const std::size_t colon = line.find(':');
      head.fields.add(line.substr(0, colon), std::string(trim(line.substr(colon + 1))));
    }
    return head;
  }
};

}  // namespace

}  // namespace stint::test

// ---- instead of net/http/server.cc and net/curl_client.cc

namespace stint::net {

Result<std::unique_ptr<http::Server>> http::Server::start(const ServerOptions& options,
                                                          Handler& handler, const Clock& clock) {
  if (!test::Scheduler::present().alive()) return unavailable("it was killed");
  return std::unique_ptr<http::Server>(std::make_unique<test::SimServer>(options, handler, clock));
}

std::unique_ptr<HttpClient> make_http_client(HttpClientOptions /*options*/,
                                             const Clock& /*clock*/) {
  return std::make_unique<test::SimHttpClient>();
}

}  // namespace stint::net
