#include "store/etcd/opening.h"

#include <array>

#include "base/text.h"
#include "os/files.h"
#include "store/etcd/wire.h"

namespace stint::store::etcd {
namespace {

constexpr std::uint16_t kDefaultPort = 2379;
constexpr std::string_view kDefaultRoot = "stint";

std::string option(const Address& address, const std::string& name) {
  const auto found = address.options.find(name);
  return found == address.options.end() ? std::string() : found->second;
}

Result<net::TlsFiles> tls_files(const Address& address, bool tls) {
  net::TlsFiles out{.authorities = option(address, "cacert"),
                    .certificate = option(address, "cert"),
                    .key = option(address, "key")};
  for (const auto& [name, file] :
       {std::pair<std::string_view, const std::string&>{"cacert", out.authorities},
        {"cert", out.certificate},
        {"key", out.key}}) {
    if (!address.options.contains(std::string(name))) continue;
    if (!tls) return invalid(cat("the store URL's option ", name, " needs tls=1"));
    if (auto content = os::read_file(file); !content) {
      return invalid(cat("the store URL's option ", name, ": ", content.error().message));
    }
  }
  if (out.certificate.empty() != out.key.empty()) {
    return invalid("the store URL's options cert and key go together");
  }
  return out;
}

Error not_ours(const Keys& keys, const OpenRequest& request) {
  return unavailable(cat("the keys under ", quoted(keys.all().from),
                         " in etcd are not Stint's; give the store a prefix of its own: ",
                         "etcd://HOSTS/PREFIX (it is ", request.address.printable, ")"));
}

Result<bool> check_format(const OpAnswer& format, const Keys& keys, const OpenRequest& request) {
  if (format.found.empty()) return false;
  const std::string& value = format.found.front().value;
  if (value == kFormat) return true;
  if (!value.starts_with("stint ")) return not_ours(keys, request);
  return unavailable(cat("this store is of layout ", quoted(value), ", this stint knows ",
                         quoted(kFormat), ": was it made by a newer one?"));
}

}  // namespace

Result<Settings> settings_of(const Address& address) {
  Settings out;
  const std::string tls = option(address, "tls");
  if (!tls.empty() && tls != "1" && tls != "0") {
    return invalid(cat("the store URL's option tls is 1 or 0, not ", quoted(tls)));
  }
  auto files = tls_files(address, tls == "1");
  if (!files) return files.error();
  out.tls = *files;
  std::string_view path = address.path;
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.size() > 256 || !is_utf8(path) || has_control(path)) {
    return invalid("the store URL's prefix is at most 256 bytes of UTF-8 in one line");
  }
  out.root = cat(path.empty() ? kDefaultRoot : path, '/');
  if (address.hosts.empty()) {
    return invalid("the store URL names no host (example: etcd://host1:2379,host2:2379)");
  }
  if (address.user.empty() && !address.password.empty()) {
    return invalid("the store URL has a password and no user");
  }
  for (const Host& host : address.hosts) {
    const bool v6 = host.name.find(':') != host.name.npos;
    out.gateway.members.push_back(cat(tls == "1" ? "https://" : "http://", v6 ? "[" : "", host.name,
                                      v6 ? "]" : "", ':',
                                      host.port == 0 ? kDefaultPort : host.port));
  }
  out.gateway.user = address.user;
  out.gateway.password = address.password;
  return out;
}

std::vector<Finding> ServerFacts::findings() const {
  if (warning.empty()) return {{Finding::Level::Ok, "version", "etcd " + version}};
  return {{Finding::Level::Warn, "version", "etcd " + version + ": " + warning}};
}

Result<ServerFacts> facts_of(std::string_view version) {
  const auto parts = split(version.substr(0, version.find('-')), '.');
  std::array<std::uint64_t, 3> number{};
  if (parts.size() != number.size()) return damaged("version");
  for (std::size_t i = 0; i < number.size(); ++i) {
    const auto digits = parse_digits(parts[i]);
    if (!digits) return damaged("version");
    number[i] = *digits;
  }
  if (number < std::array<std::uint64_t, 3>{3, 4, 0}) {
    return unavailable(cat("etcd ", printable(version), " is too old: 3.4 or newer is needed"));
  }
  ServerFacts out{.version = std::string(version), .warning = {}};
  const bool is_4 = number[0] == 3 && number[1] == 4;
  const bool old_4 = is_4 && number[2] < 31;
  const bool old_5 = number[0] == 3 && number[1] == 5 && number[2] < 13;
  if (old_4 || old_5) {
    out.warning = cat("etcd ", version, " can end leases early when its leader is stuck and ",
                      "replaced (etcd#15247): use 3.4.31, 3.5.13 or newer");
  }
  if (is_4) {
    out.warning += cat(out.warning.empty() ? "" : "; ", "etcd 3.4 ends leases late, by as much, ",
                       "when the leader's clock is set back (etcd#12291): use 3.5 or newer");
  }
  return out;
}

Result<ServerFacts> ask_facts(Gateway& gateway, const Deadline& deadline) {
  const Reply reply = gateway.ask("/version", "", deadline, Twice::Harmless);
  if (!reply) return *reply.error;
  const auto version = text_field(reply.body, "etcdserver");
  if (!version || version->empty()) return unavailable("this server is no etcd");
  return facts_of(*version);
}

Result<bool> find_or_make(const Keys& keys, Gateway& gateway, AppendLog& log,
                          const OpenRequest& request, const Deadline& deadline) {
  // Not there: only an empty place is taken, whoever else is making it now.
  Txn look;
  look.then(get(keys.format()));
  look.then(get(keys.log()));
  look.then(range({.keys = keys.all(), .count_only = true}));
  Txn make;
  make.compare(is_absent(keys.all()));
  make.then(put(keys.format(), kFormat));
  make.then(put(keys.log(), ""));
  for (int tries = 0; tries < 10; ++tries) {
    const Reply reply = gateway.ask("/v3/kv/txn", look.json(), deadline, Twice::Harmless);
    if (!reply) return *reply.error;
    auto seen = parse_txn(reply.body);
    if (!seen) return seen.error();
    if (seen->operations.size() != 3) return damaged("transaction");
    auto there = check_format(seen->operations[0], keys, request);
    if (!there) return there.error();
    if (*there) {
      if (auto ok = log.learn(seen->operations[1]); !ok) return ok.error();
      return tries > 0;
    }
    if (seen->operations[2].count != 0) return not_ours(keys, request);
    if (!request.may_create) {
      return unavailable("there is no Stint store at this place, and this client may not make one");
    }
    // Whether ours or another's made it is all the same.
    const Reply made = gateway.ask("/v3/kv/txn", make.json(), deadline, Twice::Harmless);
    if (!made) return *made.error;
  }
  return unavailable("the store's keys in etcd come and go while it is opened");
}

}  // namespace stint::store::etcd
