#include "tests/cli/stores/restorable.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "tests/support/servers.h"

namespace stint::test {
namespace {

namespace fs = std::filesystem;

// A tool that must do its work, or the test means nothing.
std::string must(std::vector<std::string> argv) {
  Command command{.argv = std::move(argv)};
  command.env.emplace_back("ETCDCTL_API", "3");
  const Finished done = run(command, Millis(30'000));
  EXPECT_EQ(done.exit_code, 0) << command.argv[0] << ": " << done.out << done.err;
  return done.out;
}

std::string started(Server& server) {
  const auto ok = server.start();
  return ok ? std::string() : ok.error().message;
}

// Owners and modes too. What was there goes in one step, even if somebody is writing into it.
void copy_tree(const std::string& from, const std::string& to) {
  const std::string old = to + ".old";
  fs::remove_all(old);
  if (fs::exists(to)) fs::rename(to, old);
  must({"cp", "-a", from, to});
}

class SqliteCopy final : public Restorable {
 public:
  std::string start() override { return {}; }
  std::string url() const override { return cat("sqlite:", file()); }
  void back_up() override { must({"sqlite3", file(), cat(".backup ", place_.file("backup"))}); }
  void put_back() override {
    empty();
    fs::copy_file(place_.file("backup"), file());
  }
  void empty() override {
    for (const char* end : {"", "-wal", "-shm"}) fs::remove(file() + end);
  }

 private:
  std::string file() const { return place_.file("stint.db"); }
  TempDir place_;
};

// Into the file that is there, as `.restore` does: who has it open goes on in it.
class SqliteRestore final : public Restorable {
 public:
  std::string start() override { return {}; }
  std::string url() const override { return cat("sqlite:", file()); }
  void back_up() override { must({"sqlite3", file(), cat(".backup ", place_.file("backup"))}); }
  void put_back() override { must({"sqlite3", file(), cat(".restore ", place_.file("backup"))}); }
  void empty() override {}

 private:
  std::string file() const { return place_.file("stint.db"); }
  TempDir place_;
};

// The directory as a whole (another inode), or the files in it (as rsync does).
template <bool kWhole, char kFirst = 'd'>
class DirCopy final : public Restorable {
 public:
  std::string start() override { return {}; }
  std::string url() const override { return cat(kFirst == 'd' ? "dir:" : "log:", folder()); }
  void back_up() override { copy_tree(folder(), place_.file("backup")); }
  void put_back() override {
    if (kWhole) return copy_tree(place_.file("backup"), folder());
    must({"find", folder(), "-type", "f", "-delete"});
    must({"cp", "-a", cat(place_.file("backup"), "/."), cat(folder(), "/")});
  }
  void empty() override {
    fs::remove_all(folder() + ".old");
    fs::rename(folder(), folder() + ".old");
  }

 private:
  std::string folder() const { return place_.file("store"); }
  TempDir place_;
};

class Redis : public Restorable {
 public:
  explicit Redis(bool appendonly) : server_({.appendfsync = "always", .appendonly = appendonly}) {}
  std::string start() override {
    const std::string missing = RedisServer::missing();
    return missing.empty() ? started(server_) : missing;
  }
  std::string url() const override { return server_.url(); }
  void empty() override { say("FLUSHALL"); }

 protected:
  void say(const char* word) const {
    EXPECT_EQ(trim(must({"redis-cli", "-p", cat(server_.port()), word})), "OK");
  }
  void put_back_file(const std::string& name) {
    server_.kill9();
    copy_tree(place_.file("backup"), cat(server_.folder(), "/", name));
    EXPECT_EQ(started(server_), "");
  }
  RedisServer server_;
  TempDir place_;
};

class RedisFlushed final : public Redis {
 public:
  RedisFlushed() : Redis(true) {}
  void back_up() override {}
  void put_back() override { say("FLUSHALL"); }
};

class RedisLog final : public Redis {
 public:
  RedisLog() : Redis(true) {}
  void back_up() override { copy_tree(server_.folder() + "/appendonlydir", place_.file("backup")); }
  void put_back() override { put_back_file("appendonlydir"); }
};

class RedisSnapshot final : public Redis {
 public:
  RedisSnapshot() : Redis(false) {}
  void back_up() override {
    say("SAVE");
    copy_tree(server_.folder() + "/dump.rdb", place_.file("backup"));
  }
  void put_back() override { put_back_file("dump.rdb"); }
};

// Into the server that runs, in one transaction: nobody sees a moment without the schema.
class PostgresDump final : public Restorable {
 public:
  std::string start() override {
    const std::string missing = PostgresServer::missing();
    return missing.empty() ? started(server_) : missing;
  }
  std::string url() const override { return server_.url(); }
  void back_up() override {
    must({PostgresServer::program("pg_dump"), server_.url(), "-f", place_.file("backup")});
  }
  void put_back() override {
    must({PostgresServer::program("psql"), server_.url(), "-qX1", "-v", "ON_ERROR_STOP=1", "-c",
          "DROP SCHEMA stint CASCADE", "-f", place_.file("backup")});
  }
  void empty() override {
    must(
        {PostgresServer::program("psql"), server_.url(), "-qX", "-c", "DROP SCHEMA stint CASCADE"});
  }

 private:
  PostgresServer server_;
  TempDir place_;
};

class DoFolder final : public Restorable {
 public:
  std::string start() override {
    if (const std::string missing = WorkerdServer::missing(); !missing.empty()) {
      return cat("workerd is not installed: ", missing);
    }
    ::setenv("STINT_KEY", WorkerdServer::kSecret, 1);
    return started(server_);
  }
  std::string url() const override { return server_.url(); }
  void back_up() override {
    server_.kill9();
    copy_tree(server_.folder() + "/disk", place_.file("backup"));
    EXPECT_EQ(started(server_), "");
  }
  void put_back() override {
    server_.kill9();
    copy_tree(place_.file("backup"), server_.folder() + "/disk");
    EXPECT_EQ(started(server_), "");
  }
  void empty() override {
    server_.kill9();
    fs::remove_all(server_.folder() + "/disk");
    EXPECT_EQ(started(server_), "");
  }

 private:
  WorkerdServer server_;
  TempDir place_;
};

class EtcdSnapshot final : public Restorable {
 public:
  std::string start() override {
    if (find_program("etcdctl").empty()) return "etcdctl is not installed: etcd-client";
    const std::string missing = EtcdCluster::missing();
    return missing.empty() ? started(node_) : missing;
  }
  std::string url() const override { return cat("etcd://127.0.0.1:", node_.port()); }
  void back_up() override {
    fs::remove(place_.file("backup"));
    must({"etcdctl", "--endpoints", node_.url(), "snapshot", "save", place_.file("backup")});
  }
  void put_back() override {
    node_.kill9();
    const std::string data = node_.folder() + "/data";
    fs::remove_all(data);
    const std::string member = node_.member();
    must({"etcdctl", "snapshot", "restore", place_.file("backup"), "--data-dir", data, "--name",
          "s1", "--initial-cluster", member, "--initial-advertise-peer-urls",
          member.substr(member.find('=') + 1)});
    EXPECT_EQ(started(node_), "");
  }
  void empty() override { must({"etcdctl", "--endpoints", node_.url(), "del", "", "--prefix"}); }

 private:
  EtcdNode node_{"s1"};
  TempDir place_;
};

template <typename T>
std::unique_ptr<Restorable> make() {
  return std::make_unique<T>();
}

}  // namespace

const std::vector<RestorableKind>& restorable_kinds() {
  static const std::vector<RestorableKind> kinds = {
      {"SqliteCopy", "sqlite", make<SqliteCopy>, "moved or deleted while in use", false, false},
      {"SqliteRestore", "sqlite", make<SqliteRestore>},
      {"DirectoryWhole", "dir", make<DirCopy<true>>, "replaced while in use"},
      {"DirectoryInPlace", "dir", make<DirCopy<false>>},
      {"LogWhole", "log", make<DirCopy<true, 'l'>>, "moved or deleted while in use", false, true},
      {"RedisFlushed", "redis", make<RedisFlushed>, "emptied or replaced", true},
      {"RedisLog", "redis", make<RedisLog>},
      {"RedisSnapshot", "redis", make<RedisSnapshot>, "went back in time", false, false, true},
      {"PostgresDump", "postgres", make<PostgresDump>},
      {"EtcdSnapshot", "etcd", make<EtcdSnapshot>},
      {"DoFolder", "do", make<DoFolder>},
  };
  return kinds;
}

std::vector<RestorableKind> one_of_each_store() {
  std::vector<RestorableKind> out;
  for (const RestorableKind& kind : restorable_kinds()) {
    if (kind.alone) continue;
    if (out.empty() || out.back().store != kind.store) out.push_back(kind);
  }
  return out;
}

}  // namespace stint::test
