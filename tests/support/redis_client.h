// What the tests of the Redis store share: opening it, and talking to the server behind its back.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/text.h"
#include "store/redis/redis_store.h"
#include "tests/support/loopback.h"
#include "tests/support/servers.h"

namespace stint::test {

inline store::OpenRequest redis_request(std::uint16_t port, Millis timeout = Millis(5'000)) {
  store::OpenRequest request;
  request.timeout = timeout;
  request.address.scheme = "redis";
  request.address.hosts = {{"127.0.0.1", port}};
  return request;
}

inline std::unique_ptr<store::RedisStore> open_redis(const store::OpenRequest& request) {
  auto store = store::RedisStore::open(request);
  EXPECT_TRUE(store.has_value()) << (store ? "" : store.error().message);
  return store ? std::move(*store) : nullptr;
}

// One command, as people type it; the answer as it comes.
inline std::string redis_cli(std::uint16_t port, const std::vector<std::string>& words) {
  std::vector<std::string> argv = {"redis-cli", "-p", std::to_string(port)};
  argv.insert(argv.end(), words.begin(), words.end());
  return run({.argv = std::move(argv)}).out;
}

inline store::Step redis_set(std::string key, std::string value) {
  store::Step step;
  step.kind = store::Step::Kind::Set;
  step.key = std::move(key);
  step.value = std::move(value);
  return step;
}

inline Result<store::CommitAnswer> redis_commit(store::Store& store, const store::Step& step) {
  return store.commit({step}, store::Sync::Durable);
}

// The version that it got; 0: it failed.
inline store::Version redis_put(store::Store& store, std::string key, std::string value) {
  const auto answer = redis_commit(store, redis_set(std::move(key), std::move(value)));
  EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
  const auto* done = answer ? std::get_if<store::Committed>(&*answer) : nullptr;
  return done == nullptr ? 0 : done->versions.front();
}

inline std::string redis_get(store::Store& store, const std::string& key) {
  const auto reading = store.read({key});
  EXPECT_TRUE(reading.has_value()) << (reading ? "" : reading.error().message);
  return reading ? reading->entries.front().value : "";
}

}  // namespace stint::test
