#include "app/store_url.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/url_secret.h"
#include "os/files.h"

namespace stint::app {
namespace {

using Names = std::vector<std::string_view>;

// What every store takes.
const Names kCommonOptions = {"timeout", "generation", "keep_events"};

// Its own, then libpq's (net/postgres/settings.cc).
const Names kPostgresOptions = {"schema",      "listen",
                                "pooler",      "host",
                                "port",        "sslmode",
                                "sslrootcert", "sslcert",
                                "sslkey",      "sslpassword",
                                "passfile",    "channel_binding",
                                "gssencmode",  "target_session_attrs"};

enum class Form { Nothing, Path, Network };

struct Scheme {
  std::string_view name;
  std::string_view module;  // empty: part of the program
  Form form;
  std::string_view example;
  Names options;  // besides the common ones
};

const std::vector<Scheme>& schemes() {
  static const std::vector<Scheme> all = {
      {"sqlite", "", Form::Path, "sqlite:/path/stint.db", {}},
      {"dir", "", Form::Path, "dir:/mnt/shared/stint", {"poll", "view"}},
      {"log", "", Form::Path, "log:/var/lib/stint/store", {"segment_kb", "snapshot_kb"}},
      {"memory", "", Form::Nothing, "memory:", {}},
      {"postgres", "postgres", Form::Network, "postgres://user@host/database", kPostgresOptions},
      {"postgresql", "postgres", Form::Network, "postgresql://user@host/database",
       kPostgresOptions},
      {"redis", "redis", Form::Network, "redis://host:6379/0", {"prefix", "wait"}},
      {"rediss",
       "redis",
       Form::Network,
       "rediss://host:6379/0",
       {"prefix", "wait", "cacert", "cert", "key"}},
      {"redis+unix",
       "redis",
       Form::Path,
       "redis+unix:/run/redis.sock",
       {"prefix", "wait", "user", "password", "db"}},
      {"etcd",
       "etcd",
       Form::Network,
       "etcd://host1:2379,host2:2379",
       {"tls", "cacert", "cert", "key"}},
      {"do", "do", Form::Network, "do://stint.example.workers.dev", {"cacert"}},
      {"do+http", "do", Form::Network, "do+http://127.0.0.1:8787", {}},
      {"http", "http", Form::Network, "http://127.0.0.1:7878", {}},
      {"https", "http", Form::Network, "https://stint.example.org", {"cacert", "cert", "key"}},
  };
  return all;
}

std::string known_schemes() {
  std::string out;
  for (const Scheme& scheme : schemes()) {
    if (scheme.form == Form::Nothing) continue;
    out += cat(out.empty() ? "" : ", ", scheme.name, ":");
  }
  return out;
}

// Options that hold a secret.
bool secret(std::string_view option) { return option == "password" || option == "sslpassword"; }

Result<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const auto digit = [&](std::size_t at) -> int {
      if (at >= text.size()) return -1;
      const char c = text[at];
      if (c >= '0' && c <= '9') return c - '0';
      if (c >= 'a' && c <= 'f') return c - 'a' + 10;
      if (c >= 'A' && c <= 'F') return c - 'A' + 10;
      return -1;
    };
    const int byte = digit(i + 1) < 0 || digit(i + 2) < 0 ? 0 : digit(i + 1) * 16 + digit(i + 2);
    if (byte == 0) return invalid("the store URL has a % that no two hexadecimal digits follow");
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

Result<store::Host> parse_host(std::string_view text) {
  store::Host host;
  std::size_t colon = text.rfind(':');
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == text.npos) return invalid("the store URL has a [ without its ]");
    host.name = text.substr(1, close - 1);
    colon = text.find(':', close);
  } else {
    host.name = text.substr(0, colon);
  }
  if (colon != text.npos) {
    const auto port = parse_digits(text.substr(colon + 1));
    if (!port || *port == 0 || *port > 65'535) {
      // It may be a password whose '@' and host were left out.
      return invalid(
          cat("the store URL has a port that is none, after ", quoted(text.substr(0, colon + 1))));
    }
    host.port = static_cast<std::uint16_t>(*port);
  }
  if (host.name.empty()) return invalid("the store URL names no host");
  return host;
}

// "//user:PASSWORD@host:port,host:port/path"
Status parse_network(std::string_view rest, StoreUrl& url) {
  if (!rest.starts_with("//")) {
    // Without them nobody can tell what of it is a password.
    return invalid(cat("this is not a store URL: // is missing after ", url.scheme, ":"));
  }
  rest.remove_prefix(2);
  const std::size_t slash = rest.find('/');
  std::string_view authority = rest.substr(0, slash);
  if (slash != rest.npos) {
    auto path = percent_decoded(rest.substr(slash + 1));
    if (!path) return path.error();
    url.path = *path;
  }
  if (const std::size_t at = authority.rfind('@'); at != authority.npos) {
    const std::string_view login = authority.substr(0, at);
    const std::size_t colon = login.find(':');
    auto user = percent_decoded(login.substr(0, colon));
    if (!user) return user.error();
    url.user = *user;
    if (colon != login.npos) {
      auto password = percent_decoded(login.substr(colon + 1));
      if (!password) return password.error();
      url.password = *password;
    }
    authority.remove_prefix(at + 1);
  }
  if (authority.empty()) return {};
  for (const std::string_view text : split(authority, ',')) {
    auto host = parse_host(text);
    if (!host) return host.error();
    url.hosts.push_back(*host);
  }
  return {};
}

Status parse_options(std::string_view text, const Scheme& scheme, StoreUrl& url) {
  for (const std::string_view pair : split(text, '&')) {
    const std::size_t equals = pair.find('=');
    const std::string_view name = pair.substr(0, equals);
    const bool known = std::ranges::find(kCommonOptions, name) != kCommonOptions.end() ||
                       std::ranges::find(scheme.options, name) != scheme.options.end();
    if (equals == pair.npos || !known) {
      std::string names;
      for (const Names& some : {kCommonOptions, scheme.options}) {
        for (const std::string_view one : some) names += cat(names.empty() ? "" : ", ", one);
      }
      return invalid(
          cat("the store URL has an unknown option ", quoted(name), " (known: ", names, ")"));
    }
    auto value = percent_decoded(pair.substr(equals + 1));
    if (!value) return value.error();
    url.options[std::string(name)] = *value;
    url.has_password |= secret(name);
  }
  return {};
}

// The URL without its secrets; works on any text, also on one that is no URL.
std::string without_secrets(std::string_view text) {
  if (const auto raw = raw_password(text)) {
    const bool no_user = text.substr(0, raw->from).ends_with("//");
    return cat(text.substr(0, raw->from), text.substr(raw->to + (no_user ? 1 : 0)));
  }
  std::string out;
  std::size_t end = text.find('?');
  std::string_view front = text.substr(0, end);
  if (const std::size_t start = front.find("://"); start != front.npos) {
    const std::size_t slash = front.find('/', start + 3);
    const std::string_view authority = front.substr(start + 3, slash - start - 3);
    const std::size_t at = authority.rfind('@');
    const std::size_t colon = authority.find(':');
    if (at != authority.npos && colon != authority.npos && colon + 1 < at) {
      // Without a user nothing stands before the '@': it goes along.
      out = cat(front.substr(0, start + 3 + colon),
                front.substr(start + 3 + (colon == 0 ? at + 1 : at)));
    }
  }
  if (out.empty()) out = front;
  if (end == text.npos) return out;
  char separator = '?';
  for (const std::string_view pair : split(text.substr(end + 1), '&')) {
    if (secret(pair.substr(0, pair.find('=')))) continue;
    out += separator;
    out += pair;
    separator = '&';
  }
  return out;
}

}  // namespace

namespace {

// scheme:path becomes scheme:/absolute/path; what has hosts stays as it is.
std::string with_path(const StoreUrl& url, const std::string& text) {
  const auto scheme = std::ranges::find(schemes(), url.scheme, &Scheme::name);
  if (scheme == schemes().end() || scheme->form != Form::Path) return text;
  const std::size_t question = text.find('?');
  return cat(url.scheme, ":", url.path, question == text.npos ? "" : text.substr(question));
}

}  // namespace

std::string StoreUrl::absolute() const { return with_path(*this, whole); }
std::string StoreUrl::absolute_printable() const { return with_path(*this, printable); }

namespace {

// What means the same said or not.
struct Usual {
  std::string_view scheme;
  std::string_view called;  // as what it is known
  std::uint16_t port;
  std::string_view path;
};
constexpr std::array<Usual, 9> kUsual = {{{"postgres", "postgres", 5432, ""},
                                          {"postgresql", "postgres", 5432, ""},
                                          {"redis", "redis", 6379, "0"},
                                          {"rediss", "rediss", 6379, "0"},
                                          {"etcd", "etcd", 2379, ""},
                                          {"do", "do", 443, "stint"},
                                          {"do+http", "do+http", 8787, "stint"},
                                          {"http", "http", 80, ""},
                                          {"https", "https", 443, ""}}};

bool is_usual(std::string_view option, std::string_view value) {
  return (option == "port" && value == "5432") || (option == "schema" && value == "stint") ||
         (option == "db" && value == "0");
}

}  // namespace

std::string StoreUrl::identity() const {
  // Two stores in one place differ in these.
  std::string within;
  for (const char* name : {"prefix", "db", "schema", "host", "port"}) {
    const auto found = options.find(name);
    if (found == options.end() || is_usual(name, found->second)) continue;
    within += cat("?", name, "=", found->second);
  }
  const auto usual = std::ranges::find(kUsual, scheme, &Usual::scheme);
  if (usual == kUsual.end()) return cat(scheme, ":", path, within);
  std::string out = cat(usual->called, "://");
  for (const store::Host& host : hosts) {
    const std::uint16_t port = host.port == usual->port ? std::uint16_t{0} : host.port;
    out += cat(&host == hosts.data() ? "" : ",", host.name, ":", port);
  }
  return cat(out, "/", path == usual->path ? "" : path, within);
}

Result<StoreUrl> parse_store_url(std::string_view text) {
  StoreUrl url;
  url.whole = text;
  url.printable = without_secrets(text);
  if (raw_password(text)) {
    return invalid(cat(quoted(url.printable),
                       ": the password of this store URL has a '/', a '?' or a '#' in it; write "
                       "%2F, %3F, %23 instead"));
  }
  const std::size_t colon = text.find(':');
  if (colon == text.npos || colon == 0) {
    return invalid(
        cat(quoted(url.printable), " is not a store URL (example: sqlite:/path/stint.db)"));
  }
  url.scheme = text.substr(0, colon);
  const auto scheme = std::ranges::find(schemes(), url.scheme, &Scheme::name);
  if (scheme == schemes().end()) {
    return invalid(cat("stores of kind ", quoted(url.scheme),
                       " are not known to this stint; known: ", known_schemes()));
  }
  std::string_view rest = text.substr(colon + 1);
  if (const std::size_t question = rest.find('?'); question != rest.npos) {
    if (auto ok = parse_options(rest.substr(question + 1), *scheme, url); !ok) return ok.error();
    rest = rest.substr(0, question);
  }
  url.module = scheme->module;
  switch (scheme->form) {
    case Form::Nothing: break;
    case Form::Path:
      if (rest.empty()) {
        return invalid(cat(url.scheme, ": needs a path (example: ", scheme->example, ")"));
      }
      url.path = os::without_detours(os::absolute(std::string(rest)));
      break;
    case Form::Network: {
      if (auto ok = parse_network(rest, url); !ok) return ok.error();
      url.has_password |= !url.password.empty();
      break;
    }
  }
  return url;
}

}  // namespace stint::app
