#include "guard/http/proxy.h"

namespace http = stint::guard::http;

extern "C" __attribute__((visibility("default"))) void stint_open_proxy(
    const http::ProxyRequest& request, const stint::Clock& clock, http::OpenedProxy* answer) {
  *answer = http::open_proxy(request, clock);
}

extern "C" __attribute__((visibility("default"))) void stint_seal_proxy(
    const http::ProxySeal& seal, const stint::Clock& clock, http::ProxySealAnswer* answer) {
  *answer = http::seal_proxy(seal, clock);
}

extern "C" __attribute__((visibility("default"))) void stint_check_proxy(
    const http::ProxyCheck& check, const stint::Clock& clock, http::ProxyCheckAnswer* answer) {
  *answer = http::check_proxy(check, clock);
}
