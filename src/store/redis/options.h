// What a redis:// URL says.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "store/module.h"
#include "store/redis/stream.h"

namespace stint::store::redis {

struct Options {
  std::string host;  // empty: a Unix socket
  std::uint16_t port = 6379;
  std::string socket;
  std::string user;
  std::string password;  // never to be printed
  std::uint32_t database = 0;
  std::string prefix = "stint";  // all keys are {prefix}...: one hash slot
  std::uint32_t wait = 0;        // replicas that must have a durable commit
  bool tls = false;
  TlsOptions certificates;
  Millis timeout{5000};
  bool may_create = true;

  std::string where() const;  // for messages: host:port or the socket's path
  std::string records_key() const;
  std::string index_key() const;
  std::string channel(std::string_view key) const;
};

// Code::Invalid: a value that cannot be meant.
Result<Options> read_options(const OpenRequest& request);

}  // namespace stint::store::redis
