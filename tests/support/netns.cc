#include "tests/support/netns.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "base/text.h"

namespace stint::test {
namespace {

Status done(const Finished& finished, std::string_view what) {
  if (finished.exit_code == 0) return {};
  return unavailable(cat(what, " failed: ", finished.out, finished.err));
}

// Networks of four addresses in the range that is set aside for tests of networks (RFC 2544), by
// process id: two tests at once take different ones.
std::string address(unsigned network, unsigned host) {
  const unsigned number = network * 4 + host;
  return cat("198.", 18 + (number >> 16U), '.', (number >> 8U) & 0xFFU, '.', number & 0xFFU);
}

std::string network_of(pid_t pid) {
  std::error_code error;
  return std::filesystem::read_symlink(cat("/proc/", pid, "/ns/net"), error).string();
}

}  // namespace

std::string NetworkNamespace::missing() {
  for (const char* program : {"ip", "nft", "nsenter", "unshare"}) {
    if (find_program(program).empty()) {
      return cat(program, " is not installed: apt-get install iproute2 nftables util-linux");
    }
  }
  NetworkNamespace tried;
  Status status = tried.status();
  if (status) status = tried.cut();
  if (!status) return cat("no network namespace can be had: ", status.error().message);
  return {};
}

NetworkNamespace::NetworkNamespace() {
  static std::atomic<unsigned> made = 0;
  const unsigned network = (static_cast<unsigned>(::getpid()) + 7919 * made++) % 32'768;
  here_ = address(network, 1);
  inside_ = address(network, 2);
  status_ = make();
}

Status NetworkNamespace::make() {
  keeper_ = std::make_unique<Child>(
      Command{.argv = {"unshare", "--net", "sleep", "100000"}, .die_with_parent = true});
  const bool apart = wait_until(
      [&] {
        const std::string theirs = network_of(keeper_->pid());
        return (!theirs.empty() && theirs != network_of(::getpid())) || !keeper_->running();
      },
      Millis(5'000));
  if (!apart || !keeper_->running()) {
    return unavailable(cat("unshare --net failed: ", keeper_->err()));
  }
  const std::string pid = std::to_string(keeper_->pid());
  // A name of an interface has at most 15 bytes.
  const std::string cable = cat("st", pid, "a");
  const std::string other = cat("st", pid, "b");
  const std::vector<std::vector<std::string>> outside = {
      {"ip", "link", "add", cable, "type", "veth", "peer", "name", other},
      {"ip", "link", "set", other, "netns", pid},
      {"ip", "address", "add", here_ + "/30", "dev", cable},
      {"ip", "link", "set", cable, "up"}};
  for (const auto& argv : outside) {
    if (auto ok = done(run({.argv = argv}), argv[0]); !ok) return ok;
  }
  const std::vector<std::vector<std::string>> within = {
      {"ip", "link", "set", "lo", "up"},
      {"ip", "address", "add", inside_ + "/30", "dev", other},
      {"ip", "link", "set", other, "up"}};
  for (const auto& argv : within) {
    if (auto ok = run_inside(argv); !ok) return ok;
  }
  return {};
}

std::vector<std::string> NetworkNamespace::enter() const {
  return {"nsenter", "--target", std::to_string(keeper_->pid()), "--net", "--"};
}

Status NetworkNamespace::run_inside(std::vector<std::string> argv, const std::string& input) const {
  const std::string what = argv.front();
  const std::vector<std::string> prefix = enter();
  argv.insert(argv.begin(), prefix.begin(), prefix.end());
  return done(run({.argv = std::move(argv), .stdin_text = input}), what);
}

Status NetworkNamespace::cut() {
  return run_inside({"nft", "-f", "-"},
                    "table inet cut {\n"
                    "  chain in { type filter hook input priority 0; iifname != lo drop; }\n"
                    "  chain out { type filter hook output priority 0; oifname != lo drop; }\n"
                    "}\n");
}

Status NetworkNamespace::cut_ports(const std::vector<std::uint16_t>& ports) {
  std::string set;
  for (const std::uint16_t port : ports) set += cat(set.empty() ? "{ " : ", ", port);
  set += " }";
  const std::string rules = cat("tcp dport ", set, " drop; tcp sport ", set, " drop; ");
  return run_inside(
      {"nft", "-f", "-"},
      cat("table inet cut {\n  chain in { type filter hook input priority 0; iifname lo accept; ",
          rules, "}\n  chain out { type filter hook output priority 0; oifname lo accept; ", rules,
          "}\n}\n"));
}

Status NetworkNamespace::heal() { return run_inside({"nft", "flush", "ruleset"}); }

}  // namespace stint::test
