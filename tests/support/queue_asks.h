// What tests of queues ask for again and again.
#pragma once

#include <utility>

#include "api/queue.h"

namespace stint::test {

inline api::PutRequest put_request(const core::QueueName& queue, std::string payload = "x",
                                   const core::ItemLimits& limits = {}) {
  return {.queue = queue,
          .payload = std::move(payload),
          .priority = 0,
          .delay = {},
          .unique = {},
          .labels = {},
          .by = "t",
          .limits = limits,
          .create = true};
}

// An operator's verbs one after the other on one item, and the events that tell of them.
inline constexpr std::pair<core::ItemOrder::What, const char*> kOrderEvents[] = {
    {core::ItemOrder::What::Park, "item_parked"},
    {core::ItemOrder::What::Requeue, "item_requeued"},
    {core::ItemOrder::What::Reassign, "item_reassigned"},
    {core::ItemOrder::What::Cancel, "item_cancelled"},
    {core::ItemOrder::What::Replay, "item_replayed"},
    {core::ItemOrder::What::Cancel, "item_cancelled"},
    {core::ItemOrder::What::Drop, "item_dropped"}};

}  // namespace stint::test
