#include "tests/sandbox/world.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/text.h"

namespace stint::test {
namespace {

namespace fs = std::filesystem;

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

// "/lib/x86_64-linux-gnu/libc.so.6" and so on, from ldd.
std::vector<std::string> libraries_of(const std::string& program) {
  std::vector<std::string> out;
  const std::string listed = run({.argv = {"ldd", program}}).out;
  for (const std::string_view line : split(listed, '\n')) {
    const std::size_t from = line.find('/');
    if (from == line.npos) continue;
    out.emplace_back(line.substr(from, line.find(' ', from) - from));
  }
  return out;
}

void copy_to(const std::string& from, const std::string& to) {
  fs::create_directories(fs::path(to).parent_path());
  fs::copy_file(from, to, fs::copy_options::overwrite_existing);
}

}  // namespace

Confined::Confined(const Place& place, const std::vector<std::string>& kinds,
                   const std::vector<std::string>& options)
    : data_(dir_.file(place.root_of_its_own ? "root/data" : "data")),
      inside_(place.root_of_its_own ? "/data" : data_) {
  const auto talks = [](const std::string& kind) { return kind != "ends"; };
  expected_ = static_cast<std::size_t>(std::ranges::count_if(kinds, talks));
  fs::create_directories(data_ + "/state");
  std::string program = STINT_BINARY;
  std::string player = SANDBOX_PLAYER;
  if (place.root_of_its_own || place.others) {
    copy_program(place.root_of_its_own ? dir_.file("root") : dir_.path());
    program = place.root_of_its_own ? "/stint" : dir_.file("stint");
    player = place.root_of_its_own ? "/player" : dir_.file("player");
  }
  if (place.others) {
    for (const std::string& path : {dir_.path(), data_, data_ + "/state"})
      ::chmod(path.c_str(), 0777);
  }
  if (place.setuid) ::chmod(player.c_str(), 04755);
  const std::string fifo = data_ + "/alive";
  EXPECT_EQ(::mkfifo(fifo.c_str(), 0666), 0);
  ::chmod(fifo.c_str(), 0666);
  fifo_ = os::Fd(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  Command command;
  command.argv = place.before;
  for (const char* word : {SANDBOX_PLAYER, "confine"}) command.argv.emplace_back(word);
  command.argv.insert(command.argv.end(), place.options.begin(), place.options.end());
  if (place.root_of_its_own)
    for (const std::string& word : {std::string("--root"), dir_.file("root")})
      command.argv.push_back(word);
  for (const std::string& word : {std::string("--report"), data_ + "/report", std::string("--"),
                                  program, std::string("run"), std::string("r")})
    command.argv.push_back(word);
  command.argv.insert(command.argv.end(), options.begin(), options.end());
  for (const std::string& word :
       {std::string("--"), player, std::string("work"), inside_ + "/alive"})
    command.argv.push_back(word);
  command.argv.insert(command.argv.end(), kinds.begin(), kinds.end());
  command.env = {{"XDG_STATE_HOME", inside_ + "/state"},
                 {"XDG_CONFIG_HOME", inside_ + "/config"},
                 {"NO_COLOR", "1"}};
  command.die_with_parent = true;
  child_ = std::make_unique<Child>(command);
}

void Confined::copy_program(const std::string& into) {
  copy_to(STINT_BINARY, into + "/stint");
  copy_to(SANDBOX_PLAYER, into + "/player");
  if (into != dir_.path()) {
    for (const std::string& library : libraries_of(STINT_BINARY)) copy_to(library, into + library);
  }
}

std::string Confined::missing() {
  wait_until([&] { return working() || !child_->running() || report(Millis(0)); });
  constexpr int kCannot = 99;
  const auto exit = child_->wait(Millis(0));
  const bool refused = err().starts_with("unshare: ") || err().starts_with("bwrap: ");
  const auto told = report(Millis(0));
  const bool cannot =
      (exit && (exit->code == kCannot || refused)) || (told && told->exit_code == kCannot);
  return cannot ? cat("this sandbox cannot be had here: ", trim(err())) : "";
}

void Confined::listen() {
  char buffer[4096];
  while (true) {
    const ssize_t got = ::read(fifo_.get(), buffer, sizeof buffer);
    if (got <= 0) {
      closed_ = got == 0;  // nobody has it open (yet, or any more)
      return;
    }
    said_.append(buffer, static_cast<std::size_t>(got));
  }
}

bool Confined::working() {
  wait_until([&] {
    listen();
    return lines_of(said_) >= expected_ || report(Millis(0)) || !child_->running();
  });
  return lines_of(said_) >= expected_;
}

bool Confined::work_alive() {
  listen();
  return !closed_;
}

void Confined::take_store_away() {
  ASSERT_EQ(::rename((data_ + "/state/stint").c_str(), (data_ + "/away").c_str()), 0);
}

Finished Confined::revoke(const std::string& token) const {
  return run({.argv = {STINT_BINARY, "--store", cat("sqlite:", state("stint/stint.db")), "revoke",
                       "r", "--token", token, "--why", "test"}});
}

bool Confined::working_again() {
  said_.clear();
  return working();
}

std::optional<Report> Confined::report(Millis within) {
  Report out;
  const auto told = [&] {
    return std::sscanf(read_text(data_ + "/report").c_str(), "exit %d, bystanders %d of %d",
                       &out.exit_code, &out.bystanders, &out.of) == 3;
  };
  if (!wait_until(told, within)) return std::nullopt;
  return out;
}

int Confined::children_of_its_own() const {
  int found = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const bool named = trim(read_text(entry.path() / "comm")) == "stranger";
    if (named && read_text(entry.path() / "cmdline").find(data_) != std::string::npos) ++found;
  }
  return found;
}

pid_t Confined::process(const std::string& name) {
  pid_t found = 0;
  for (const pid_t pid : descendants(child_->pid())) {
    if (trim(read_text(cat("/proc/", pid, "/comm"))) == name) found = pid;
  }
  return found;
}

}  // namespace stint::test
