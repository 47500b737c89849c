// A git server, clones of it, and holders of one lease that push through the real program.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/opened.h"
#include "guard/git_guard.h"
#include "os/clock.h"
#include "os/random.h"
#include "tests/cli/stint.h"
#include "tests/support/servers.h"

namespace stint::test {

enum class Transport { Path, Daemon, Http, Ssh };
std::string_view word(Transport transport);
inline constexpr Transport kTransports[] = {Transport::Path, Transport::Daemon, Transport::Http,
                                            Transport::Ssh};

// `git daemon` or the HTTP front, on loopback.
class GitServer final : public Server {
 public:
  GitServer(Transport transport, std::string root, std::string home);
  ~GitServer() override { stop(); }
  std::string url() const override;
  bool answers(Millis deadline) const override;

 protected:
  Command command() const override;

 private:
  const Transport transport_;
  const std::string root_;
  const std::string home_;
};

// One grant: what a child of `stint run` has in its environment.
struct Grant {
  std::string token;
  std::string claim;
  std::string generation;
  std::string owner;
};

class GitWorld {
 public:
  explicit GitWorld(Transport transport = Transport::Path);

  // ---- the server
  std::string repository() const { return dir_.file("srv/r.git"); }
  std::string url() const;
  // The object of a ref of the server; empty: none.
  std::string at(const std::string& ref) const;
  std::string main() const { return at("refs/heads/main"); }
  std::string fence() const { return at("refs/stint/fence/r"); }
  // A line of the standing fence: "token", "seq" ...
  std::string fence_line(const std::string& name,
                         const std::string& ref = "refs/stint/fence/r") const;
  void server_hook(const std::string& name, const std::string& script) const;
  void server_config(const std::string& key, const std::string& value) const;

  // ---- clones
  // A clone with one new commit on main, not pushed.
  std::string clone(const std::string& name);
  // A further commit; its object.
  std::string commit(const std::string& clone, const std::string& what) const;
  std::string head(const std::string& clone) const;
  Finished git(const std::string& clone, std::vector<std::string> words) const;
  Command git_command(const std::string& clone, std::vector<std::string> words) const;
  void hook(const std::string& clone, const std::string& name, const std::string& script) const;

  // ---- holders of the resource "r"
  // Takes over whoever holds it: a new token, a new claim.
  Grant take(const std::string& owner);
  Command push_command(const std::string& clone, const Grant& grant,
                       std::vector<std::string> words = {"origin", "main"}) const;
  Finished push(const std::string& clone, const Grant& grant,
                std::vector<std::string> words = {"origin", "main"}) const;
  Result<guard::SealAnswer> seal(const Grant& grant, bool by_order = false,
                                 const std::string& more = {});
  guard::Pass pass(const Grant& grant) const;
  std::string target(const std::string& more = {}) const;

  const Stint& stint() const { return stint_; }
  const TempDir& dir() const { return dir_; }
  api::Fences& fences();

 private:
  Command plain(std::vector<std::string> argv, const std::string& cwd) const;

  TempDir dir_;
  Stint stint_;
  const Transport transport_;
  std::unique_ptr<GitServer> server_;
  os::SystemClock clock_;
  os::SystemRandom random_;
  std::unique_ptr<app::Opened> opened_;
};

// A place where a hook waits: `script()` says that it has arrived and waits for let_go().
class Barrier {
 public:
  explicit Barrier(std::string path) : path_(std::move(path)) {}
  // sh; only the first process that comes waits, and only once armed.
  std::string script() const;
  void arm() const;
  bool arrived() const;
  void let_go() const;

 private:
  std::string path_;
};

}  // namespace stint::test
