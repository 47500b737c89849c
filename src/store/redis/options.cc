#include "store/redis/options.h"

#include "base/text.h"

namespace stint::store::redis {
namespace {

constexpr std::uint64_t kMostDatabases = 1U << 16U;
constexpr std::uint64_t kMostReplicas = 100;
constexpr std::size_t kMostPrefix = 64;

std::string option(const Address& address, const std::string& name) {
  const auto found = address.options.find(name);
  return found == address.options.end() ? "" : found->second;
}

Status read_place(const Address& address, Options& out) {
  if (address.scheme == "redis+unix") {
    out.socket = address.path;
    out.user = option(address, "user");
    out.password = option(address, "password");
    return {};
  }
  if (address.hosts.size() > 1) {
    return invalid(
        "a redis URL names one host: clients that chose among several could use two masters at "
        "once");
  }
  out.host = address.hosts.empty() ? "127.0.0.1" : address.hosts.front().name;
  if (!address.hosts.empty() && address.hosts.front().port != 0) {
    out.port = address.hosts.front().port;
  }
  out.user = address.user;
  out.password = address.password;
  if (!out.user.empty() && out.password.empty()) {
    return invalid("the redis URL has a user without a password (redis://user:password@host)");
  }
  return {};
}

Status read_tls(const Address& address, Options& out) {
  out.tls = address.scheme == "rediss";
  out.certificates = {.host = out.host,
                      .cacert = option(address, "cacert"),
                      .cert = option(address, "cert"),
                      .key = option(address, "key")};
  if (out.certificates.cert.empty() != out.certificates.key.empty()) {
    return invalid("cert and key belong together: one of them is missing");
  }
  return {};
}

Status read_names(const Address& address, Options& out) {
  const bool unix_socket = address.scheme == "redis+unix";
  const std::string database = unix_socket ? option(address, "db") : address.path;
  if (!database.empty()) {
    const auto number = parse_digits(database);
    if (!number || *number >= kMostDatabases) {
      return invalid(cat("the database of a redis URL is a number: ", quoted(database)));
    }
    out.database = static_cast<std::uint32_t>(*number);
  }
  if (const auto found = address.options.find("prefix"); found != address.options.end()) {
    out.prefix = found->second;
    const bool plain = out.prefix.find_first_of("{}") == out.prefix.npos && is_utf8(out.prefix) &&
                       !has_control(out.prefix);
    if (out.prefix.empty() || out.prefix.size() > kMostPrefix || !plain) {
      return invalid(cat("prefix is 1 to ", kMostPrefix, " bytes of text without braces"));
    }
  }
  if (const auto found = address.options.find("wait"); found != address.options.end()) {
    const auto number = parse_digits(found->second);
    if (!number || *number == 0 || *number > kMostReplicas) {
      return invalid("wait is the number of replicas that must have a commit, 1 to 100");
    }
    out.wait = static_cast<std::uint32_t>(*number);
  }
  return {};
}

}  // namespace

std::string Options::where() const {
  if (host.empty()) return quoted(socket);
  return cat(host.find(':') == host.npos ? printable(host) : cat("[", printable(host), "]"), ":",
             port);
}

std::string Options::records_key() const { return cat("{", prefix, "}:records"); }
std::string Options::index_key() const { return cat("{", prefix, "}:keys"); }

// Pub/sub knows no databases: the number keeps two stores of one server apart.
std::string Options::channel(std::string_view key) const {
  return cat("{", prefix, "}@", database, ":", key);
}

Result<Options> read_options(const OpenRequest& request) {
  Options out;
  out.timeout = request.timeout;
  out.may_create = request.may_create;
  for (const auto read : {read_place, read_tls, read_names}) {
    if (auto ok = read(request.address, out); !ok) return ok.error();
  }
  return out;
}

}  // namespace stint::store::redis
