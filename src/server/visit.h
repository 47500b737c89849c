// One request, from its head to its answer.
#pragma once

#include <memory>
#include <string>

#include "server/routes.h"

namespace stint::server {

struct Visit {
  std::shared_ptr<net::http::Call> call;
  std::string id;
  MonoTime began{};
  const Route* route = nullptr;
  Target target;
  Caller caller;
  // Of an acquire: what its key may not exceed. Given up before it is answered.
  std::shared_ptr<Metrics::Places> places;
};

}  // namespace stint::server
