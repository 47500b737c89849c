#include "server/gatekeeper.h"

#include <algorithm>

#include "base/text.h"
#include "server/answers.h"

namespace stint::server {
namespace {

Answer refused(std::string message) {
  Answer out = error_answer(401, {Code::Denied, std::move(message)});
  out.fields.push_back({"WWW-Authenticate", "Bearer"});
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

bool is_port(std::string_view text) {
  return text.empty() || (text.front() == ':' && parse_digits(text.substr(1)).has_value());
}

// 127.0.0.0/8
bool is_loopback_address(std::string_view text) {
  const auto parts = split(text, '.');
  if (parts.size() != 4 || parts.front() != "127") return false;
  return std::ranges::all_of(parts, [](std::string_view part) {
    const auto number = parse_digits(part);
    return number && *number <= 255;
  });
}

// A name that leads to this machine wherever it is asked for; "localhost:7878".
bool names_this_machine(std::string_view host) {
  if (host.starts_with("[::1]")) return is_port(host.substr(5));
  const std::string_view name = host.substr(0, host.find(':'));
  if (!is_port(host.substr(name.size()))) return false;
  return lower(name) == "localhost" || is_loopback_address(name);
}

// Where no key is asked for, the browser of whoever works on this machine could be made to ask: by
// a page of another place, or of a name that is made to lead here (DNS rebinding). A browser always
// says whose page it is; a program says nothing of the kind. Empty: nothing is wrong.
std::string foreign(const net::http::RequestHead& head) {
  const auto host = head.fields.first("Host");
  if (host && !names_this_machine(*host)) {
    return cat("without keys this server is asked as localhost, 127.0.0.1 or [::1], not as ",
               quoted(*host), ": with a key (stint key create) any name is served");
  }
  for (const std::string_view origin : head.fields.all("Origin")) {
    const std::string here = lower(host.value_or(""));
    const std::string shown = lower(origin);
    if (shown != cat("http://", here) && shown != cat("https://", here)) {
      return cat("without keys no page of another place is served, and this one is of ",
                 quoted(origin));
    }
  }
  for (const std::string_view site : head.fields.all("Sec-Fetch-Site")) {
    if (site != "same-origin" && site != "none") {
      return "without keys no page of another place is served";
    }
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const Gatekeeper::Table>> Gatekeeper::read() const {
  auto out = std::make_shared<Table>();
  if (serve_.backend.keys == nullptr) return std::shared_ptr<const Table>(out);
  auto keys = serve_.backend.keys->list();
  if (!keys) return keys.error();
  for (api::Key& key : *keys) {
    const std::string id = key.id;
    out->emplace(id, std::make_shared<const api::Key>(std::move(key)));
  }
  return std::shared_ptr<const Table>(out);
}

std::variant<Caller, net::http::Answer> Gatekeeper::admit(
    const net::http::RequestHead& head) const {
  const auto keys = known();
  if (!asks(*keys)) {
    std::string wrong = foreign(head);
    if (wrong.empty()) return Caller{};
    return error_answer(403, {Code::Denied, std::move(wrong)});
  }
  const auto shown = head.fields.first("Authorization");
  constexpr std::string_view kScheme = "Bearer ";
  if (head.fields.count("Authorization") != 1 || !shown->starts_with(kScheme)) {
    return refused(
        "this server needs a key: send 'Authorization: Bearer KEY' (stint takes it from STINT_KEY "
        "or STINT_KEY_FILE)");
  }
  const std::string_view bearer = shown->substr(kScheme.size());
  const auto parsed = api::parse_shown_key(bearer);
  const auto found = parsed ? keys->find(parsed->id) : keys->end();
  // One answer for all that is wrong with it: nothing is learnt by guessing.
  if (found == keys->end() || !api::is_secret_of(*found->second, parsed->secret)) {
    return refused("this key is not known here");
  }
  if (std::string why = over(*found->second); !why.empty()) return refused(std::move(why));
  return Caller{found->second, bearer};
}

std::string Gatekeeper::over(const api::Key& key) const {
  if (key.revoked_at) return cat("the key ", quoted(key.name), " was revoked");
  if (key.expires_at && *key.expires_at <= clock_.wall()) {
    return cat("the key ", quoted(key.name), " has expired: ask for a new one");
  }
  return {};
}

std::optional<net::http::Answer> Gatekeeper::turn_out(const Caller& caller) const {
  const auto keys = known();
  if (!asks(*keys)) return std::nullopt;
  if (!caller.key) return refused("this server needs a key since the first one was made");
  const auto found = keys->find(caller.key->id);
  if (found == keys->end()) return refused("this key is not known here");
  std::string why = over(*found->second);
  if (why.empty()) return std::nullopt;
  return refused(std::move(why));
}

bool Gatekeeper::within_rate(const Caller& caller) {
  const auto rate = static_cast<double>(serve_.limits.rate);
  if (serve_.limits.rate == 0 || !caller.key) return true;
  const MonoTime now = clock_.mono();
  const MutexLock lock(mutex_);
  Bucket& bucket = buckets_[caller.key->id];
  if (bucket.at == MonoTime{}) bucket.left = rate;
  bucket.left =
      std::min(rate, bucket.left + std::chrono::duration<double>(now - bucket.at).count() * rate);
  bucket.at = now;
  if (bucket.left < 1) return false;
  bucket.left -= 1;
  return true;
}

}  // namespace stint::server
