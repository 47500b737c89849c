#include "os/program.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <map>

#include "base/text.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/files.h"
#include "os/launch.h"
#include "os/pause.h"

namespace stint::os {
namespace {

std::vector<std::string> environment_of(const ProgramCall& call) {
  if (!call.inherits) return call.environment;
  std::map<std::string, std::string, std::less<>> values;
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry)
    values.emplace(name_of(*entry), *entry);
  for (const std::string& entry : call.environment) {
    values.erase(std::string(name_of(entry)));
    if (entry.find('=') != entry.npos) values.emplace(name_of(entry), entry);
  }
  std::vector<std::string> out;
  for (auto& [name, entry] : values) out.push_back(std::move(entry));
  return out;
}

// Takes what there is to read. False: the end of the output, or an error.
bool take(int fd, std::string& out) {
  constexpr std::size_t kMost = 1U << 20U;
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR;
  if (got > 0 && out.size() < kMost) out.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0;
}

struct Listening {
  int fd;
  std::string* into;
  bool open = true;
};

// Reads until the program has ended; false: the limit came first.
bool listen(const Launched& program, std::vector<Listening> outputs, MonoTime until) {
  bool gone = false;
  while (SystemClock().mono() < until) {
    std::vector<int> fds;
    std::vector<Listening*> whose;
    for (Listening& one : outputs) {
      if (!one.open) continue;
      fds.push_back(one.fd);
      whose.push_back(&one);
    }
    // Once it has ended, what it left in the pipes is read, and no more is waited for.
    const auto ready = program.wait(fds, gone ? SystemClock().mono() : until);
    bool any = false;
    for (std::size_t i = 0; i < whose.size(); ++i) {
      if (!ready[i]) continue;
      any = true;
      whose[i]->open = take(whose[i]->fd, *whose[i]->into);
    }
    if (gone && !any) return true;
    gone = gone || ready.back();
  }
  return gone;
}

}  // namespace

Result<ProgramEnd> run_program(const ProgramCall& call) {
  auto out = make_pipe();
  if (!out) return out.error();
  auto talk = make_pipe();
  if (!talk) return talk.error();
  auto in = make_pipe();
  if (!in) return in.error();
  if (!call.input.empty() && ::write(in->write.get(), call.input.data(), call.input.size()) !=
                                 static_cast<ssize_t>(call.input.size())) {
    return Error{Code::Failed, errno_text("preparing a program's input")};
  }
  in->write.reset();
  const MonoTime until = SystemClock().mono() + call.limit;
  auto program = Launched::start({.argv = call.argv,
                                  .environment = environment_of(call),
                                  .in = call.apart ? in->read.get() : -1,
                                  .out = out->write.get(),
                                  .talk = call.apart ? talk->write.get() : -1,
                                  .session = call.apart});
  if (!program) return program.error();
  out->write.reset();
  talk->write.reset();
  std::string printed;
  std::string said;
  const bool ended =
      listen(*program, {{out->read.get(), &printed}, {talk->read.get(), &said}}, until);
  if (!ended) program->kill();
  const auto end = program->end();
  if (!ended) {
    return Error{Code::UnknownOutcome, cat(quoted(call.argv.front()), " did not end within ",
                                           format_duration(call.limit), " and was killed")};
  }
  if (!end) {
    return Error{Code::UnknownOutcome,
                 cat(quoted(call.argv.front()), " ran, and nobody saw how it ended")};
  }
  return ProgramEnd{.how = *end, .out = std::move(printed), .talk = std::move(said)};
}

std::string own_program() {
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length > 0) return {path.data(), static_cast<std::size_t>(length)};
  // Without /proc: the words by which it was executed.
  const auto executed = ::getauxval(AT_EXECFN);
  if (executed == 0) return {};
  return absolute(reinterpret_cast<const char*>(executed));  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace stint::os
