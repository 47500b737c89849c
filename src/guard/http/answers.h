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

// A request whose headers show no token that could be judged.
struct NotShown {
  net::http::Answer answer;  // what is missing (428) or wrong (400, 403)
  // What a guard makes of it; empty: the headers contradict themselves or cannot be read.
  std::optional<core::Verdict> verdict = std::nullopt;
};

// From Fencing-Token, Fencing-Resource, Fencing-Generation, Fencing-Mode, Fencing-Key and, for a
// seal, Fencing-Order.
std::variant<Shown, NotShown> read_shown(const net::http::RequestHead& head,
                                         const std::optional<ResourceName>& resource);

bool is_safe(const std::string& method);  // GET, HEAD, OPTIONS

net::http::Answer refusal_answer(const Refused& refused, const Pass& pass);
// `retry`: with Retry-After, in seconds.
net::http::Answer error_answer(int status, const Error& error,
                               std::optional<int> retry = std::nullopt);
// A fault of the store.
net::http::Answer store_answer(const Error& error);

// What there is to know of a proxy from outside.
struct Manner {
  bool cut = false;
  bool warn = false;
  Millis drain{0};
};
net::http::Answer sealed_answer(const Pass& pass, const Manner& manner);
net::http::Answer ready_answer(bool ready, const Manner& manner);

}  // namespace stint::guard::http
