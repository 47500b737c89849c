// `stint run` against what people use in its place on the same server: `etcdctl lock`, a script of
// redis-cli, an advisory lock by psql. Only the first of them minds what becomes of its lock while
// the command runs, and none gives a token that grows; so there is no goal, only the price.
#include <cstdio>

#include "base/check.h"
#include "base/text.h"
#include "bench/bench.h"
#include "tests/support/servers.h"

namespace stint::bench {
namespace {

struct Peer {
  std::string name;  // of the store
  std::string what;  // they do
  std::string url;
  std::vector<std::string> command;
};

bool line(const std::string& stint, const Peer& peer) {
  const test::TempDir dir;
  Comparison line{
      cat(peer.name, ": stint run r -- true"), "ms", cat(peer.what, ", ms"), {}, {}, Goal::None, 0};
  return print(commands_in_turn({.line = std::move(line),
                                 .ours = {stint, "--store", peer.url, "run", "r", "--", "true"},
                                 .theirs = peer.command,
                                 .state = dir.path(),
                                 .runs = 40}));
}

// Sets a value of its own if there is none, and takes it away if it is still its own.
std::string redis_script(const test::RedisServer& server) {
  const std::string client = cat("redis-cli -p ", server.port());
  return cat("[ \"$(", client, " SET lock $$ NX PX 90000)\" = OK ] && true && ", client,
             " EVAL \"if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1])"
             " end return 0\" 1 lock $$ >/dev/null");
}

bool etcd_line(const std::string& stint) {
  test::EtcdCluster server(1);
  CHECK(server.start(), "etcd does not start");
  return line(stint, {"etcd",
                      "etcdctl lock r true",
                      cat("etcd://", server.hosts()),
                      {"/usr/bin/env", "ETCDCTL_API=3", "etcdctl", "--endpoints", server.hosts(),
                       "lock", "r", "true"}});
}

bool redis_line(const std::string& stint) {
  test::RedisServer server;
  CHECK(server.start(), "Redis does not start");
  return line(
      stint,
      {"redis", "a script of redis-cli", server.url(), {"/bin/sh", "-c", redis_script(server)}});
}

bool postgres_line(const std::string& stint) {
  test::PostgresServer server;
  CHECK(server.start(), "PostgreSQL does not start");
  const std::string to =
      cat("host=127.0.0.1 port=", server.port(), " user=postgres dbname=postgres");
  return line(stint, {"postgres",
                      "psql: an advisory lock",
                      server.url(),
                      {test::PostgresServer::program("psql"), "-qAt", "-o", "/dev/null", "-d", to,
                       "-c", "SELECT pg_advisory_lock(1)", "-c", "\\! true"}});
}

int run(const std::string& stint) {
  print_header();
  bool fine = etcd_line(stint);
  fine &= redis_line(stint);
  fine &= postgres_line(stint);
  return fine ? 0 : 1;
}

}  // namespace
}  // namespace stint::bench

int main(int count, char** words) {
  return stint::bench::run(count > 1 ? words[1] : "build/stint");
}
