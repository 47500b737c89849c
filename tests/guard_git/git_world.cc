#include "tests/guard_git/git_world.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "tests/support/loopback.h"

namespace stint::test {
namespace {

void write_script(const std::string& path, const std::string& script) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  write_text(path, cat("#!/bin/sh\n", script, "\n"));
  EXPECT_EQ(::chmod(path.c_str(), 0755), 0);
}

}  // namespace

std::string_view word(Transport transport) {
  switch (transport) {
    case Transport::Path: return "path";
    case Transport::Daemon: return "daemon";
    case Transport::Http: return "http";
    case Transport::Ssh: return "ssh";
  }
  return "";
}

GitServer::GitServer(Transport transport, std::string root, std::string home)
    : transport_(transport), root_(std::move(root)), home_(std::move(home)) {}

std::string GitServer::url() const {
  return cat(transport_ == Transport::Http ? "http" : "git", "://127.0.0.1:", port(), "/r.git");
}

bool GitServer::answers(Millis deadline) const {
  return static_cast<bool>(connect_loopback(port(), "127.0.0.1", deadline));
}

Command GitServer::command() const {
  Command out;
  out.env = {{"GIT_CONFIG_GLOBAL", cat(home_, "/gitconfig")}};
  if (transport_ == Transport::Http) {
    out.argv = {"python3", cat(SOURCE_DIR, "/tests/guard_git/http_front.py"), cat(port()), root_};
  } else {
    out.argv = {"git",         "daemon",       cat("--listen=127.0.0.1"),  cat("--port=", port()),
                "--reuseaddr", "--export-all", cat("--base-path=", root_), "--enable=receive-pack",
                root_};
  }
  return out;
}

GitWorld::GitWorld(Transport transport) : transport_(transport) {
  write_text(dir_.file("gitconfig"),
             "[user]\n\tname = t\n\temail = t@example.org\n[init]\n\tdefaultBranch = main\n"
             "[gc]\n\tauto = 0\n[safe]\n\tdirectory = *\n[receive]\n\tautogc = false\n");
  write_script(dir_.file("ssh"), "for last; do :; done\nexec sh -c \"$last\"");
  std::filesystem::create_directories(dir_.file("srv"));
  const auto made = run(plain({"git", "init", "-q", "--bare", repository()}, dir_.path()));
  EXPECT_EQ(made.exit_code, 0) << made.err;
  server_config("http.receivepack", "true");
  run(plain({"git", "init", "-q", "first"}, dir_.path()));
  commit("first", "c0");
  const auto pushed = git("first", {"push", "-q", repository(), "HEAD:refs/heads/main"});
  EXPECT_EQ(pushed.exit_code, 0) << pushed.err;
  if (transport == Transport::Daemon || transport == Transport::Http) {
    server_ = std::make_unique<GitServer>(transport, dir_.file("srv"), dir_.path());
    const auto started = server_->start();
    EXPECT_TRUE(started) << (started ? "" : started.error().message);
  }
}

Command GitWorld::plain(std::vector<std::string> argv, const std::string& cwd) const {
  return {.argv = std::move(argv),
          .env = {{"GIT_CONFIG_GLOBAL", dir_.file("gitconfig")},
                  {"GIT_CONFIG_NOSYSTEM", "1"},
                  {"GIT_SSH_COMMAND", dir_.file("ssh")},
                  {"GIT_SSH_VARIANT", "simple"}},
          .cwd = cwd};
}

std::string GitWorld::url() const {
  switch (transport_) {
    case Transport::Path: return repository();
    case Transport::Ssh: return cat("ssh://server", repository());
    case Transport::Daemon:
    case Transport::Http: return server_->url();
  }
  return {};
}

std::string GitWorld::at(const std::string& ref) const {
  const auto done =
      run(plain({"git", "--git-dir", repository(), "rev-parse", "-q", "--verify", ref}, "/"));
  return std::string(trim(done.out));
}

std::string GitWorld::fence_line(const std::string& name, const std::string& ref) const {
  const auto done = run(plain({"git", "--git-dir", repository(), "cat-file", "-p", ref}, "/"));
  for (const std::string_view line : split(done.out, '\n')) {
    if (line.starts_with(cat(name, " "))) return std::string(line.substr(name.size() + 1));
  }
  return {};
}

void GitWorld::server_hook(const std::string& name, const std::string& script) const {
  write_script(cat(repository(), "/hooks/", name), script);
}

void GitWorld::server_config(const std::string& key, const std::string& value) const {
  run(plain({"git", "--git-dir", repository(), "config", key, value}, "/"));
}

std::string GitWorld::clone(const std::string& name) {
  const auto done = run(plain({"git", "clone", "-q", url(), dir_.file(name)}, dir_.path()));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  commit(name, cat("by ", name));
  return name;
}

std::string GitWorld::commit(const std::string& clone, const std::string& what) const {
  const auto done = git(clone, {"commit", "-q", "--allow-empty", "-m", what});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  return head(clone);
}

std::string GitWorld::head(const std::string& clone) const {
  return std::string(trim(git(clone, {"rev-parse", "HEAD"}).out));
}

Command GitWorld::git_command(const std::string& clone, std::vector<std::string> words) const {
  words.insert(words.begin(), "git");
  return plain(std::move(words), dir_.file(clone));
}

Finished GitWorld::git(const std::string& clone, std::vector<std::string> words) const {
  return run(git_command(clone, std::move(words)), Millis(60'000));
}

void GitWorld::hook(const std::string& clone, const std::string& name,
                    const std::string& script) const {
  write_script(dir_.file(cat(clone, "/.git/hooks/", name)), script);
}

Grant GitWorld::take(const std::string& owner) {
  std::vector<std::string> words = {"acquire", "r", "--ttl", "1h", "--owner", owner, "--json"};
  if (stint_.held("r")) {
    words.emplace_back("--retake");
  }
  const auto done = stint_(words);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  return {json_field(done.out, "token"), json_field(done.out, "claim"),
          json_field(done.out, "generation"), owner};
}

Command GitWorld::push_command(const std::string& clone, const Grant& grant,
                               std::vector<std::string> words) const {
  words.insert(words.begin(), "push");
  Command out = stint_.command(std::move(words));
  const Command like = plain({}, dir_.file(clone));
  out.env.insert(out.env.end(), like.env.begin(), like.env.end());
  out.env.insert(out.env.end(), {{"STINT_RESOURCE", "r"},
                                 {"STINT_TOKEN", grant.token},
                                 {"STINT_CLAIM", grant.claim},
                                 {"STINT_GENERATION", grant.generation},
                                 {"STINT_OWNER", grant.owner}});
  out.cwd = like.cwd;
  return out;
}

Finished GitWorld::push(const std::string& clone, const Grant& grant,
                        std::vector<std::string> words) const {
  return run(push_command(clone, grant, std::move(words)), Millis(60'000));
}

guard::Pass GitWorld::pass(const Grant& grant) const {
  return {.resource = ResourceName::parse("r").value(),
          .token = Token::parse(grant.token).value(),
          .generation = Generation::parse(grant.generation).value(),
          .claim = Claim::parse(grant.claim).value(),
          .owner = Owner::parse(grant.owner).value(),
          .key = {}};
}

std::string GitWorld::target(const std::string& more) const {
  return cat("git:", url(), "#main", more);
}

Result<guard::SealAnswer> GitWorld::seal(const Grant& grant, bool by_order,
                                         const std::string& more) {
  // The library runs in the environment of this very process.
  const Command like = plain({}, {});
  for (const auto& [name, value] : like.env) ::setenv(name.c_str(), value->c_str(), 1);
  guard::SealRequest request{.pass = pass(grant), .by_order = by_order, .adopt = {}};
  return guard::seal_git(target(more), request, &fences());
}

api::Fences& GitWorld::fences() {
  if (!opened_) {
    auto url = app::parse_store_url(cat("sqlite:", stint_.database()));
    EXPECT_TRUE(url);
    auto opened = app::Opened::open({.url = *url, .state_directory = {}}, clock_, random_);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    opened_ = std::move(*opened);
  }
  return opened_->fences();
}

std::string Barrier::script() const {
  return cat("if mv ", path_, ".armed ", path_,
             ".arrived 2>/dev/null; then\n  n=0\n  while [ ! -e ", path_,
             ".go ] && [ $n -lt 6000 ]; do sleep 0.01; n=$((n+1)); done\n  rm -f ", path_, ".go ",
             path_, ".arrived\nfi\nexit 0");
}

void Barrier::arm() const { write_text(path_ + ".armed", ""); }
bool Barrier::arrived() const { return std::filesystem::exists(path_ + ".arrived"); }
void Barrier::let_go() const { write_text(path_ + ".go", ""); }

}  // namespace stint::test
