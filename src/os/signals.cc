#include "os/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "base/check.h"

namespace stint::os {

Result<Signals> Signals::make() {
  Signals signals;
  sigset_t handled;
  sigemptyset(&handled);
  // SIGPIPE and SIGTTOU are only kept from ending us; SIGCHLD wakes the reaper.
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT,
                           SIGCHLD, SIGPIPE, SIGTTOU, SIGALRM}) {
    sigaddset(&handled, number);
  }
  CHECK(::pthread_sigmask(SIG_BLOCK, &handled, &signals.original_) == 0,
        "the signal mask cannot be set");
  sigdelset(&handled, SIGPIPE);
  sigdelset(&handled, SIGTTOU);
  signals.fd_ = Fd(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.fd_) return Error{Code::Failed, errno_text("making a signal descriptor")};
  return signals;
}

std::optional<Signals::Received> Signals::take() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return Received{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

}  // namespace stint::os
