#include "guard/http/proxy.h"

#include <algorithm>
#include <atomic>
#include <list>
#include <map>

#include "base/text.h"
#include "guard/http/answers.h"
#include "guard/http/gate.h"
#include "guard/http_target.h"
#include "os/socket_wait.h"

namespace stint::guard::http {
namespace {

using core::Verdict;
using net::http::Call;
using net::http::Forwarded;

constexpr std::size_t kMostSites = 1024;
// Of so many resources it hears when they change; of the others it asks the store at each request.
constexpr std::size_t kMostWatches = 64;

// One guarded request, from its head to its being let through.
struct Visit {
  std::shared_ptr<Call> call;
  Shown shown;
  bool seal = false;
  bool judged = false;  // in this step: the store has just said that our token is good
  bool spent = false;   // mode once: the token's one write is ours
  bool whole = false;   // all of the body is here
  std::optional<MonoTime> until = std::nullopt;
  const std::string& resource() const { return shown.pass.resource.text(); }
};
using VisitPtr = std::shared_ptr<Visit>;

// What is known of one resource. The loop's.
struct Site {
  std::optional<Gate> gate;      // empty: not read from the store yet
  std::unique_ptr<Watch> watch;  // empty: nothing is heard of its changes
  bool loading = false;
  bool marking = false;
  bool confirming = false;
  std::list<VisitPtr> waiting;
  MonoTime alarm = MonoTime::max();
};

class HttpProxy final : public Proxy, public net::http::Handler {
 public:
  HttpProxy(const ProxyRequest& request, const Clock& clock) : request_(request), clock_(clock) {}

  Status open() {
    auto server = net::http::Server::start(
        {.listen = request_.listen, .upstream = request_.upstream, .limits = request_.limits},
        *this, clock_);
    if (!server) return server.error();
    server_ = std::move(*server);
    return {};
  }

  std::uint16_t port() const override { return server_->port(); }
  void hold_until(MonoTime deadline) override {
    if (begun_.load() == MonoTime{}) begun_ = clock_.mono();
    held_until_ = deadline;
  }
  void retire() override {
    retired_ = true;
    server_->post([this] {
      for (auto& [name, site] : sites_) {
        if (site.gate) site.gate->cut_older(Token(Token::kMax));
        wake(name);
      }
    });
  }
  bool stop(Millis patience) override { return server_->stop(patience); }

  void request(const std::shared_ptr<Call>& call) override;

 private:
  bool active() const { return !retired_ && clock_.mono() < held_until_.load(); }
  void step(const VisitPtr& visit);
  void load(const std::string& resource);
  // True: go on now.
  bool judge(Site& site, const VisitPtr& visit);
  void told(const VisitPtr& visit, const Result<api::FenceAnswer>& answer, bool* mark);
  void advance(Site& site, const VisitPtr& visit);
  void wait(Site& site, const VisitPtr& visit);
  void gather(const VisitPtr& visit);
  void mark(Site& site, const VisitPtr& visit);
  void spend(const VisitPtr& visit);
  void let_through(Site& site, const VisitPtr& visit);
  void refuse(const VisitPtr& visit, Verdict verdict, const std::optional<core::Fence>& fence,
              const Owner& newest, const std::string& detail = {});
  void decline(const std::shared_ptr<Call>& call, const NotShown& not_shown, bool seal);
  void tell(const Refused& refused, const Pass& pass);
  Manner manner() const {
    return {.cut = request_.cut, .warn = request_.warn, .drain = request_.drain};
  }
  void arm(Site& site, const std::string& resource, MonoTime when);
  void wake(const std::string& resource);
  void make_room();
  std::size_t watches() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(sites_, [](const auto& one) { return one.second.watch != nullptr; }));
  }
  // Empty: none can be had.
  std::unique_ptr<Watch> watch_of(const std::string& resource) const {
    auto name = ResourceName::parse(resource);
    if (!name || !request_.watch) return nullptr;
    auto watch = request_.watch(*name);
    return watch ? std::move(*watch) : nullptr;
  }
  // A fence that another resource occupies says nothing of what has passed here.
  static std::optional<core::Fence> of(const std::string& resource,
                                       const std::optional<core::Fence>& fence) {
    return fence && fence->resource == resource ? fence : std::nullopt;
  }
  static void busy(const VisitPtr& visit) {
    visit->call->answer(error_answer(503, unavailable("too much is waiting for the store"), 1));
  }
  core::Offer offer_at_least(const Visit& visit) const {
    core::Offer offer = offer_of(visit.shown.pass, "");
    offer.mode = core::FenceMode::AtLeast;
    offer.key.clear();
    offer.by_order = visit.seal && visit.shown.by_order;
    return offer;
  }

  const ProxyRequest request_;
  const Clock& clock_;
  std::atomic<MonoTime> begun_{MonoTime{}};
  std::atomic<MonoTime> held_until_{MonoTime{}};
  std::atomic<bool> retired_ = false;
  std::map<std::string, Site> sites_;
  std::unique_ptr<net::http::Server> server_;  // goes first
};

void HttpProxy::request(const std::shared_ptr<Call>& call) {
  const auto& head = call->head();
  const std::string path = head.target.substr(0, head.target.find('?'));
  const bool seal = path == kSealPath;
  if (path == kReadyPath) {
    return call->answer(ready_answer(active(), manner()));
  }
  if (!active()) {
    return call->answer(error_answer(
        503, unavailable("this proxy stands by: another one admits, or this one lost its lease"),
        1));
  }
  if (seal && head.method != "POST") {
    return call->answer(error_answer(405, invalid("a seal is asked for with POST")));
  }
  if (head.method == "CONNECT" || head.method == "TRACE") {
    return call->answer(error_answer(405, invalid(cat(head.method, " is not forwarded"))));
  }
  if (!seal && is_safe(head.method) && !request_.guard_safe_methods) return call->forward({});
  auto shown = read_shown(head, request_.resource);
  if (const auto* no = std::get_if<NotShown>(&shown)) return decline(call, *no, seal);
  const auto visit = std::make_shared<Visit>(
      Visit{.call = call, .shown = std::get<Shown>(std::move(shown)), .seal = seal});
  make_room();
  if (sites_.size() >= kMostSites && !sites_.contains(visit->resource())) return busy(visit);
  step(visit);
}

void HttpProxy::step(const VisitPtr& visit) {
  if (!active()) {
    return visit->call->answer(
        error_answer(503, unavailable("this proxy lost its lease; nothing was forwarded"), 1));
  }
  Site& site = sites_[visit->resource()];
  if (!site.gate) {
    site.waiting.push_back(visit);
    return load(visit->resource());
  }
  if (visit->judged || judge(site, visit)) advance(site, visit);
}

void HttpProxy::load(const std::string& resource) {
  Site& site = sites_[resource];
  if (site.loading) return;
  const bool hears = watches() < kMostWatches;
  site.loading = server_->work([this, resource, hears] {
    // Before the fence is read.
    auto watch = std::make_shared<std::unique_ptr<Watch>>(hears ? watch_of(resource) : nullptr);
    auto fence = request_.fences->fence(proxy_name(request_.upstream, resource));
    auto passed = request_.fences->fence(passed_name(request_.upstream, resource));
    server_->post([this, resource, watch, fence = std::move(fence), passed = std::move(passed)] {
      Site& here = sites_[resource];
      here.loading = false;
      if (fence && passed) {
        here.watch = std::move(*watch);
        here.gate.emplace(of(resource, *fence), of(resource, *passed), begun_.load(),
                          request_.drain);
        return wake(resource);
      }
      auto waiting = std::exchange(here.waiting, {});
      const auto answer = store_answer(fence ? passed.error() : fence.error());
      for (const VisitPtr& one : waiting) one->call->answer(answer);
    });
  });
  if (site.loading) return;
  auto waiting = std::exchange(site.waiting, {});
  for (const VisitPtr& one : waiting) busy(one);
}

bool HttpProxy::judge(Site& site, const VisitPtr& visit) {
  const core::Offer offer = offer_at_least(*visit);
  if (site.watch && os::readable_now(site.watch->fd())) {
    site.watch->acknowledge();
    site.gate->changed();
  }
  const MonoTime now = clock_.mono();
  if (const auto verdict = site.gate->known(offer, now)) {
    if (*verdict == Verdict::Admitted) return true;
    refuse(visit, *verdict, site.gate->fence(), {});
    return false;
  }
  // One asks for all that show the fence's own token.
  const auto& fence = site.gate->fence();
  const bool again = fence && fence->token == offer.token;
  if (again && site.confirming) {
    site.waiting.push_back(visit);
    return false;
  }
  // The fence first, whatever is still under way: from now on nothing older is let in.
  const bool asked =
      server_->work([this, visit, offer, again, now, hearing = site.gate->hearing()] {
        auto answer =
            request_.fences->seal(proxy_name(request_.upstream, visit->resource()), offer);
        server_->post([this, visit, again, now, hearing, answer = std::move(answer)] {
          Site& here = sites_[visit->resource()];
          if (again) here.confirming = false;
          if (answer && answer->verdict == Verdict::Admitted && here.gate && here.watch) {
            here.gate->newest(visit->shown.pass.token, hearing, now);
          }
          told(visit, answer, &visit->judged);
        });
      });
  if (asked && again) site.confirming = true;
  if (!asked) busy(visit);
  return false;
}

void HttpProxy::told(const VisitPtr& visit, const Result<api::FenceAnswer>& answer, bool* mark) {
  if (!answer) return visit->call->answer(store_answer(answer.error()));
  Site& site = sites_[visit->resource()];
  if (answer->fence && site.gate) site.gate->learn(*answer->fence);
  if (answer->verdict == Verdict::Done) {
    refuse(visit, Verdict::Used, answer->fence, answer->owner,
           "this very request was let through before; the upstream knows what became of it");
  } else if (answer->verdict != Verdict::Admitted) {
    refuse(visit, answer->verdict, answer->fence, answer->owner);
  } else {
    *mark = true;
    step(visit);
  }
  wake(visit->resource());
}

void HttpProxy::advance(Site& site, const VisitPtr& visit) {
  const Token token = visit->shown.pass.token;
  switch (site.gate->way(token, clock_.mono())) {
    case Way::Overtaken: return refuse(visit, Verdict::Stale, site.gate->fence(), {});
    case Way::Wait:
      if (request_.cut && site.gate->cut_older(token)) return advance(site, visit);
      return wait(site, visit);
    case Way::Mark:
      if (visit->seal) break;
      if (visit->whole) return mark(site, visit);
      [[fallthrough]];
    case Way::Open:
      if (!visit->seal && !visit->whole) return gather(visit);
      break;
  }
  if (visit->seal) return visit->call->answer(sealed_answer(visit->shown.pass, manner()));
  const bool once = visit->shown.pass.mode == core::FenceMode::Once;
  if (once && !visit->spent) return spend(visit);
  let_through(site, visit);
}

void HttpProxy::wait(Site& site, const VisitPtr& visit) {
  const MonoTime now = clock_.mono();
  visit->judged = false;  // it may be revoked while it waits
  if (!visit->until) visit->until = now + request_.drain;
  if (now >= *visit->until) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(request_.drain).count();
    return visit->call->answer(error_answer(
        503,
        unavailable("requests of an older token are still under way at the upstream, so this one "
                    "was not forwarded. Nothing older is let in any more: ask again"),
        static_cast<int>(std::min<std::int64_t>(seconds, 5))));
  }
  site.waiting.push_back(visit);
  const auto change = site.gate->next_change(now);
  arm(site, visit->resource(), change ? std::min(*change, *visit->until) : *visit->until);
}

// Its sender may take its time: it is judged anew when all of it is here. Until then it keeps
// nobody back.
void HttpProxy::gather(const VisitPtr& visit) {
  visit->call->gather([this, visit] {
    visit->whole = true;
    visit->judged = false;
    step(visit);
  });
}

// Nothing older is under way: that goes into the store before the first request of this token goes
// to the upstream, so that a proxy that starts later knows it.
void HttpProxy::mark(Site& site, const VisitPtr& visit) {
  if (site.marking) {
    visit->judged = false;
    return site.waiting.push_back(visit);
  }
  site.marking = server_->work([this, visit, offer = offer_at_least(*visit)] {
    auto answer = request_.fences->seal(passed_name(request_.upstream, visit->resource()), offer);
    server_->post([this, visit, answer = std::move(answer)] {
      Site& here = sites_[visit->resource()];
      here.marking = false;
      if (!answer) {
        visit->call->answer(store_answer(answer.error()));
      } else if (answer->verdict != Verdict::Admitted) {
        refuse(visit, answer->verdict, answer->fence, answer->owner);
      } else {
        here.gate->passed(visit->shown.pass.token);
        step(visit);
      }
      wake(visit->resource());
    });
  });
  if (!site.marking) busy(visit);
}

void HttpProxy::spend(const VisitPtr& visit) {
  const bool asked = server_->work([this, visit] {
    auto answer = request_.fences->admit(proxy_name(request_.upstream, visit->resource()),
                                         offer_of(visit->shown.pass, ""));
    server_->post(
        [this, visit, answer = std::move(answer)] { told(visit, answer, &visit->spent); });
  });
  if (!asked) busy(visit);
}

void HttpProxy::let_through(Site& site, const VisitPtr& visit) {
  const std::string resource = visit->resource();
  const auto call = visit->call;
  const std::uint64_t id = site.gate->enter(visit->shown.pass.token, [weak = std::weak_ptr(call)] {
    if (const auto there = weak.lock()) there->cut();
  });
  call->forward({.may_send = [this] { return active(); },
                 .ended =
                     [this, resource, id](Forwarded how) {
                       Site& here = sites_[resource];
                       if (!here.gate) return;
                       here.gate->leave(id, how != Forwarded::Unanswered, clock_.mono());
                       wake(resource);
                     }});
}

void HttpProxy::refuse(const VisitPtr& visit, Verdict verdict,
                       const std::optional<core::Fence>& fence, const Owner& newest,
                       const std::string& detail) {
  const Refused refused{.target = proxy_name(request_.upstream, visit->resource()),
                        .verdict = verdict,
                        .offered = visit->shown.pass.token,
                        .fence = fence,
                        .newest_owner = newest,
                        .detail = detail,
                        .warned = request_.warn && !visit->seal};
  if (refused.warned) {
    visit->call->forward({.may_send = [this] { return active(); }, .ended = {}});
  } else {
    visit->call->answer(refusal_answer(refused, visit->shown.pass));
  }
  tell(refused, visit->shown.pass);
}

// What shows no token. It names no lease that could be trusted: what is recorded names the proxy's.
void HttpProxy::decline(const std::shared_ptr<Call>& call, const NotShown& not_shown, bool seal) {
  const bool warned = request_.warn && !seal && not_shown.verdict;
  if (warned) {
    call->forward({.may_send = [this] { return active(); }, .ended = {}});
  } else {
    call->answer(not_shown.answer);
  }
  if (!not_shown.verdict) return;  // not refused by the guard: it is no proper request
  const auto name = request_.resource ? Result<ResourceName>(*request_.resource)
                                      : ResourceName::parse(proxy_lease(request_.upstream, {}));
  if (!name) return;
  const Pass pass{.resource = *name, .token = {}, .generation = {}, .claim = {}, .owner = {}};
  tell({.target = proxy_lease(request_.upstream, request_.resource),
        .verdict = *not_shown.verdict,
        .offered = {},
        .fence = {},
        .newest_owner = {},
        .detail = "",
        .warned = warned},
       pass);
}

void HttpProxy::tell(const Refused& refused, const Pass& pass) {
  if (!request_.refused) return;
  // Full of work: the refusal counts all the same.
  server_->work([this, refused, pass] { request_.refused(refused, pass); });
}

void HttpProxy::arm(Site& site, const std::string& resource, MonoTime when) {
  if (site.alarm <= when) return;
  site.alarm = when;
  const auto delay = std::chrono::ceil<Millis>(when - clock_.mono());
  server_->later(std::max(delay, Millis(1)), [this, resource, when] {
    Site& here = sites_[resource];
    if (here.alarm == when) here.alarm = MonoTime::max();
    wake(resource);
  });
}

void HttpProxy::wake(const std::string& resource) {
  const auto waiting = std::exchange(sites_[resource].waiting, {});
  for (const VisitPtr& one : waiting) step(one);
}

void HttpProxy::make_room() {
  if (sites_.size() < kMostSites) return;
  const MonoTime now = clock_.mono();
  std::erase_if(sites_, [now](const auto& one) {
    const Site& site = one.second;
    return site.waiting.empty() && !site.loading && !site.marking && !site.confirming &&
           (!site.gate || site.gate->idle(now));
  });
}

}  // namespace

OpenedProxy open_proxy(const ProxyRequest& request, const Clock& clock) {
  auto proxy = std::make_unique<HttpProxy>(request, clock);
  if (auto open = proxy->open(); !open) return open.error();
  return std::unique_ptr<Proxy>(std::move(proxy));
}

}  // namespace stint::guard::http
