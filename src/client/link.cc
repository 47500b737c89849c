#include "client/link.h"

#include "base/text.h"
#include "net/stream_watch.h"

namespace stint::client {
namespace {

constexpr int kMostTries = 3;

net::HttpClientOptions options_of(const ConnectRequest& request) {
  const auto option = [&](const char* name) {
    const auto found = request.address.options.find(name);
    return found == request.address.options.end() ? std::string() : found->second;
  };
  return {
      .tls = {.authorities = option("cacert"), .certificate = option("cert"), .key = option("key")},
      .most_connections = 64,
      .proxies = true};
}

std::string base_of(const net::Address& address) {
  const net::Host& host = address.hosts.front();
  const bool v6 = host.name.find(':') != host.name.npos;
  std::string out = cat(address.scheme, "://", v6 ? "[" : "", host.name, v6 ? "]" : "");
  if (host.port != 0) out += cat(":", host.port);
  std::string path = address.path;
  while (path.ends_with('/')) path.pop_back();
  if (!path.empty()) out += cat("/", path);
  return out;
}

// Which refusals of a request that is asked again prove that it was not done before.
bool nothing_settles(int /*status*/) { return false; }
bool all_settles(int /*status*/) { return true; }
// Held by another: who shows the claim of a grant gets that grant.
bool held_settles(int status) { return status == 409; }
// The server would have told the answer that it kept.
bool key_settles(int status) { return status == 409 || status == 410; }

}  // namespace

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += cat('%', to_hex(std::string_view(&c, 1)));
    }
  }
  return out;
}

Link::Link(const ConnectRequest& request, const Clock& clock)
    : request_(request),
      clock_(clock),
      base_(base_of(request.address)),
      http_(net::make_http_client(options_of(request), clock)) {}

std::vector<std::string> Link::headers() const {
  std::vector<std::string> out = {"Content-Type: application/json"};
  if (!request_.key.empty()) out.push_back(cat("Authorization: Bearer ", request_.key));
  return out;
}

Error Link::error_of(const Reply& reply) {
  auto told = api::parse_error(reply.body);
  if (told) return told->error;
  // Not one of ours: a proxy, a load balancer, another program.
  const Code code = reply.status == 401 || reply.status == 403 ? Code::Denied : Code::Unavailable;
  return {code, cat("the server answered with status ", reply.status, " and no words of ours")};
}

Result<Link::Reply> Link::send(const net::HttpRequest& request, bool changes) {
  net::HttpOutcome outcome = http_->send(request);
  if (!outcome) {
    const net::HttpFailure& failure = *outcome.failure;
    const bool maybe = changes && failure.kind == net::HttpFailure::Kind::MaybeSent;
    return Error{maybe ? Code::UnknownOutcome : Code::Unavailable,
                 cat("the server at ", base_, maybe ? " did not answer" : " cannot be reached",
                     ": ", failure.text)};
  }
  Reply reply{outcome.answer.status, std::move(outcome.answer.body), {}};
  auto json = JsonValue::parse(reply.body, {.depth = 16, .values = 10'000'000});
  // From something that stands between, after which the request may still have arrived.
  const bool strange = !json && (reply.status < 400 || reply.status == 408 || reply.status >= 500);
  if (strange && changes) {
    return Error{Code::UnknownOutcome, cat("something at ", base_, " answered with status ",
                                           reply.status, " and no JSON: it may have been done")};
  }
  if (strange) {
    return unavailable(cat("something at ", base_, " answered with status ", reply.status,
                           " and no JSON: is it a stint server?"));
  }
  if (json) reply.json = std::move(*json);
  return reply;
}

bool Link::within(net::HttpRequest& request, MonoTime deadline) const {
  const auto left = std::chrono::floor<Millis>(deadline - clock_.mono());
  request.timeout = request.connect_timeout = left;
  return left.count() > 0;
}

std::string Link::url_of(const std::string& path, const Query& query) const {
  std::string url = cat(base_, path);
  char separator = '?';
  for (const auto& [name, value] : query) {
    if (value.empty()) continue;
    url += cat(separator, name, "=", percent_encoded(value));
    separator = '&';
  }
  return url;
}

Result<Link::Reply> Link::get(const std::string& path, const Query& query) {
  const MonoTime deadline = clock_.mono() + request_.timeout;
  net::HttpRequest request{.url = url_of(path, query),
                           .body = "",
                           .headers = headers(),
                           .timeout = request_.timeout,
                           .connect_timeout = request_.timeout};
  auto reply = send(request, false);
  // A kept connection that the server has just closed: a look may be repeated, while there is time.
  const bool again = !reply && reply.error().code == Code::Unavailable;
  if (again && within(request, deadline)) reply = send(request, false);
  return reply;
}

Result<Link::Reply> Link::post_tries(const std::string& path, const std::string& body,
                                     std::vector<std::string> headers, int tries, Settles settles) {
  net::HttpRequest request{.url = cat(base_, path),
                           .body = body,
                           .headers = std::move(headers),
                           .timeout = request_.timeout,
                           .connect_timeout = request_.timeout};
  const MonoTime deadline = clock_.mono() + request_.timeout;
  bool unknown = false;
  Result<Reply> reply = unavailable("not asked");
  for (int i = 0; i < tries; ++i) {
    reply = send(request, true);
    if (reply) {
      const Error told = reply->status == 200 ? Error{} : error_of(*reply);
      const bool unsaid = reply->status == 504 && told.code == Code::UnknownOutcome;
      unknown |= unsaid;
      if (!unsaid) break;
    } else {
      unknown |= reply.error().code == Code::UnknownOutcome;
    }
    if (!within(request, deadline)) break;
  }
  // What may have happened is not undone by a later refusal: a release that was done, and after
  // which another was granted the lease, is "lost" when it is asked for again.
  if (!reply && unknown) reply.error().code = Code::UnknownOutcome;
  if (reply && unknown && reply->status != 200 && !settles(reply->status)) {
    return Error{Code::UnknownOutcome,
                 cat("an answer of the server was lost, and asked again it says: ",
                     error_of(*reply).message, ". It may or may not have been done")};
  }
  return reply;
}

// No idempotency key goes along, so no leave is replayed; unless something in between gave it one.
// An old yes is no leave: what was decided for this request is not known.
Result<Link::Reply> Link::post(const std::string& path, const std::string& body, Again again) {
  auto reply = post_tries(path, body, headers(), again == Again::No ? 1 : kMostTries,
                          again == Again::Look ? all_settles : nothing_settles);
  const bool done = reply && reply->status == 200;
  if (done && again == Again::Leave && JsonFields(reply->json).flag("replayed")) {
    return Error{Code::UnknownOutcome,
                 cat("something at ", base_,
                     " answered with what was said to an earlier request: this one may or may not "
                     "have been done")};
  }
  return reply;
}

Result<Link::Reply> Link::post_claimed(const std::string& path, const std::string& body) {
  return post_tries(path, body, headers(), kMostTries, held_settles);
}

Result<Link::Reply> Link::post_once(const std::string& path, const std::string& body) {
  auto all = headers();
  all.push_back(cat("Idempotency-Key: ", request_.random->id_hex()));
  return post_tries(path, body, std::move(all), kMostTries, key_settles);
}

Result<std::unique_ptr<Watch>> Link::watch(const std::string& resource) {
  return watch_at("/v1/watch", {{"resource", resource}});
}

Result<std::unique_ptr<Watch>> Link::watch_at(const std::string& path, const Query& query) {
  const net::HttpRequest request{.url = url_of(path, query),
                                 .body = "",
                                 .headers = headers(),
                                 .timeout = request_.timeout,
                                 .connect_timeout = request_.timeout};
  auto watch = net::open_stream_watch(http_, request, {"changed", "changed"}, clock_);
  if (auto* stands = std::get_if<std::unique_ptr<Watch>>(&watch)) return std::move(*stands);
  const auto& outcome = std::get<net::HttpOutcome>(watch);
  if (!outcome) return unavailable(cat("the server at ", base_, ": ", outcome.failure->text));
  return error_of({outcome.answer.status, outcome.answer.body, {}});
}

}  // namespace stint::client
