// What the queue's conformance tests share: a QueueService on the store of the case at hand; where
// the site is served, asked over HTTP.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "queue/dir_queue.h"
#include "service/queue_service.h"
#include "tests/conformance/lease_fixture.h"

namespace stint::testing {

inline core::QueueName queue_name(std::string_view name) {
  return core::QueueName::parse(name).value();
}

// One worker's opening of the store.
class QueueClient {
 public:
  // `files`: as plain files, where the site has a place for them.
  explicit QueueClient(Site& site, bool files = true)
      : base(site),
        local(make(site, files)),
        served(site.served() ? serve({base.local, base.local_fences, base.ledger, local.get()},
                                     base.random, site.clock())
                             : nullptr),
        queue(served ? served->queue() : *local) {}

  Client base;
  std::unique_ptr<api::Queue> local;
  std::unique_ptr<Served> served;
  api::Queue& queue;

 private:
  std::unique_ptr<api::Queue> make(Site& site, bool files) {
    if (const std::string path = site.queue_directory(); files && !path.empty()) {
      return std::make_unique<queue::DirQueue>(path, &base.ledger, site.clock(), base.random);
    }
    return std::make_unique<service::QueueService>(*base.store, base.ledger, site.clock(),
                                                   base.random);
  }
};

class QueueTest : public ::testing::TestWithParam<StoreCase> {
 protected:
  Millis brief() const { return std::max(site_->short_ttl(), client_.base.leases.smallest_ttl()); }

  core::ItemId put(const std::string& payload, const core::ItemLimits& limits = {},
                   std::string_view name = "builds") {
    auto answer = queue_.put(request(payload, limits, name));
    EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
    return answer.value().id;
  }
  static api::PutRequest request(const std::string& payload, const core::ItemLimits& limits = {},
                                 std::string_view name = "builds") {
    return {.queue = queue_name(name),
            .payload = payload,
            .priority = 0,
            .delay = {},
            .unique = {},
            .labels = {},
            .by = "putter",
            .limits = limits,
            .create = true};
  }
  // Nothing: there was nothing to claim.
  std::optional<api::ClaimedItem> claim(std::string_view who = "ann", Millis ttl = kHour,
                                        std::string_view name = "builds") {
    return claim_by(queue_, who, ttl, name);
  }
  std::optional<api::ClaimedItem> claim_by(api::Queue& queue, std::string_view who,
                                           Millis ttl = kHour, std::string_view name = "builds") {
    auto answer = queue.claim({.queue = queue_name(name),
                               .owner = owner(who),
                               .claim = client_.base.claim(),
                               .ttl = ttl,
                               .start = false,
                               .reports = false});
    EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
    if (!answer || std::holds_alternative<api::EmptyQueue>(*answer)) return std::nullopt;
    return std::get<api::ClaimedItem>(*answer);
  }
  static api::ItemRef ref(const api::ClaimedItem& claimed) {
    return {claimed.item.id, claimed.item.item.epoch};
  }
  // None: it was done.
  static core::ItemCause lost(const Result<api::ItemAnswer>& answer) {
    EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
    if (!answer) return core::ItemCause::None;
    const auto* no = std::get_if<api::ItemLost>(&*answer);
    return no == nullptr ? core::ItemCause::None : no->cause;
  }
  static bool done(const Result<api::ItemAnswer>& answer) {
    return answer.has_value() && lost(answer) == core::ItemCause::None;
  }
  static bool repeated(const Result<api::ItemAnswer>& answer) {
    return done(answer) && std::get<api::ItemDone>(*answer).repeated;
  }
  static api::Completion completion(const api::ItemRef& ref, std::string result = "ok") {
    return {.ref = ref, .result = std::move(result), .then = {}};
  }
  api::QueueItem show(const core::ItemId& id) { return queue_.show(id).value().value(); }
  core::ItemState state(const core::ItemId& id) { return show(id).item.state; }
  std::size_t waiting(std::string_view name) {
    return queue_.count(queue_name(name)).value().waiting;
  }
  // Everything of the item that anybody could see.
  std::string whole(const core::ItemId& id) {
    if (const std::string path = site_->queue_directory(); !path.empty()) {
      return files_of(path, id);
    }
    std::string out;
    for (const service::Shelf shelf : service::kShelves) {
      const auto entry =
          client_.base.store->read({service::shelf_key(shelf, id)}).value().entries.front();
      out += entry.value + "/" + std::to_string(entry.version) + ";";
    }
    return out;
  }
  static std::string files_of(const std::string& path, const core::ItemId& id) {
    std::set<std::string> names;
    for (const auto& one : std::filesystem::recursive_directory_iterator(path)) {
      const std::string name = one.path().string();
      if (name.find(id.suffix()) != std::string::npos) names.insert(name);
    }
    std::string out;
    for (const std::string& name : names) out += name + ";";
    return out;
  }
  static core::ItemOrder order(core::ItemOrder::What what,
                               std::optional<Token> expected = std::nullopt) {
    return {.what = what,
            .expected = expected,
            .why = "because",
            .by = "op",
            .id = {},
            .to = {},
            .hold = {}};
  }
  std::vector<std::string> kinds(const core::ItemId& id) {
    client_.base.ledger.flush();
    const std::vector<api::Event> events =
        client_.base.ledger.list({.after = "", .prefix = id.text(), .limit = 1000, .newest = false})
            .value();
    std::vector<std::string> out;
    for (const api::Event& event : events) {
      out.push_back(event.kind);
    }
    return out;
  }

  std::unique_ptr<Site> site_ = GetParam().make();
  QueueClient client_{*site_};
  api::Queue& queue_ = client_.queue;
};

// The test steps in between a reading of the store and a commit.
#define SKIP_FILES()                                                                         \
  if (!site_->queue_directory().empty())                                                     \
  GTEST_SKIP() << "a queue of plain files has no commits; DirQueueTest and QueueSweep step " \
                  "in between its renames"

#define STINT_QUEUES_ON_EVERY_STORE(Suite)                                   \
  INSTANTIATE_TEST_SUITE_P(Store, Suite, ::testing::ValuesIn(lease_sites()), \
                           [](const auto& each) { return each.param.name; })

}  // namespace stint::testing
