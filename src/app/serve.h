// `stint serve`: a server on an open store, until a signal ends it.
#pragma once

#include <functional>
#include <string>

#include "app/opened.h"
#include "os/signals.h"
#include "schedule/config.h"
#include "server/server.h"

namespace stint::app {

struct ServeRun {
  server::ServeRequest serve;
  Millis drain{30'000};       // for what is under way, when it is told to stop
  std::string notify_socket;  // of the service manager
  std::string store;          // printable
  OpenOptions options;        // by which it was opened
  std::function<void(const std::string&)> say;
  schedule::FindZone find_zone;  // of jobs that are scheduled through the server
};

struct ServeEnd {
  int signal = 0;
  bool clean = true;  // all that was under way was answered
};

Result<ServeEnd> run_server(Opened& opened, const Clock& clock, Random& random,
                            os::Signals& signals, ServeRun run);

}  // namespace stint::app
