// Real servers for tests: on loopback, on a free port, in a temporary folder that goes with them.
//
//   if (const std::string why = RedisServer::missing(); !why.empty()) GTEST_SKIP() << why;
//   RedisServer redis;
//   ASSERT_TRUE(redis.start());
//   redis.kill9();              // as a crash: nothing is flushed or said
//   ASSERT_TRUE(redis.start()); // same port, same data
//
// Each object belongs to one thread, and must be started by the thread that keeps it: a server dies
// with that thread, so that a killed test leaves none behind.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tests/support/process.h"

namespace stint::test {

class Server {
 public:
  Server();
  virtual ~Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const { return port_; }
  virtual std::string url() const = 0;
  const std::string& folder() const { return folder_.path(); }

  // For the server alone, not for what prepares its folder; from the next start on.
  using Environment = std::vector<std::pair<std::string, std::optional<std::string>>>;
  void with_environment(Environment more) { environment_ = std::move(more); }

  // Returns when it answers. Also after kill9() and stop(): on the same port, with what the disk
  // has.
  Status start();
  // Starts without waiting for the answer: for a node that needs others.
  Status launch();
  Status wait_ready(Millis deadline = Millis(30'000));
  bool running() { return child_ && child_->running(); }
  // Asks it something only a healthy server answers.
  virtual bool answers(Millis deadline) const = 0;

  // The server and all its processes.
  void kill9();
  void freeze();
  void thaw();
  // Politely, then not.
  void stop();
  // kill9() and start().
  Status restart();

  // What it has written to its output since the last start.
  std::string log() const;

 protected:
  virtual Status prepare() { return {}; }  // once, before the first start
  virtual Command command() const = 0;
  virtual int polite_signal() const;

 private:
  std::vector<pid_t> processes() const;

  const TempDir folder_;
  const std::uint16_t port_;
  Environment environment_;
  bool prepared_ = false;
  std::unique_ptr<Child> child_;
};

struct RedisOptions {
  std::string appendfsync = "always";  // "always", "everysec" or "no"
  bool appendonly = true;
  std::vector<std::string> more = {};  // e.g. {"--maxmemory-policy", "allkeys-lru"}
};

class RedisServer final : public Server {
 public:
  explicit RedisServer(RedisOptions options = {}) : options_(std::move(options)) {}
  ~RedisServer() override { stop(); }
  static std::string missing();  // empty: installed
  std::string url() const override;
  bool answers(Millis deadline) const override;

 protected:
  Command command() const override;

 private:
  const RedisOptions options_;
};

// User and database "postgres", no password. As root it runs as an unprivileged user: it must.
class PostgresServer final : public Server {
 public:
  // Settings: {"synchronous_commit=off", ...}
  explicit PostgresServer(std::vector<std::string> settings = {})
      : settings_(std::move(settings)) {}
  ~PostgresServer() override { stop(); }
  static std::string missing();
  static std::string program(const std::string& name);  // psql, pg_dump ...: of the same version
  // As a replica of this one, which runs: before the first start.
  void follow(const PostgresServer& primary) { primary_ = primary.port(); }
  std::string url() const override;
  bool answers(Millis deadline) const override;

 protected:
  Status prepare() override;
  Command command() const override;
  int polite_signal() const override;

 private:
  std::vector<std::string> as_user(std::vector<std::string> argv) const;
  const std::vector<std::string> settings_;
  std::uint16_t primary_ = 0;
};

// The Worker of packaging/worker on the real workerd: `do+http:`, with this secret.
class WorkerdServer final : public Server {
 public:
  static constexpr const char* kSecret = "the-secret-of-the-tests";
  WorkerdServer();
  ~WorkerdServer() override { stop(); }
  static std::string missing();  // fetches it from npm, once
  static std::string program();  // packaging/worker/dev.sh
  std::string url() const override;
  bool answers(Millis deadline) const override;

 protected:
  Command command() const override;
};

// Where a node lives, if not beside the test: see netns.h.
struct EtcdHome {
  std::string host = "127.0.0.1";
  std::vector<std::string> enter = {};  // what its command line begins with
};

class EtcdNode final : public Server {
 public:
  explicit EtcdNode(std::string name, EtcdHome home = {});
  ~EtcdNode() override { stop(); }
  std::string url() const override;
  // "Healthy" means that it knows a leader and can commit.
  bool answers(Millis deadline) const override;

  const std::string& host() const { return home_.host; }
  std::uint16_t peer_port() const { return peer_port_; }
  std::string member() const;                                            // name=peer url
  void join(std::string members) { members_ = std::move(members); }      // before the first start
  void with(std::vector<std::string> more) { more_ = std::move(more); }  // options, likewise

 protected:
  Command command() const override;

 private:
  const std::string name_;
  const EtcdHome home_;
  const std::uint16_t peer_port_;
  std::string members_;
  std::vector<std::string> more_;
};

class EtcdCluster {
 public:
  explicit EtcdCluster(std::size_t nodes = 1) : EtcdCluster(std::vector<EtcdHome>(nodes)) {}
  explicit EtcdCluster(const std::vector<EtcdHome>& homes);
  static std::string missing();
  // Returns when every node is healthy.
  Status start();
  EtcdNode& node(std::size_t i) { return *nodes_[i]; }
  std::size_t size() const { return nodes_.size(); }
  std::string url() const;    // all nodes, with commas
  std::string hosts() const;  // the same as host:port

 private:
  std::vector<std::unique_ptr<EtcdNode>> nodes_;
};

}  // namespace stint::test
