#include "os/tee.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/sha256.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/exec_words.h"
#include "os/fd.h"
#include "os/pause.h"

namespace stint::os {
namespace {

int spawn(const TeeCall& call, int out, pid_t& child) {
  std::vector<std::string> words = call.argv;
  std::vector<std::string> entries = call.environment;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  const int failed = ::posix_spawnp(&child, words.front().c_str(), &actions, nullptr,
                                    exec_words(words).data(), exec_words(entries).data());
  posix_spawn_file_actions_destroy(&actions);
  return failed;
}

// False: nobody reads us any more.
bool write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

// Passes on what there is; false: the end of it.
bool pass_on(int from, Sha256& hash) {
  std::array<char, 16384> buffer{};
  const ssize_t got = ::read(from, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
  hash.add(bytes);
  return write_all(bytes);
}

}  // namespace

Result<TeeEnd> run_teed(const TeeCall& call) {
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  TeeEnd end;
  pid_t child = 0;
  end.exec_error = spawn(call, pipe->write.get(), child);
  end.started = SystemClock().mono();
  pipe->write.reset();
  if (end.exec_error != 0) return end;
  const ChildWatch watch(child);
  Sha256 hash;
  const int from = pipe->read.get();
  bool open = true;
  // What it leaves running in the background may keep the pipe open: its own end is what counts.
  while (true) {
    const auto ready = watch.wait(open ? std::vector{from} : std::vector<int>(), std::nullopt);
    if (open && ready[0]) open = pass_on(from, hash);
    if (!open) pipe->read.reset();
    if (ready.back()) break;
  }
  while (open && wait_readable({from}, SystemClock().mono()).front()) open = pass_on(from, hash);
  end.how = end_of(child);
  if (!end.how) return Error{Code::UnknownOutcome, "the command ran, and nobody saw how it ended"};
  end.digest = cat("sha256:", to_hex(hash.done()));
  return end;
}

}  // namespace stint::os
