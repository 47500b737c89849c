#include "store/do/asker.h"

#include <algorithm>
#include <boost/json/parse.hpp>

#include "base/text.h"
#include "net/stream_watch.h"
#include "os/files.h"
#include "os/pause.h"
#include "store/do/wire.h"

namespace stint::store::durable {
namespace json = boost::json;
namespace {

constexpr std::string_view kDefaultName = "stint";
constexpr std::size_t kLongestName = 100;
constexpr std::uint16_t kDevelopmentPort = 8787;
constexpr int kMostTries = 3;
constexpr Millis kFirstPause{100};
constexpr std::size_t kMostConnections = 16;

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

bool good_name(std::string_view name) {
  return name.size() <= kLongestName && std::ranges::all_of(name, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

Result<std::string> base_of(const Address& address) {
  const bool plain = address.scheme == "do+http";
  if (address.hosts.size() != 1) {
    return invalid("the store URL names one host (example: do://stint.example.workers.dev)");
  }
  const Host& host = address.hosts.front();
  if (plain && !is_loopback(host.name)) {
    return invalid(
        "do+http: is for this machine alone; elsewhere others could read the secret: use do:");
  }
  std::string_view name = address.path;
  while (name.ends_with('/')) name.remove_suffix(1);
  if (name.empty()) name = kDefaultName;
  // "." and ".." would be taken for a way through the URL.
  if (!good_name(name) || name.starts_with('.')) {
    return invalid("the name in the store URL is letters, digits, '-', '_' and '.'");
  }
  const bool v6 = host.name.find(':') != host.name.npos;
  std::string out = cat(plain ? "http://" : "https://", v6 ? "[" : "", host.name, v6 ? "]" : "");
  const std::uint16_t port = host.port == 0 && plain ? kDevelopmentPort : host.port;
  if (port != 0) out += cat(':', port);
  return cat(out, "/v", kProtocol, "/", name);
}

std::string said_text(const json::object& from, std::string_view name) {
  const json::value* value = from.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

// By its status alone.
bool surely_refused(int status) {
  return (status >= 300 && status < 500 && status != 408) || status == 507;
}

}  // namespace

Result<Settings> settings_of(const OpenRequest& request) {
  const Address& address = request.address;
  if (!address.user.empty() || !address.password.empty()) {
    return invalid(
        "leave the secret out of the store URL, and give it by STINT_KEY or "
        "STINT_KEY_FILE");
  }
  if (has_control(request.key)) return invalid("STINT_KEY has a control character in it");
  auto base = base_of(address);
  if (!base) return base.error();
  Settings out;
  out.base = std::move(*base);
  out.key = request.key;
  out.name = address.printable;
  if (const auto file = address.options.find("cacert"); file != address.options.end()) {
    if (auto content = os::read_file(file->second); !content) {
      return invalid(cat("the store URL's option cacert: ", content.error().message));
    }
    out.tls.authorities = file->second;
  }
  out.proxies = address.scheme != "do+http";
  return out;
}

Asker::Asker(Settings settings, const Clock& clock)
    : settings_(std::move(settings)),
      clock_(clock),
      http_(net::make_http_client({.tls = settings_.tls,
                                   .most_connections = kMostConnections,
                                   .proxies = settings_.proxies},
                                  clock)) {}

Error Asker::fault(std::string_view why) const {
  return unavailable(cat(settings_.name, ": ", net::scrubbed(why, {settings_.key})));
}

net::HttpRequest Asker::request(std::string_view route, const std::string& body) const {
  net::HttpRequest out;
  out.url = cat(settings_.base, "/", route);
  out.body = body;
  out.headers = {"Content-Type: application/json"};
  if (!settings_.key.empty()) out.headers.push_back(cat("Authorization: Bearer ", settings_.key));
  return out;
}

Asker::Judged Asker::judge(const net::HttpOutcome& outcome, Twice twice) const {
  Judged out;
  if (!outcome) {
    out.error = fault(outcome.failure->text);
    out.error->code = net::code_of(*outcome.failure, twice);
    out.again = outcome.failure->kind == net::HttpFailure::Kind::MaybeSent &&
                twice == Twice::Harmless && !outcome.failure->time;
    return out;
  }
  const int status = outcome.answer.status;
  boost::system::error_code broken;
  json::value parsed = json::parse(outcome.answer.body, broken);
  const bool object = !broken && parsed.is_object();
  if (status == 200 && object) {
    out.body = std::move(parsed.get_object());
    return out;
  }
  return judge_refusal(status, object ? parsed.get_object() : json::object(), twice);
}

Asker::Judged Asker::judge_refusal(int status, const json::object& said, Twice twice) const {
  const std::string code = said_text(said, "code");
  const std::string words = said_text(said, "message");
  Judged out;
  out.error = fault(words.empty() ? cat("it answers with HTTP status ", status,
                                        ", and not as a store of Stint does")
                                  : words);
  if (!surely_refused(status)) {
    out.error->code = net::code_if_arrived(twice);
    out.again = twice == Twice::Harmless && status >= 500;
    return out;
  }
  out.again = status == 429;
  if (code == "protocol") {
    out.error = fault(cat(words, ", this stint protocol ", kProtocol,
                          ": deploy the packaging/worker of this stint"));
  } else if (status == 401 || status == 403) {
    out.error->code = Code::Denied;
    if (settings_.key.empty()) out.error->message += ": set STINT_KEY or STINT_KEY_FILE";
  } else if (code == "invalid") {
    out.error->code = Code::Invalid;
  }
  return out;
}

Result<json::object> Asker::ask(std::string_view route, const std::string& body,
                                const Deadline& deadline, Twice twice) const {
  net::HttpRequest one = request(route, body);
  Millis pause = kFirstPause;
  for (int tries = 1;; ++tries) {
    one.timeout = one.connect_timeout = deadline.left();
    Judged judged = judge(http_->send(one), twice);
    if (!judged.error) return std::move(judged.body);
    if (!judged.again || tries == kMostTries || deadline.left() <= pause) return *judged.error;
    os::pause_for(pause);
    pause *= 4;
  }
}

Result<std::unique_ptr<Watch>> Asker::watch(const std::string& body, Millis timeout) const {
  net::HttpRequest one = request("watch", body);
  one.timeout = one.connect_timeout = timeout;
  auto opened = net::open_stream_watch(http_, one, {"watching\n", "changed\n"}, clock_);
  if (auto* stands = std::get_if<std::unique_ptr<Watch>>(&opened)) return std::move(*stands);
  const Judged judged = judge(std::get<net::HttpOutcome>(opened), Twice::Harmless);
  return judged.error ? *judged.error : fault("it ended a watch at once");
}

}  // namespace stint::store::durable
