#include "app/torture_net.h"

#include "base/text.h"

namespace stint::app {
namespace {

// Zero: not a server's, or not by plain TCP.
std::uint16_t plain_port(const StoreUrl& url) {
  const auto option = [&](const char* name) {
    const auto found = url.options.find(name);
    return found == url.options.end() ? std::string() : found->second;
  };
  if (url.scheme == "redis") return 6379;
  if (url.scheme == "do+http") return 8787;
  if (url.scheme == "etcd") return option("tls").empty() && option("cacert").empty() ? 2379 : 0;
  const bool postgres = url.scheme == "postgres" || url.scheme == "postgresql";
  const bool plain = option("host").empty() && option("port").empty() && option("listen").empty() &&
                     !option("sslmode").starts_with("verify");
  return postgres && plain ? 5432 : 0;
}

std::string with_hosts(const std::string& whole, const std::string& hosts) {
  const std::size_t begin = whole.find("//") + 2;
  const std::size_t end = std::min(whole.find_first_of("/?", begin), whole.size());
  const std::size_t at = whole.substr(begin, end - begin).rfind('@');
  const std::size_t from = at == std::string::npos ? begin : begin + at + 1;
  return cat(whole.substr(0, from), hosts, whole.substr(end));
}

}  // namespace

Result<std::optional<TortureNet>> TortureNet::start(const StoreUrl& url) {
  using Answer = std::optional<TortureNet>;
  const std::uint16_t usual = plain_port(url);
  if (usual == 0 || url.hosts.empty()) return Answer();
  TortureNet net;
  std::string hosts;
  for (const store::Host& host : url.hosts) {
    auto proxy = os::TcpProxy::start(host.name, host.port == 0 ? usual : host.port);
    if (!proxy) return proxy.error();
    hosts += cat(hosts.empty() ? "" : ",", "127.0.0.1:", (*proxy)->port());
    net.proxies_.push_back(std::move(*proxy));
  }
  net.url_ = with_hosts(url.whole, hosts);
  return Answer(std::move(net));
}

void TortureNet::strike(Random& random) {
  os::TcpProxy& proxy = *proxies_[random.below(proxies_.size())];
  const std::uint64_t dice = random.below(8);
  if (dice == 0) {
    proxy.cut();
    ++cuts_;
  } else if (dice < 3) {
    proxy.cut_one_request_after(0);
    ++requests_;
  } else {
    proxy.cut_one_reply_after(0);
  }
}

TortureNet::Struck TortureNet::struck() const {
  Struck out{.answers = 0, .requests = requests_, .cuts = cuts_};
  for (const auto& proxy : proxies_) {
    out.answers += static_cast<std::uint64_t>(proxy->counts().dropped_replies);
  }
  return out;
}

void TortureNet::forward() {
  for (const auto& proxy : proxies_) proxy->forward();
}

}  // namespace stint::app
