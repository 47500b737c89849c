#include "client/client.h"

extern "C" __attribute__((visibility("default"))) void stint_open_client(
    const stint::client::ConnectRequest& request, const stint::Clock& clock,
    stint::client::OpenedClient* answer) {
  *answer = stint::client::connect(request, clock);
}
