// `guard check proxy:URL`: what stands there, seen from outside.
#include <boost/json.hpp>

#include "base/text.h"
#include "guard/http/proxy.h"
#include "guard/http/url.h"
#include "net/http_client.h"

namespace stint::guard::http {
namespace {

using Level = CheckLine::Level;

struct Ready {
  bool ready = false;
  bool narrow = false;
  bool warn = false;
  std::int64_t drain_ms = 0;
};

// Empty: whoever answered is no proxy of ours.
std::optional<Ready> read_ready(const std::string& body) {
  boost::system::error_code failed;
  const boost::json::value whole = boost::json::parse(body, failed);
  if (failed || !whole.is_object()) return std::nullopt;
  const auto& fields = whole.as_object();
  const auto* guard = fields.if_contains("guard");
  if (guard == nullptr || !guard->is_string() || guard->as_string() != "stint") return std::nullopt;
  const auto flag = [&](const char* name) {
    const auto* found = fields.if_contains(name);
    return found != nullptr && found->is_bool() && found->as_bool();
  };
  Ready out{.ready = flag("ready"), .narrow = flag("narrow"), .warn = flag("warn")};
  const auto* drain = fields.if_contains("drain_ms");
  if (drain != nullptr && drain->is_int64()) out.drain_ms = drain->as_int64();
  return out;
}

void tell_manner(const Ready& ready, std::vector<CheckLine>& lines) {
  lines.push_back(ready.ready ? CheckLine{Level::Ok, "ready: this proxy admits"}
                              : CheckLine{Level::Warn,
                                          "ready: it stands by or has lost its lease, and forwards "
                                          "nothing; another one may admit"});
  lines.push_back({Level::Ok, cat("drain: a newer token waits at most ",
                                  format_duration(Millis(ready.drain_ms)),
                                  " for older requests; longer than the upstream ever works on one "
                                  "request, or the window is not zero after a crash")});
  if (ready.narrow) {
    lines.push_back({Level::Warn, "window: narrow, not zero: it runs with --cut"});
  }
  if (ready.warn) {
    lines.push_back(
        {Level::Fail, "window: none: it runs with STINT_GUARD=warn and refuses nothing"});
  }
}

}  // namespace

ProxyCheckAnswer check_proxy(const ProxyCheck& check, const Clock& clock) {
  auto url = base_url(check.url);
  if (!url) return url.error();
  const auto client = net::make_http_client({}, clock);
  net::HttpRequest ask{.url = cat(*url, kReadyPath), .body = "", .timeout = check.timeout};
  const net::HttpOutcome seen = client->send(ask);
  if (!seen) {
    return unavailable(
        cat("the proxy at ", printable(check.url), " gave no answer: ", seen.failure->text));
  }
  const auto ready = read_ready(seen.answer.body);
  if (!ready) {
    return std::vector<CheckLine>{
        {Level::Fail, cat("guard: what answers there (", seen.answer.status,
                          ") is no stint proxy: nothing that goes through it is checked")}};
  }
  std::vector<CheckLine> lines;
  tell_manner(*ready, lines);
  if (ready->ready) {
    // Never forwarded, so it changes nothing.
    ask.url = cat(*url, kSealPath);
    ask.body = "{}";
    const net::HttpOutcome bare = client->send(ask);
    const bool refused = bare && bare.answer.status == 428;
    lines.push_back(refused
                        ? CheckLine{Level::Ok, "token: a request without one is refused"}
                        : CheckLine{Level::Fail, "token: a request without one is not refused"});
  }
  lines.push_back({Level::Ok,
                   "upstream: zero only if nobody reaches it another way, which cannot be seen "
                   "from here"});
  return lines;
}

}  // namespace stint::guard::http
