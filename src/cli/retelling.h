// The end of a command under a lease, told until the store has answered.
#pragma once

#include <string>

#include "api/telling.h"
#include "base/text.h"
#include "cli/session.h"
#include "holder/supervisor.h"
#include "os/pause.h"
#include "os/signals.h"

namespace stint::cli {

// Until the lease has run out, wherever it was renewed last: from then on others may judge how it
// ended. `told`: the signal that was passed on to the command already; the next one ends the
// telling at once, otherwise the second one does.
inline api::Retelling retelling(Session& session, os::Signals& signals, const std::string& what,
                                Millis ttl, bool told) {
  return {.clock = session.clock(),
          .until = session.clock().mono() + ttl,
          .wait =
              [&session, &signals, what, told](MonoTime until) mutable {
                os::wait_readable({signals.fd()}, until);
                while (const auto received = signals.take()) {
                  if (received->number != SIGTERM && received->number != SIGINT &&
                      received->number != SIGHUP && received->number != SIGQUIT) {
                    continue;
                  }
                  if (told) return false;
                  told = true;
                  session.warn(cat(what,
                                   ": the store is still to be told how it ended; a second "
                                   "signal ends that"));
                }
                return true;
              },
          .say =
              [&session, what](const Error& error) {
                session.warn(cat(what, ": its end is told again: ", error.message));
              }};
}

}  // namespace stint::cli
