#include "store/etcd/gateway.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/text.h"
#include "os/pause.h"
#include "store/etcd/wire.h"

namespace stint::store::etcd {
namespace json = boost::json;
namespace {

// One member may use this much of the time before the next is asked.
constexpr Millis kLeastShare{500};
constexpr Millis kPauseBetweenRounds{50};

// gRPC's numbers.
enum Grpc {
  kInvalidArgument = 3,
  kNotFound = 5,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kUnavailable = 14,
  kUnauthenticated = 16,
};

bool says(std::string_view text, std::string_view words) { return text.find(words) != text.npos; }

// Refused before anything was proposed to the cluster, or by every member alike when it was
// applied. (Not so "space exceeded": whoever commits looks for himself.) All else ("request timed
// out", "leader changed", "stopped" ...) may have happened.
bool surely_refused(std::int64_t code, std::string_view text) {
  switch (code) {
    case kInvalidArgument:
    case kNotFound:
    case kPermissionDenied:
    case kOutOfRange:
    case kUnimplemented:
    case kUnauthenticated: return true;
    case kResourceExhausted: return says(text, "too many requests") || says(text, "space exceeded");
    case kFailedPrecondition: return says(text, "authentication");
    default: return false;
  }
}

}  // namespace

Gateway::Gateway(GatewayOptions options, net::HttpClient& http, const Clock& clock)
    : options_(std::move(options)), http_(http), clock_(clock) {}

std::string Gateway::scrubbed(std::string_view text) {
  const MutexLock lock(mutex_);
  return net::scrubbed(text, {options_.password, token_});
}

Error Gateway::unreachable(std::size_t member, std::string_view why) {
  return unavailable(cat("etcd at ", options_.members[member], ": ", scrubbed(why)));
}

net::HttpRequest Gateway::request(std::size_t member, std::string_view path,
                                  const std::string& body, const std::string& token) const {
  net::HttpRequest out;
  out.url = cat(options_.members[member], path);
  out.body = body;
  out.headers = {"Content-Type: application/json"};
  if (!token.empty()) out.headers.push_back(cat("Authorization: ", token));
  return out;
}

bool Gateway::judge(const net::HttpOutcome& outcome, Twice twice, std::size_t member,
                    Reply& reply) {
  if (!outcome) {
    const std::string& text = outcome.failure->text;
    // What a TLS server does with a request that it cannot read.
    const bool maybe_tls =
        says(text, "Empty reply") && !options_.members[member].starts_with("https");
    reply.error = unreachable(
        member, maybe_tls ? cat(text, " (if it speaks TLS, add tls=1 to the store URL)") : text);
    reply.error->code = net::code_of(*outcome.failure, twice);
    return net::may_repeat(*outcome.failure, twice);
  }
  const int status = outcome.answer.status;
  boost::system::error_code broken;
  json::value parsed = json::parse(outcome.answer.body, broken);
  const bool object = !broken && parsed.is_object();
  if (status == 200 && object) {
    reply.body = std::move(parsed.get_object());
    return false;
  }
  if (object) return judge_refusal(parsed.get_object(), twice, member, reply);
  const bool wants_tls = says(outcome.answer.body, "HTTP request to an HTTPS server");
  reply.error =
      unreachable(member, wants_tls ? std::string("it speaks TLS: add tls=1 to the store URL")
                                    : cat("it answers with HTTP status ", status,
                                          ", and not as an etcd with a JSON gateway does"));
  // These are refusals; any other status may come from something in between.
  const bool refused = status == 400 || status == 403 || status == 404 || status == 405;
  if (!refused) reply.error->code = net::code_if_arrived(twice);
  return false;
}

bool Gateway::judge_refusal(const json::object& said, Twice twice, std::size_t member,
                            Reply& reply) {
  const auto code = number_field(said, "code");
  const auto text = text_field(said, "message");
  const std::string words = text ? *text : std::string();
  reply.error = unreachable(member, words.empty() ? "an error without words" : words);
  if (!code || !surely_refused(*code, words)) {
    reply.error->code = net::code_if_arrived(twice);
    return twice == Twice::Harmless;
  }
  reply.refusal = says(words, "lease not found")  ? Refusal::LeaseNotFound
                  : says(words, "space exceeded") ? Refusal::NoSpace
                                                  : Refusal::Other;
  const bool denied = *code == kPermissionDenied || *code == kUnauthenticated ||
                      says(words, "user name is empty") || says(words, "authentication");
  if (denied) reply.error->code = Code::Denied;
  reply.stale_token = *code == kUnauthenticated || says(words, "revision of auth store is old");
  return false;
}

void Gateway::move_on(std::size_t from) {
  std::size_t expected = from;
  member_.compare_exchange_strong(expected, (from + 1) % options_.members.size());
}

Reply Gateway::ask_members(std::string_view path, const std::string& body, const Deadline& deadline,
                           Twice twice, const std::string& token) {
  const std::size_t members = options_.members.size();
  bool anybody = false;  // answered in this round, or at least took the connection
  for (std::size_t tries = 1;; ++tries) {
    const std::size_t member = member_;
    net::HttpRequest one = request(member, path, body, token);
    const Millis left = deadline.left();
    const Millis share =
        std::min(left, std::max(kLeastShare, left / static_cast<Millis::rep>(members)));
    // What must not happen twice is waited for as long as there is time.
    one.timeout = twice == Twice::Harmless ? share : left;
    one.connect_timeout = share;
    // A member that lost its cluster says so at once instead of letting us wait.
    if (twice == Twice::Harmless) one.headers.emplace_back("Grpc-Metadata-hasleader: true");
    const net::HttpOutcome outcome = http_.send(one);
    Reply reply;
    const bool ask_another = judge(outcome, twice, member, reply);
    if (reply) return reply;
    if (ask_another || reply.error->code == Code::UnknownOutcome) move_on(member);
    if (!ask_another || deadline.left() <= kPauseBetweenRounds) return reply;
    anybody |= outcome || outcome.failure->time;
    if (tries % members != 0) continue;
    // All were asked. If somebody is there, the cluster may be choosing a leader.
    if (!anybody) return reply;
    anybody = false;
    os::pause_for(kPauseBetweenRounds);
  }
}

Reply Gateway::ask(std::string_view path, const std::string& body, const Deadline& deadline,
                   Twice twice) {
  constexpr int kMostLogins = 3;
  for (int i = 1;; ++i) {
    auto login = token(deadline);
    if (!login) return {.body = {}, .error = login.error()};
    Reply reply = ask_members(path, body, deadline, twice, *login);
    if (!reply.stale_token || options_.user.empty() || i == kMostLogins) return reply;
    forget_token(*login);
  }
}

Result<std::string> Gateway::token(const Deadline& deadline) {
  if (options_.user.empty()) return std::string();
  {
    const MutexLock lock(mutex_);
    if (!token_.empty()) return token_;
  }
  return log_in(deadline);
}

void Gateway::forget_token(const std::string& used) {
  const MutexLock lock(mutex_);
  if (token_ == used) token_.clear();
}

Result<std::string> Gateway::log_in(const Deadline& deadline) {
  const json::object login = {{"name", options_.user}, {"password", options_.password}};
  Reply reply =
      ask_members("/v3/auth/authenticate", json::serialize(login), deadline, Twice::Harmless, "");
  if (!reply) return std::move(*reply.error);
  auto token = text_field(reply.body, "token");
  const bool good = token && !token->empty() && token->size() < 4096 && !has_control(*token);
  if (!good) return damaged("token");
  const MutexLock lock(mutex_);
  token_ = *token;
  return token_;
}

Result<net::HttpRequest> Gateway::stream_request(std::string_view path, const std::string& body,
                                                 const Deadline& deadline) {
  auto login = token(deadline);
  if (!login) return login.error();
  net::HttpRequest out = request(member_, path, body, *login);
  out.headers.emplace_back("Grpc-Metadata-hasleader: true");
  out.connect_timeout =
      std::max(kLeastShare, deadline.left() / static_cast<Millis::rep>(options_.members.size()));
  return out;
}

void Gateway::stream_failed() {
  move_on(member_);
  const MutexLock lock(mutex_);
  token_.clear();
}

}  // namespace stint::store::etcd
