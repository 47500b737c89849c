// What a request shows to the HTTP guard, and how the guard answers it.
#pragma once

#include <optional>
#include <variant>

#include "guard/guard.h"
#include "net/http/server.h"

namespace stint::guard::http {

struct Shown {
  Pass pass;
  bool by_order = false;  // of a seal only
};

// From Fencing-Token, Fencing-Resource, Fencing-Generation, Fencing-Mode, Fencing-Key and, for a
// seal, Fencing-Order. The answer: what is missing (428) or wrong (400, 403).
std::variant<Shown, net::http::Answer> read_shown(const net::http::RequestHead& head,
                                                  const std::optional<ResourceName>& resource);

bool is_safe(const std::string& method);  // GET, HEAD, OPTIONS

net::http::Answer refusal_answer(const Refused& refused, const Pass& pass);
// `retry`: with Retry-After, in seconds.
net::http::Answer error_answer(int status, const Error& error,
                               std::optional<int> retry = std::nullopt);
// A fault of the store.
net::http::Answer store_answer(const Error& error);
net::http::Answer sealed_answer(const Pass& pass, bool narrow);

}  // namespace stint::guard::http
