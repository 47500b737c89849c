// What the fault tests on real etcd servers share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "os/random.h"
#include "service/lease_service.h"
#include "store/etcd/etcd_store.h"
#include "tests/support/servers.h"
#include "tests/support/tcp_proxy.h"

namespace stint::test {

using store::Step;
using store::etcd::EtcdStore;

#define SKIP_WITHOUT_ETCD() \
  if (const std::string why = EtcdCluster::missing(); !why.empty()) GTEST_SKIP() << why

inline const Clock& system_clock() {
  static const os::SystemClock clock;
  return clock;
}

inline store::OpenRequest request_to(std::vector<std::uint16_t> ports, Millis timeout) {
  store::OpenRequest request;
  request.address.scheme = "etcd";
  for (const std::uint16_t port : ports) request.address.hosts.push_back({"127.0.0.1", port});
  request.timeout = timeout;
  return request;
}

inline std::unique_ptr<EtcdStore> open_etcd(std::vector<std::uint16_t> ports,
                                            Millis timeout = Millis(5'000)) {
  auto store = EtcdStore::open(request_to(std::move(ports), timeout), system_clock());
  EXPECT_TRUE(store) << store.error().message;
  return store ? std::move(*store) : nullptr;
}

inline Step step_on(Step::Kind kind, std::string key, std::string value = "") {
  Step step;
  step.kind = kind;
  step.key = std::move(key);
  step.value = std::move(value);
  return step;
}
inline Step started(std::string key, Millis ttl) {
  Step step = step_on(Step::Kind::Set, std::move(key), "v");
  step.timer = Step::TimerOp::Start;
  step.ttl = ttl;
  return step;
}
inline Step extended(std::string key, Millis ttl) {
  Step step = step_on(Step::Kind::Touch, std::move(key));
  step.demand = TimerState::Running;
  step.timer = Step::TimerOp::Extend;
  step.ttl = ttl;
  return step;
}

// What became of it, in a word.
inline std::string outcome(const Result<store::CommitAnswer>& answer) {
  if (!answer) return std::string(word(answer.error().code));
  return std::holds_alternative<store::Conflict>(*answer) ? "conflict" : "done";
}

inline TimerState timer_of(store::Store& store, const std::string& key) {
  const auto reading = store.read({key});
  EXPECT_TRUE(reading) << reading.error().message;
  return reading ? reading->entries.front().timer.state : TimerState::None;
}

inline std::vector<std::uint16_t> ports_of(EtcdCluster& etcd) {
  std::vector<std::uint16_t> out;
  for (std::size_t i = 0; i < etcd.size(); ++i) out.push_back(etcd.node(i).port());
  return out;
}

}  // namespace stint::test
