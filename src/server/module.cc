#include "server/server.h"

extern "C" __attribute__((visibility("default"))) void stint_open_server(
    const stint::server::ServeRequest& request, const stint::Clock& clock,
    stint::server::OpenedServer* answer) {
  *answer = stint::server::open_server(request, clock);
}
