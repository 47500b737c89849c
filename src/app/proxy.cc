#include "app/proxy.h"

#include "app/guards.h"
#include "app/modules.h"
#include "base/text.h"
#include "core/holder_policy.h"
#include "guard/http_target.h"
#include "holder/keeper_thread.h"
#include "holder/taking.h"
#include "os/clock.h"
#include "os/pause.h"

namespace stint::app {
namespace {

Result<holder::TakeRequest> take_request(const ProxyRun& run) {
  auto name = ResourceName::parse(guard::proxy_lease(run.proxy.upstream, run.proxy.resource));
  if (!name) return std::move(name.error()).during("naming the proxy's lease");
  return holder::TakeRequest{.choices = {{*name}},
                             .owner = run.owner,
                             .terms = {.ttl = run.ttl},
                             .note = "stint proxy",
                             .held = {.what = holder::OnHeld::Wait, .patience = {}}};
}

// One that names its resource and one that does not would not know of each other.
Status refuse_mixture(api::Leases& leases, const ProxyRun& run) {
  if (!run.proxy.resource) return {};
  auto star = ResourceName::parse(guard::proxy_lease(run.proxy.upstream, std::nullopt));
  if (!star) return star.error();
  auto lease = leases.get(*star);
  if (!lease) return lease.error();
  if (!lease->held) return {};
  return invalid(cat("a proxy with --resource-from-header stands before this upstream (",
                     quoted(lease->owner.text()),
                     "): two that do not share their lease would not wait for each other"));
}

struct Watching {
  const Clock& clock;
  os::Signals& signals;
  holder::Keeper& keeper;
  holder::KeeperThread& thread;
  guard::http::Proxy& proxy;
  Watch* watch;  // may be null
};

// Until a signal comes or the lease is lost.
ProxyEnd watch_over(const Watching& w) {
  std::vector<int> fds = {w.signals.fd(), w.thread.fd()};
  if (w.watch != nullptr) fds.push_back(w.watch->fd());
  while (true) {
    const holder::KeeperState state = w.keeper.state();
    if (state.standing != holder::KeeperState::Standing::Holding) {
      w.proxy.retire();
      return {.signal = 0, .clean = false, .lost = state.lost, .trouble = state.trouble};
    }
    w.proxy.hold_until(state.deadline);
    const auto ready = os::wait_readable(fds, state.deadline);
    if (const auto got = w.signals.take()) {
      if (got->number == SIGTERM || got->number == SIGINT || got->number == SIGHUP) {
        return {.signal = got->number, .clean = true, .lost = {}, .trouble = ""};
      }
    }
    w.thread.acknowledge();
    if (w.watch != nullptr && ready.back()) {
      w.watch->acknowledge();
      w.thread.look_soon();
    }
  }
}

Result<ProxyEnd> admit(const ProxyStore& store, const Clock& clock, Random& random,
                       os::Signals& signals, const ProxyRun& run, guard::http::Proxy& proxy,
                       const holder::Taken& taken) {
  const core::HoldSettings settings{.ttl = run.ttl,
                                    .grace = core::default_grace(run.ttl),
                                    .margin = core::default_margin(run.ttl)};
  holder::Keeper keeper(store.leases, clock, random, settings, taken.kept);
  // What the keeper learns is passed on before anybody else knows of it.
  auto thread =
      holder::KeeperThread::make(keeper,
                                 [&] {
                                   const auto state = keeper.state();
                                   if (state.standing == holder::KeeperState::Standing::Holding) {
                                     proxy.hold_until(state.deadline);
                                   } else {
                                     proxy.retire();
                                   }
                                 },
                                 {});
  if (!thread) return thread.error();
  if (auto started = (*thread)->start(); !started) return started.error();
  const api::Grip& grip = taken.kept.front().grip;
  auto watch = store.leases.watch(grip.resource);
  run.say(cat("admitting under the lease ", quoted(grip.resource.text()), ", token ",
              grip.token.number()));
  ProxyEnd end =
      watch_over({clock, signals, keeper, **thread, proxy, watch ? watch->get() : nullptr});
  if (end.signal == 0) {
    proxy.stop(Millis(0));
    return end;
  }
  run.say("stopping: waiting for what is under way");
  end.clean = proxy.stop(run.proxy.drain);
  (*thread)->stop();
  // What was cut may still be at work at the upstream: then the lease runs out by itself.
  if (!end.clean) return end;
  if (auto released = store.leases.release(grip, false); !released) {
    end.trouble = released.error().message;
  }
  return end;
}

// "proxy:http://UPSTREAM#RESOURCE": the fence itself, which another resource may occupy. A seal
// goes through the proxy.
bool names_fence_in_store(const guard::Target& target) {
  return target.place.find('#') != target.place.npos;
}

Result<guard::SealAnswer> adopt_in_store(const guard::Target& target,
                                         const guard::SealRequest& request, api::Fences* fences) {
  const std::size_t hash = target.place.find('#');
  if (!request.adopt || target.place.substr(hash + 1) != request.pass.resource.text()) {
    return invalid(cat(quoted(target.words),
                       " is a proxy's fence in the store: it is adopted (--adopt) for its own "
                       "resource, and sealed through the proxy, proxy:URL"));
  }
  auto upstream = guard::parse_endpoint(target.place.substr(0, hash));
  if (!upstream) return upstream.error();
  const auto& resource = request.pass.resource.text();
  const guard::Guard store = guard::store_guard();
  guard::Target name = target;
  name.words = guard::passed_name(*upstream, resource);
  auto mark = fences->fence(name.words);
  if (!mark) return mark.error();
  if (*mark && (*mark)->resource != resource) {
    auto taken = store.seal(name, request, fences);
    if (!taken || std::holds_alternative<guard::Refused>(*taken)) return taken;
  }
  name.words = guard::proxy_name(*upstream, resource);
  return store.seal(name, request, fences);
}

Result<guard::SealAnswer> seal_proxy(const guard::Target& target, const guard::SealRequest& request,
                                     api::Fences* fences) {
  if (names_fence_in_store(target)) return adopt_in_store(target, request, fences);
  return seal_by_module({.url = target.place, .request = request}, os::system_clock());
}

Result<std::vector<guard::CheckLine>> check_proxy(const guard::Target& target,
                                                  api::Fences* fences) {
  if (names_fence_in_store(target)) return guard::store_guard().check(target, fences);
  return check_by_module({.url = target.place}, os::system_clock());
}

}  // namespace

Result<ProxyEnd> run_proxy(const ProxyStore& store, const Clock& clock, Random& random,
                           os::Signals& signals, const ProxyRun& run) {
  auto request = take_request(run);
  if (!request) return request.error();
  if (auto ok = refuse_mixture(store.leases, run); !ok) return ok.error();
  guard::http::ProxyRequest asked = run.proxy;
  asked.fences = &store.fences;
  asked.watch = [&store](const ResourceName& resource) { return store.leases.watch(resource); };
  asked.refused = [&store, &clock](const guard::Refused& refused, const guard::Pass& pass) {
    // The request was refused either way.
    (void)record_refusal(store.events, clock, refused, pass);
  };
  auto proxy = open_module_proxy(asked, clock);
  if (!proxy) return proxy.error();
  net::http::Endpoint at = asked.listen;
  at.port = (*proxy)->port();
  run.say(cat("listening on ", guard::endpoint_text(at), ", before ",
              guard::endpoint_text(asked.upstream)));
  const holder::Interruptions interruptions{
      .fd = signals.fd(), .take = [&signals]() -> std::optional<int> {
        const auto got = signals.take();
        const bool stop = got && (got->number == SIGTERM || got->number == SIGINT);
        return stop ? std::optional(got->number) : std::nullopt;
      }};
  auto answer = holder::take(
      store.leases, clock, random, *request, interruptions, [&](const api::Refused& by) {
        run.say(cat("standing by: ", quoted(by.lease.owner.text()), " admits"));
      });
  if (!answer) return answer.error();
  if (const auto* gone = std::get_if<holder::Interrupted>(&*answer)) {
    return ProxyEnd{.signal = gone->signal, .clean = true, .lost = {}, .trouble = ""};
  }
  const auto* taken = std::get_if<holder::Taken>(&*answer);
  if (taken == nullptr) return unavailable("the lease was not to be had");
  return admit(store, clock, random, signals, run, **proxy, *taken);
}

guard::Guard proxy_guard() {
  return {.settle_words = {}, .seal = seal_proxy, .check = check_proxy};
}

}  // namespace stint::app
