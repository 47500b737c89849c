// A Watch that is woken over HTTP: by every occurrence of a word in an answer that goes on for
// ever. It comes back after a broken connection, and wakes then too: what happened meanwhile is not
// known.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "base/watch.h"
#include "net/http_client.h"

namespace stint::net {

struct StreamWords {
  std::string begins;  // says that the server watches from now on
  std::string wakes;   // may be the same one
};

// Waits until the first word has come: then the server watches. Else: what came instead.
std::variant<std::unique_ptr<Watch>, HttpOutcome> open_stream_watch(
    const std::shared_ptr<HttpClient>& http, const HttpRequest& request, const StreamWords& words,
    const Clock& clock);

}  // namespace stint::net
