// stint proxy
#include "app/proxy.h"

#include <array>

#include "app/pass.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/session.h"
#include "guard/http_target.h"

namespace stint::cli {
namespace {

constexpr std::array<Option, 14> kProxyOptions = {{
    {"--listen", "A", "HOST:PORT to listen on (required; :PORT is loopback)"},
    {"--upstream", "B", "http://HOST:PORT of the server behind (required)"},
    {"--resource", "R", "the lease whose tokens count"},
    {"--resource-from-header", "", "each request names its lease in Fencing-Resource"},
    {"--drain", "D",
     "how long a newer token's first request waits for older ones to be answered (default 30s)"},
    {"--cut", "", "close older requests instead of waiting for them: narrow, NOT zero"},
    {"--guard-safe-methods", "", "GET, HEAD and OPTIONS need a token too"},
    {"--ttl", "D", "of the proxy's own lease (default 15s)"},
    {"--max-body", "BYTES", "longest body of a request (default 1 GiB)"},
    {"--max-header", "BYTES", "longest head of a request (default 16 KiB)"},
    {"--max-connections", "N", "at a time (default 1024)"},
    {"--header-timeout", "D", "for the whole head of a request (default 10s)"},
    {"--body-timeout", "D", "without a byte of a request's body (default 30s)"},
    {"--upstream-timeout", "D", "without a byte of the upstream's answer (default 60s)"},
}};
constexpr std::array<std::string_view, 3> kProxyExamples = {
    "stint proxy --listen :8080 --upstream http://127.0.0.1:9000 --resource site",
    "stint run site --seal proxy:http://127.0.0.1:8080 -- ./agent.sh",
    "curl -X PUT -H \"Fencing-Token: $STINT_TOKEN\" -H \"Fencing-Resource: $STINT_RESOURCE\" "
    "-H \"Fencing-Generation: $STINT_GENERATION\" --data-binary @new.json "
    "http://127.0.0.1:8080/doc",
};

template <class Number>
Status read_number(const Words& words, std::string_view option, Number& out) {
  const auto text = words.value(option);
  if (!text) return {};
  const auto number = parse_digits(*text);
  if (!number || *number == 0) return invalid(cat(option, " is a number above zero"));
  out = static_cast<Number>(*number);
  return {};
}

Status read_limits(Session& session, net::http::Limits& limits) {
  const Words& words = session.words();
  if (auto ok = read_number(words, "--max-body", limits.body_bytes); !ok) return ok;
  if (auto ok = read_number(words, "--max-header", limits.head_bytes); !ok) return ok;
  if (auto ok = read_number(words, "--max-connections", limits.connections); !ok) return ok;
  for (auto [option, time] : {std::pair{"--header-timeout", &limits.head_time},
                              std::pair{"--body-timeout", &limits.stall_time},
                              std::pair{"--upstream-timeout", &limits.answer_time}}) {
    auto read = session.duration(option, *time);
    if (!read) return read.error();
    *time = *read;
  }
  return {};
}

Result<app::ProxyRun> run_of(Session& session) {
  const Words& words = session.words();
  app::ProxyRun run;
  for (auto [option, place] :
       {std::pair{"--listen", &run.proxy.listen}, std::pair{"--upstream", &run.proxy.upstream}}) {
    const auto text = words.value(option);
    if (!text) return invalid(cat(option, " is missing"));
    auto parsed = guard::parse_endpoint(*text);
    if (!parsed) return invalid(cat(option, ": ", parsed.error().message));
    *place = std::move(*parsed);
  }
  if (run.proxy.upstream.port == 0) return invalid("--upstream needs a port");
  const auto resource = words.value("--resource");
  if (resource.has_value() == words.has("--resource-from-header")) {
    return invalid("--resource R or --resource-from-header: exactly one of them");
  }
  if (resource) {
    auto name = ResourceName::parse(*resource);
    if (!name) return name.error();
    run.proxy.resource = std::move(*name);
  }
  auto drain = session.duration("--drain", run.proxy.drain);
  if (!drain) return drain.error();
  run.proxy.drain = *drain;
  auto ttl = session.duration("--ttl", run.ttl);
  if (!ttl) return ttl.error();
  run.ttl = *ttl;
  run.proxy.cut = words.has("--cut");
  run.proxy.guard_safe_methods = words.has("--guard-safe-methods");
  auto warn = app::guard_warns(session.environment());
  if (!warn) return warn.error();
  run.proxy.warn = *warn;
  if (auto ok = read_limits(session, run.proxy.limits); !ok) return ok.error();
  auto owner = session.owner();
  if (!owner) return owner.error();
  run.owner = std::move(*owner);
  run.say = [&session](const std::string& line) { session.report(line); };
  return run;
}

int proxy_command(Session& session) {
  auto run = run_of(session);
  if (!run) return session.fail(run.error());
  // Before the first thread.
  auto signals = os::Signals::make();
  if (!signals) return session.fail(signals.error());
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  if (run->proxy.cut) {
    session.warn("--cut: narrow, not zero: the upstream may still be at a request that was cut");
  }
  if (run->proxy.warn) {
    session.warn("STINT_GUARD=warn, UNSAFE: what would be refused is forwarded and recorded");
  }
  auto end = app::run_proxy({(*opened)->leases(), (*opened)->fences(), (*opened)->events()},
                            session.clock(), session.random(), *signals, *run);
  if (!end) return session.fail(end.error());
  if (end->signal == 0) {
    session.warn(cat("the proxy's lease is lost, and it admits nothing more",
                     end->trouble.empty() ? "" : ": ", end->trouble));
    return kWorkStopped;
  }
  if (!end->trouble.empty()) session.warn(cat("the lease was not released: ", end->trouble));
  if (!end->clean) session.warn("some requests were cut while the upstream was still at them");
  return end->clean ? kDone : kFailed;
}

}  // namespace

const Command kProxy = {
    .name = "proxy",
    .operands = "",
    .summary = "let a request through to an HTTP server only with a current token",
    .details =
        "A reverse proxy that guards its upstream: a request that changes something carries "
        "Fencing-Token, Fencing-Resource and Fencing-Generation. Stale: 412. Missing: 428. Never "
        "issued: 403. Used (Fencing-Mode: once): 409. The store is not reached: 503 with "
        "Retry-After. The upstream is not: 502. GET, HEAD and OPTIONS pass.\n"
        "A newer token's first request passes only when all older ones have been answered; after "
        "--drain it gets 503 and may ask again; nothing older is let in meanwhile. 'stint seal "
        "proxy:http://HOST:PORT' waits for the same.\n"
        "The proxy holds a lease on its upstream and resource: a second one stands by (503 until "
        "then; GET /.well-known/stint/ready says which). After a start only the token that had "
        "passed before is admitted until the drain time has passed. If it loses its lease it "
        "stops admitting at once and exits with 75.\n"
        "STINT_GUARD=warn, given to the proxy: what it would refuse is forwarded and recorded "
        "(write_would_be_refused). NOT safe.\n"
        "Zero only if nobody reaches the upstream another way: docs/guides/guard-http.md.",

    .examples = kProxyExamples,
    .options = kProxyOptions,
    .least_operands = 0,
    .most_operands = 0,
    .runs_command = false,
    .run = proxy_command,
};

}  // namespace stint::cli
