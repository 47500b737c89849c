#include "server/desk.h"

#include <algorithm>

#include "api/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "server/openapi.h"

namespace stint::server {
namespace {

constexpr Millis kKeysAtTheLatest{5000};
constexpr Millis kUseNoted{3'600'000};
// Fifty follow-ups and a result, each 64 KiB, and twice that as JSON.
constexpr std::size_t kMostCompletion = std::size_t{8} << 20U;
constexpr Millis kTendAtFirst{250};

std::size_t most_body(const ServeLimits& limits, const Route& route) {
  return route.path == "/v1/queues/complete" ? std::max(limits.body_bytes, kMostCompletion)
                                             : limits.body_bytes;
}

bool is_health(const Route& route) { return route.path == "/healthz" || route.path == "/readyz"; }

std::string allowed(std::string_view path) {
  std::string out;
  for (const Route& route : routes()) {
    if (route.path == path) out += cat(out.empty() ? "" : ", ", route.method);
  }
  return out;
}

bool wants_stream(const net::http::RequestHead& head) {
  return head.fields.lists("Accept", "text/event-stream");
}

}  // namespace

Desk::~Desk() { (void)stop(Millis(0)); }

Status Desk::open() {
  auto keys = keeper_.read();
  if (!keys) return keys.error();
  keeper_.learn(*keys);
  const bool loopback = serve_.listen.host == "127.0.0.1" || serve_.listen.host == "::1";
  if (!loopback && serve_.demo) return invalid("--demo listens on loopback alone");
  if (!loopback && !keeper_.asks()) {
    return invalid(cat("there is no key yet, so the server listens on loopback alone, not on ",
                       serve_.listen.host,
                       ". Make one first: stint key create NAME --allow "
                       "acquire,read"));
  }
  id_prefix_ = serve_.random->id_hex().substr(0, 8);
  net::http::Limits limits = serve_.limits.http;
  limits.body_bytes = std::max(serve_.limits.body_bytes, kMostCompletion);
  auto http = net::http::Server::start({.listen = serve_.listen,
                                        .upstream = {},
                                        .limits = limits,
                                        .workers = serve_.limits.store_threads,
                                        .most_work = serve_.limits.most_queued,
                                        .tls = serve_.tls,
                                        .turns = serve_.backend.batch != nullptr ? this : nullptr},
                                       *this, clock_);
  if (!http) return http.error();
  http_ = std::move(*http);
  // From here on all of it is the loop's.
  http_->post([this] {
    wakes_ = std::make_unique<Wakes>(serve_, *http_);
    waiters_ = std::make_unique<Waiters>(
        clock_, *http_, *wakes_, metrics_,
        [this](const VisitPtr& visit, Answer answer) { finish(visit, std::move(answer)); });
    line_ = std::make_unique<QueueLine>(
        clock_, *http_, *wakes_, metrics_,
        [this](const VisitPtr& visit, Answer answer) { finish(visit, std::move(answer)); });
    streams_ = std::make_unique<Streams>(serve_, *http_, *wakes_, metrics_);
    if (serve_.backend.queue != nullptr && serve_.limits.tend_every.count() > 0) {
      tend_in(kTendAtFirst);
    }
    if (serve_.backend.keys == nullptr) return;
    if (auto watch = serve_.backend.keys->watch()) {
      key_watch_ = std::move(*watch);
      key_watching_ = http_->watch(key_watch_->fd(), [this] {
        key_watch_->acknowledge();
        look_at_keys();
      });
    }
    refresh_keys();
  });
  return {};
}

// A server that hears of no change looks anyway: a revoked key does not stay in force.
void Desk::refresh_keys() {
  http_->later(kKeysAtTheLatest, [this] {
    look_at_keys();
    refresh_keys();
  });
}

// Who waits or reads a stream was let in long ago: whose key is over is turned out.
void Desk::look_at_keys() {
  (void)http_->work([this] {
    auto fresh = keeper_.read();
    http_->post([this, fresh = fresh ? std::move(*fresh) : nullptr] {
      if (fresh) keeper_.learn(fresh);
      const auto out = [this](const Caller& caller) {
        auto told = keeper_.turn_out(caller);
        if (told) metrics_.denied("denied");
        return told;
      };
      waiters_->turn_out(out);
      line_->turn_out(out);
      streams_->turn_out([&](const Caller& caller) { return out(caller).has_value(); });
    });
  });
}

bool Desk::stop(Millis patience) {
  if (!http_) return true;
  http_->post([this] {
    stopping_ = true;
    if (waiters_) waiters_->close();
    if (line_) line_->close();
    if (streams_) streams_->close();
  });
  const bool clean = http_->stop(patience);
  // The loop has ended: nobody else is here.
  readiness_ = Readiness();
  key_watching_.reset();
  key_watch_.reset();
  streams_.reset();
  line_.reset();
  waiters_.reset();
  wakes_.reset();
  return clean;
}

void Desk::request(const std::shared_ptr<net::http::Call>& call) {
  auto visit = std::make_shared<Visit>();
  visit->call = call;
  visit->began = clock_.mono();
  visit->id = cat(id_prefix_, "-", next_id_.fetch_add(1));
  if (!find_route(visit)) return;
  if (serve_plain(visit)) return;
  if (stopping_ || !streams_) {
    return finish(visit,
                  error_answer(503, unavailable("the server is starting or stopping: ask again"),
                               Millis(1000)));
  }
  if (!look_at_caller(visit)) return;
  serve(visit);
}

bool Desk::find_route(const VisitPtr& visit) {
  const net::http::RequestHead& head = visit->call->head();
  auto target = parse_target(head.target);
  if (!target) {
    finish(visit, fault_answer(target.error()));
    return false;
  }
  visit->target = std::move(*target);
  const std::string_view method = head.method == "HEAD" ? std::string_view("GET") : head.method;
  for (const Route& route : routes()) {
    if (route.path == visit->target.path && route.method == method) visit->route = &route;
  }
  if (visit->route != nullptr) return true;
  const std::string methods = allowed(visit->target.path);
  if (methods.empty()) {
    if (auto page = page_answer(serve_.page, head, visit->target.path)) {
      finish(visit, std::move(*page));
      return false;
    }
    finish(visit,
           error_answer(404, invalid("there is nothing at this path; see /v1/openapi.json")));
    return false;
  }
  Answer answer = error_answer(405, invalid(cat("this path takes ", methods)));
  answer.fields.push_back({"Allow", methods});
  finish(visit, std::move(answer));
  return false;
}

// What nobody needs a key for, and the store is not asked for.
bool Desk::serve_plain(const VisitPtr& visit) {
  const Route& route = *visit->route;
  if (route.path == "/healthz") {
    finish(visit, ok("{\"ok\":true}"));
    return true;
  }
  if (route.path == "/readyz") {
    ready(visit);
    return true;
  }
  if (route.path == "/v1/openapi.json") {
    finish(visit, ok(openapi_document(serve_.version)));
    return true;
  }
  return false;
}

void Desk::ready(const VisitPtr& visit) {
  if (stopping_ || !streams_) {
    return finish(visit, error_answer(503, unavailable("stopping"), Millis(1000)));
  }
  const auto tell = [this, visit](bool ready) {
    finish(visit, ready
                      ? ok("{\"ok\":true}")
                      : error_answer(503,
                                     unavailable("the store does not answer or is refused, or too "
                                                 "much waits for it: the server's log says "
                                                 "which"),
                                     Millis(1000)));
  };
  if (!readiness_.ask(tell, clock_.mono())) return;
  const bool queued = http_->work([this] {
    // A look as those are that lead to a grant: a store that went back is not ready.   G12
    static const auto kAny = ResourceName::parse("readyz");
    const bool answers = kAny && serve_.backend.leases->get(*kAny).has_value();
    http_->post([this, answers] { readiness_.learned(answers, clock_.mono()); });
  });
  if (!queued) readiness_.learned(false, clock_.mono());
}

bool Desk::look_at_caller(const VisitPtr& visit) {
  auto admitted = keeper_.admit(visit->call->head());
  if (auto* no = std::get_if<Answer>(&admitted)) {
    metrics_.denied("denied");
    finish(visit, std::move(*no));
    return false;
  }
  visit->caller = std::get<Caller>(std::move(admitted));
  if (!visit->caller.may(visit->route->rights)) {
    metrics_.denied("denied");
    std::string needed;
    for (const std::string& word : api::words(visit->route->rights)) {
      needed += cat(needed.empty() ? "" : " or ", quoted(word));
    }
    finish(visit,
           error_answer(403, {Code::Denied, cat("the key ", quoted(visit->caller.name()),
                                                " does not allow this: it needs ", needed)}));
    return false;
  }
  if (!keeper_.within_rate(visit->caller)) {
    metrics_.denied("limit");
    finish(visit, error_answer(429, {Code::Denied, "too many requests of this key: slow down"},
                               Millis(1000)));
    return false;
  }
  note_use(visit->caller);
  return true;
}

void Desk::note_use(const Caller& caller) {
  if (!caller.key) return;
  const MonoTime now = clock_.mono();
  {
    const MutexLock lock(used_mutex_);
    MonoTime& last = used_[caller.key->id];
    if (last != MonoTime{} && now - last < kUseNoted) return;
    last = now;
  }
  (void)http_->work([this, key = caller.key] { (void)serve_.backend.keys->used(*key); });
}

std::shared_ptr<Request> Desk::request_of(const VisitPtr& visit) {
  return std::make_shared<Request>(Request{.serve = serve_,
                                           .clock = clock_,
                                           .metrics = metrics_,
                                           .claims = claims_,
                                           .lists = lists_,
                                           .caller = visit->caller,
                                           .query = visit->target.query,
                                           .body = {},
                                           .once = std::nullopt,
                                           .once_key = {}});
}

void Desk::serve(const VisitPtr& visit) {
  const Route& route = *visit->route;
  if (auto fine = check_query(route, visit->target.query); !fine) {
    return finish(visit, fault_answer(fine.error()));
  }
  if (route.path == "/v1/waiters") return finish(visit, ok(waiters_->to_json(visit->caller)));
  if (route.method == "POST") {
    const std::size_t most = most_body(serve_.limits, route);
    if (const auto length = visit->call->head().fields.first("Content-Length")) {
      const auto bytes = parse_digits(*length);
      if (!bytes || *bytes > most) {
        return finish(visit,
                      error_answer(413, invalid(cat("the body is longer than ", most, " bytes"))));
      }
    }
    visit->call->collect(most, [this, visit](const std::string& body) { take_body(visit, body); });
    return;
  }
  if (route.path == "/metrics") return serve_metrics(visit);
  const bool ledger = route.path == "/v1/events" && wants_stream(visit->call->head());
  if (ledger || route.path.ends_with("/watch")) return serve_stream(visit);
  run(visit, request_of(visit));
}

void Desk::serve_stream(const VisitPtr& visit) {
  if (streams_->count() >= serve_.limits.streams) {
    metrics_.denied("limit");
    return finish(visit,
                  error_answer(429, {Code::Denied, "too many streams are open"}, Millis(5000)));
  }
  const auto asked = [&](const std::string& name) {
    const auto found = visit->target.query.find(name);
    return found == visit->target.query.end() ? std::string() : found->second;
  };
  const Caller& caller = visit->caller;
  if (visit->route->path != "/v1/watch" && visit->route->path != "/v1/events") {
    const bool jobs = visit->route->path == "/v1/jobs/watch";
    auto topic =
        jobs ? Result<std::string>(Wakes::of_jobs()) : watched_queue(caller, visit->target.query);
    if (!topic) return finish(visit, fault_answer(topic.error()));
    metrics_.answered(200);
    note(*visit, 200);
    return streams_->watch(visit, *topic);
  }
  if (visit->route->path == "/v1/watch") {
    const std::string resource = asked("resource");
    if (!resource.empty()) {
      auto name = ResourceName::parse(resource);
      if (!name) return finish(visit, fault_answer(name.error()));
      if (!caller.reaches(resource))
        return finish(visit, fault_answer(out_of_reach(caller, resource)));
    }
    metrics_.answered(200);
    note(*visit, 200);
    return streams_->watch(visit, resource);
  }
  std::string prefix = asked("prefix");
  std::string after = asked("after");
  if (const auto last = visit->call->head().fields.first("Last-Event-ID"))
    after = std::string(*last);
  if (auto fine = check_event_number(after); !fine) {
    return finish(visit, fault_answer(fine.error()));
  }
  if (auto fine = is_newest(asked("newest")); !fine) {
    return finish(visit, fault_answer(fine.error()));
  }
  metrics_.answered(200);
  note(*visit, 200);
  streams_->follow(visit, prefix, after);
}

// Keys bind method, path, body and caller. The answer: what is wrong.
std::optional<std::string> Desk::read_once(const VisitPtr& visit, Request& request,
                                           const std::string& body) const {
  const auto all = visit->call->head().fields.all("Idempotency-Key");
  if (all.empty()) return std::nullopt;
  constexpr std::size_t kMost = 255;
  if (all.size() > 1 || all.front().empty() || all.front().size() > kMost) {
    return "Idempotency-Key is one text of 1 to 255 bytes";
  }
  request.once_key = std::string(all.front());
  const std::string who = visit->caller.key ? visit->caller.key->id : std::string();
  request.once = api::Once{
      .key = to_hex(sha256(cat(who, "\n", request.once_key))),
      .digest = to_hex(sha256(cat(visit->route->method, "\n", visit->route->path, "\n", body)))};
  return std::nullopt;
}

void Desk::take_body(const VisitPtr& visit, const std::string& body) {
  const auto request = request_of(visit);
  if (const auto wrong = read_once(visit, *request, body)) {
    return finish(visit, fault_answer(invalid(*wrong)));
  }
  auto parsed = JsonValue::parse(body);
  if (!parsed) return finish(visit, fault_answer(parsed.error()));
  request->body = std::move(*parsed);
  if (visit->route->path == "/v1/acquire") return run_acquire(visit, request);
  if (visit->route->path == "/v1/queues/claim") return run_claim(visit, request);
  run(visit, request);
}

// Before it is asked for, not when it is granted: those that are asked for at once count, too, and
// so does who waits.
bool Desk::take_places(Visit& visit, const Bid& bid) {
  const std::size_t most = serve_.limits.resources;
  if (most == 0 || !visit.caller.key) return true;
  std::vector<std::string> wanted;
  for (const ResourceName& one : bid.resources) wanted.push_back(one.text());
  visit.places = metrics_.reserve(visit.caller.name(), std::move(wanted), most);
  return visit.places != nullptr;
}

void Desk::run_acquire(const VisitPtr& visit, const std::shared_ptr<Request>& request) {
  auto bid = read_bid(*request);
  if (!bid) return finish(visit, fault_answer(bid.error()));
  if (!take_places(*visit, *bid)) {
    metrics_.denied("limit");
    return finish(visit,
                  error_answer(429,
                               {Code::Denied, cat("this key may hold ", serve_.limits.resources,
                                                  " leases at a time: release some")},
                               Millis(1000)));
  }
  if (bid->wait.count() == 0) {
    request->made = bid->made;
    if (!bid->listed && line_up(visit, request, std::move(bid->first))) return;
    return run(visit, request);
  }
  if (line_->count() + waiters_->count() >= serve_.limits.waiters) {
    metrics_.denied("limit");
    return finish(visit, error_answer(429, {Code::Denied, "too many wait already"}, Millis(1000)));
  }
  waiters_->join(visit, request, std::move(*bid));
}

void Desk::run(const VisitPtr& visit, const std::shared_ptr<Request>& request) {
  if (gather(visit, request)) return;
  ++metrics_.queued;
  const bool queued = http_->work([this, visit, request] {
    --metrics_.queued;
    const MonoTime began = clock_.mono();
    Answer answer = run_route(*visit->route, *request);
    metrics_.store_time.observe(clock_.mono() - began);
    finish(visit, std::move(answer));
  });
  if (queued) return;
  --metrics_.queued;
  metrics_.denied("limit");
  finish(visit, error_answer(503,
                             unavailable("too much is waiting for the store: ask again. Nothing "
                                         "was done."),
                             Millis(1000)));
}

void Desk::finish(const VisitPtr& visit, Answer answer) {
  answer.fields.push_back({"X-Request-Id", visit->id});
  metrics_.answered(answer.status);
  metrics_.request_time.observe(clock_.mono() - visit->began);
  note(*visit, answer.status);
  // A grant is noted by now; who was refused may ask again at once.
  visit->places.reset();
  visit->call->answer(std::move(answer));
}

// Never the query, a header or a body: names stand in the ledger, secrets nowhere.
void Desk::note(const Visit& visit, int status) const {
  const bool quiet = status < 400 || status == 409 || status == 410 ||
                     (visit.route != nullptr && is_health(*visit.route));
  if (quiet && !serve_.log_all) return;
  const auto took =
      std::chrono::duration_cast<std::chrono::microseconds>(clock_.mono() - visit.began);
  const std::string path = visit.route != nullptr ? std::string(visit.route->path) : "-";
  const std::string method = visit.route != nullptr ? std::string(visit.route->method) : "-";
  if (!serve_.log_json) {
    serve_.log(cat(format_utc(clock_.wall()), " ", visit.id, " ", visit.call->peer(), " ",
                   visit.caller.key ? visit.caller.key->name : std::string("-"), " ", method, " ",
                   path, " ", status, " ", took.count(), "us"));
    return;
  }
  serve_.log(api::to_json(std::vector<api::JsonField>{
      {"at_ms", to_ms(clock_.wall())},
      {"request", visit.id},
      {"peer", visit.call->peer()},
      {"key", visit.caller.key ? visit.caller.key->name : std::string()},
      {"method", method},
      {"path", path},
      {"status", static_cast<std::int64_t>(status)},
      {"took_us", static_cast<std::int64_t>(took.count())}}));
}

OpenedServer open_server(const ServeRequest& request, const Clock& clock) {
  auto desk = std::make_unique<Desk>(request, clock);
  if (auto open = desk->open(); !open) return open.error();
  return std::unique_ptr<Server>(std::move(desk));
}

}  // namespace stint::server
