#include "tests/support/servers.h"

#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "tests/support/loopback.h"

namespace stint::test {
namespace {

constexpr Millis kProbe(1'000);
constexpr Millis kStopping(10'000);

std::string not_installed(std::string_view program, std::string_view package) {
  return cat(program, " is not installed: apt-get install ", package);
}

std::string big_endian(std::uint32_t number) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((number >> shift) & 0xFFU);
  return out;
}

std::string http_url(std::string_view host, std::uint16_t port) {
  return cat("http://", host, ':', port);
}

}  // namespace

Server::Server() : port_(free_port()) {}

int Server::polite_signal() const { return SIGTERM; }

Status Server::launch() {
  if (running()) return invalid("the server runs already");
  if (!prepared_) {
    if (auto ready = prepare(); !ready) return ready.error();
    prepared_ = true;
  }
  Command start = command();
  start.die_with_parent = true;
  start.env.insert(start.env.end(), environment_.begin(), environment_.end());
  child_ = std::make_unique<Child>(start);
  return {};
}

Status Server::wait_ready(Millis deadline) {
  const bool decided = wait_until([this] { return answers(kProbe) || !running(); }, deadline);
  if (decided && running()) return {};
  return unavailable(
      cat(running() ? "the server does not answer: " : "the server has ended: ", log()));
}

Status Server::start() {
  if (auto launched = launch(); !launched) return launched.error();
  return wait_ready();
}

Status Server::restart() {
  kill9();
  return start();
}

std::vector<pid_t> Server::processes() const {
  if (!child_ || child_->pid() <= 0) return {};
  // The parent first: it must not make more of them meanwhile.
  std::vector<pid_t> all = descendants(child_->pid());
  all.insert(all.begin(), child_->pid());
  return all;
}

void Server::kill9() {
  if (!running()) return;
  // So that none is started while they are counted; a stop takes a moment to arrive.
  child_->signal(SIGSTOP);
  wait_until([this] { return !alive(child_->pid()) || state_of(child_->pid()) == 'T'; });
  const std::vector<pid_t> all = processes();
  for (const pid_t pid : all) ::kill(pid, SIGKILL);
  child_->wait(kStopping);
  wait_until([&] { return std::ranges::none_of(all, alive); }, kStopping);
}

void Server::freeze() {
  if (!running()) return;
  child_->signal(SIGSTOP);
  wait_until([this] { return state_of(child_->pid()) == 'T'; });
  const std::vector<pid_t> all = processes();
  for (const pid_t pid : all) ::kill(pid, SIGSTOP);
  wait_until([&] {
    return std::ranges::all_of(all, [](pid_t pid) { return !alive(pid) || state_of(pid) == 'T'; });
  });
}

void Server::thaw() {
  for (const pid_t pid : processes()) ::kill(pid, SIGCONT);
}

void Server::stop() {
  if (!running()) return;
  thaw();
  child_->signal(polite_signal());
  if (!child_->wait(kStopping)) kill9();
}

std::string Server::log() const { return child_ ? child_->out() + child_->err() : std::string(); }

// ---- Redis

std::string RedisServer::missing() {
  return find_program("redis-server").empty() ? not_installed("redis-server", "redis-server") : "";
}

std::string RedisServer::url() const { return cat("redis://127.0.0.1:", port()); }

bool RedisServer::answers(Millis deadline) const {
  return ask(port(), "PING\r\n", 7, deadline).bytes == "+PONG\r\n";
}

Command RedisServer::command() const {
  std::vector<std::string> argv = {"redis-server",
                                   "--bind",
                                   "127.0.0.1",
                                   "--port",
                                   std::to_string(port()),
                                   "--dir",
                                   folder(),
                                   "--save",
                                   "",
                                   "--appendonly",
                                   options_.appendonly ? "yes" : "no",
                                   "--appendfsync",
                                   options_.appendfsync};
  argv.insert(argv.end(), options_.more.begin(), options_.more.end());
  return {.argv = std::move(argv)};
}

// ---- PostgreSQL

std::string PostgresServer::program(const std::string& name) {
  // Debian keeps the server's programs by version; the newest is taken.
  std::string found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/postgresql", error)) {
    const std::string candidate = (entry.path() / "bin" / name).string();
    if (!find_program(candidate).empty()) found = std::max(found, candidate);
  }
  return found.empty() ? find_program(name) : found;
}

std::string PostgresServer::missing() {
  return program("postgres").empty() ? not_installed("postgres", "postgresql-15") : "";
}

std::string PostgresServer::url() const {
  return cat("postgresql://postgres@127.0.0.1:", port(), "/postgres");
}

std::vector<std::string> PostgresServer::as_user(std::vector<std::string> argv) const {
  if (::geteuid() != 0) return argv;
  // A change of user forgets the wish to die with the parent; setpriv states it anew.
  const std::vector<std::string> prefix = {"setpriv",     "--reuid", "nobody",
                                           "--regid",     "nogroup", "--clear-groups",
                                           "--pdeathsig", "KILL",    "--"};
  argv.insert(argv.begin(), prefix.begin(), prefix.end());
  return argv;
}

Status PostgresServer::prepare() {
  if (::geteuid() == 0) {
    const passwd* nobody = ::getpwnam("nobody");
    if (nobody == nullptr || ::chown(folder().c_str(), nobody->pw_uid, nobody->pw_gid) != 0) {
      return unavailable("the folder cannot be given to the user nobody");
    }
  }
  const std::string data = cat("--pgdata=", folder(), "/data");
  std::vector<std::string> argv = {program("initdb"), data, "--auth=trust", "--username=postgres"};
  argv.insert(argv.end(), {"--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"});
  if (primary_ != 0) {
    argv = {program("pg_basebackup"), data, "--host=127.0.0.1", cat("--port=", primary_)};
    argv.insert(argv.end(), {"--username=postgres", "-R", "--checkpoint=fast", "--no-sync"});
  }
  const Finished made = run({.argv = as_user(argv), .cwd = folder()}, Millis(60'000));
  if (made.exit_code != 0) {
    return unavailable(cat(argv.front(), " failed: ", made.out, made.err));
  }
  return {};
}

Command PostgresServer::command() const {
  std::vector<std::string> argv = {program("postgres"), "-D", folder() + "/data"};
  const std::vector<std::string> fixed = {"listen_addresses=127.0.0.1", cat("port=", port()),
                                          cat("unix_socket_directories=", folder())};
  for (const auto* list : {&fixed, &settings_}) {
    for (const std::string& setting : *list) argv.insert(argv.end(), {"-c", setting});
  }
  return {.argv = as_user(std::move(argv)), .cwd = folder()};
}

// Immediate shutdown: as a crash for the data, but it gives back its shared memory.
int PostgresServer::polite_signal() const { return SIGQUIT; }

// A start-up packet: while it recovers it answers with an error, afterwards with an authentication.
bool PostgresServer::answers(Millis deadline) const {
  using namespace std::string_literals;
  constexpr std::uint32_t kProtocol = 196'608;
  const std::string body = big_endian(kProtocol) + "user\0postgres\0database\0postgres\0\0"s;
  const std::string packet = big_endian(static_cast<std::uint32_t>(body.size() + 4)) + body;
  return ask(port(), packet, 1, deadline).bytes.starts_with('R');
}

// ---- workerd

WorkerdServer::WorkerdServer() { with_environment({{"STINT_KEY", kSecret}}); }

std::string WorkerdServer::missing() {
  static const std::string why = [] {
    const Finished got = run({.argv = {program(), "--install"}}, Millis(300'000));
    return got.exit_code == 0 ? std::string()
                              : cat("workerd cannot be fetched from npm: ", got.out, got.err);
  }();
  return why;
}

std::string WorkerdServer::program() { return WORKER_FOLDER "/dev.sh"; }

std::string WorkerdServer::url() const { return cat("do+http://127.0.0.1:", port()); }

bool WorkerdServer::answers(Millis deadline) const {
  const Received got =
      ask(port(), "GET /v1/x/read HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 12, deadline);
  return got.bytes.find(" 401 ") != std::string::npos;
}

Command WorkerdServer::command() const {
  return {.argv = {program(), std::to_string(port()), folder()}};
}

// ---- etcd

EtcdNode::EtcdNode(std::string name, EtcdHome home)
    : name_(std::move(name)), home_(std::move(home)), peer_port_(free_port()) {}

std::string EtcdNode::url() const { return http_url(host(), port()); }
std::string EtcdNode::member() const { return cat(name_, '=', http_url(host(), peer_port_)); }

bool EtcdNode::answers(Millis deadline) const {
  const Received got = ask(port(), "GET /health HTTP/1.0\r\n\r\n", SIZE_MAX, deadline, host());
  return got.bytes.find(R"("health":"true")") != std::string::npos;
}

Command EtcdNode::command() const {
  const std::string client = url();
  const std::string peer = http_url(host(), peer_port_);
  std::vector<std::string> argv = {"etcd",
                                   "--name",
                                   name_,
                                   "--data-dir",
                                   folder() + "/data",
                                   "--listen-client-urls",
                                   client,
                                   "--advertise-client-urls",
                                   client,
                                   "--listen-peer-urls",
                                   peer,
                                   "--initial-advertise-peer-urls",
                                   peer,
                                   "--initial-cluster",
                                   members_.empty() ? member() : members_,
                                   "--initial-cluster-state",
                                   "new",
                                   "--logger",
                                   "zap",
                                   "--log-level",
                                   "warn"};
  argv.insert(argv.begin(), home_.enter.begin(), home_.enter.end());
  argv.insert(argv.end(), more_.begin(), more_.end());
  return {.argv = std::move(argv)};
}

EtcdCluster::EtcdCluster(const std::vector<EtcdHome>& homes) {
  std::string members;
  for (const EtcdHome& home : homes) {
    nodes_.push_back(std::make_unique<EtcdNode>(cat("s", nodes_.size() + 1), home));
    members += cat(members.empty() ? "" : ",", nodes_.back()->member());
  }
  for (const auto& node : nodes_) node->join(members);
}

std::string EtcdCluster::missing() {
  return find_program("etcd").empty() ? not_installed("etcd", "etcd-server") : "";
}

Status EtcdCluster::start() {
  for (const auto& node : nodes_) {
    if (auto launched = node->launch(); !launched) return launched.error();
  }
  for (const auto& node : nodes_) {
    if (auto ready = node->wait_ready(); !ready) return ready.error();
  }
  return {};
}

std::string EtcdCluster::hosts() const {
  std::string out;
  for (const auto& node : nodes_)
    out += cat(out.empty() ? "" : ",", node->host(), ':', node->port());
  return out;
}

std::string EtcdCluster::url() const {
  std::string out;
  for (const auto& node : nodes_) out += cat(out.empty() ? "" : ",", node->url());
  return out;
}

}  // namespace stint::test
