#include "net/postgres/settings.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace stint::net::postgres {
namespace {

// libpq's own options; app/store_url.cc knows the same names.
constexpr std::array<std::string_view, 9> kHandedOn = {
    "sslmode",         "sslrootcert", "sslcert",
    "sslkey",          "sslpassword", "passfile",
    "channel_binding", "gssencmode",  "target_session_attrs"};

Result<std::uint16_t> port_of(std::string_view text) {
  const auto port = parse_digits(text);
  if (port && *port > 0 && *port <= 65'535) return static_cast<std::uint16_t>(*port);
  return invalid(cat("the store URL has a port that is none: ", quoted(text)));
}

Result<Host> listen_host(std::string_view text) {
  Host host;
  std::size_t colon = text.rfind(':');
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    host.name = close == text.npos ? "" : std::string(text.substr(1, close - 1));
    colon = close == text.npos ? text.npos : text.find(':', close);
  } else {
    host.name = text.substr(0, colon);
  }
  if (host.name.empty()) return invalid("listen= needs HOST or HOST:PORT");
  if (colon == text.npos) return host;
  auto port = port_of(text.substr(colon + 1));
  if (!port) return port.error();
  host.port = *port;
  return host;
}

class Reader {
 public:
  explicit Reader(const Address& address) : address_(address) {}

  const std::string* option(const std::string& name) const {
    const auto found = address_.options.find(name);
    return found == address_.options.end() ? nullptr : &found->second;
  }

  Status hosts(Settings& out) const {
    out.hosts = address_.hosts;
    if (const std::string* host = option("host")) out.hosts = {{.name = *host, .port = 0}};
    if (out.hosts.empty()) out.hosts.emplace_back();
    if (const std::string* text = option("port")) {
      auto port = port_of(*text);
      if (!port) return port.error();
      for (Host& host : out.hosts) host.port = host.port == 0 ? *port : host.port;
    }
    if (const std::string* text = option("listen")) {
      auto host = listen_host(*text);
      if (!host) return host.error();
      out.listen = *host;
    }
    return {};
  }

  Status ours(Settings& out) const {
    out.schema_given = option("schema") != nullptr;
    out.schema = out.schema_given ? *option("schema") : "stint";
    if (!plain_name(out.schema)) {
      return invalid(cat("schema=", printable(out.schema),
                         " is no name for a schema: small letters, digits and _, at most 63"));
    }
    out.quoted_schema = cat('"', out.schema, '"');
    if (const std::string* text = option("pooler")) {
      if (*text != "0" && *text != "1") return invalid("pooler= is 0 or 1");
      out.pooler = *text == "1";
    }
    return {};
  }

  void for_libpq(Settings& out) const {
    const auto give = [&out](std::string_view name, std::string_view value) {
      if (!value.empty()) out.given.emplace_back(name, value);
    };
    give("user", address_.user);
    give("password", address_.password);
    give("dbname", address_.path);
    for (const std::string_view name : kHandedOn) {
      if (const std::string* value = option(std::string(name))) give(name, *value);
    }
    const std::string ms = std::to_string(out.timeout.count());
    const std::string seconds =
        std::to_string(std::max<std::int64_t>(1, out.timeout.count() / 1000));
    give("client_encoding", "UTF8");
    give("fallback_application_name", "stint");
    give("tcp_user_timeout", ms);
    give("keepalives_idle", seconds);
    give("keepalives_interval", seconds);
    give("keepalives_count", "3");
    out.secrets.push_back(address_.password);
    if (const std::string* value = option("sslpassword")) out.secrets.push_back(*value);
  }

 private:
  const Address& address_;
};

}  // namespace

bool plain_name(std::string_view name) {
  constexpr std::size_t kMostBytes = 63;  // NAMEDATALEN - 1
  if (name.empty() || name.size() > kMostBytes || name.starts_with("pg_")) return false;
  if (name.front() >= '0' && name.front() <= '9') return false;
  return std::ranges::all_of(
      name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

std::string Settings::scrubbed(std::string_view text) const {
  std::string out;
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view trimmed = trim(line);
    if (!trimmed.empty()) out += cat(out.empty() ? "" : "; ", trimmed);
  }
  for (const std::string& secret : secrets) {
    if (secret.empty()) continue;
    for (std::size_t at = out.find(secret); at != out.npos; at = out.find(secret, at + 3)) {
      out.replace(at, secret.size(), "***");
    }
  }
  return stint::printable(out);
}

std::string Settings::sql(std::string_view text) const {
  std::string out(text);
  for (std::size_t at = out.find("$S"); at != out.npos; at = out.find("$S", at)) {
    out.replace(at, 2, quoted_schema);
    at += quoted_schema.size();
  }
  return out;
}

Result<Settings> read_settings(const Address& address, Millis timeout) {
  Settings out;
  out.timeout = timeout;
  out.printable = address.printable;
  const Reader reader(address);
  if (auto ok = reader.hosts(out); !ok) return ok.error();
  if (auto ok = reader.ours(out); !ok) return ok.error();
  reader.for_libpq(out);
  return out;
}

}  // namespace stint::net::postgres
