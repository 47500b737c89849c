// The JSON of queues and items, written once (docs/reference/json.md).
#pragma once

#include <string>
#include <vector>

#include "api/queue.h"
#include "base/error.h"

namespace stint::api {

std::string to_json(const QueueItem& item);
std::string to_json(const std::vector<QueueItem>& items);
std::string to_json(const PutAnswer& put);
std::string to_json(const ItemDone& done);
std::string to_json(const ClaimAnswer& answer);
std::string to_json(const core::ItemLimits& limits);
std::string to_json(const Tended& tended);
std::string to_json(const QueueConfig& config, const QueueCounts& counts, WallTime now);
std::string to_json(const std::vector<std::pair<QueueConfig, QueueCounts>>& queues, WallTime now);
// {"error": {"code", "message", "cause", "item"}}
std::string to_json(const Error& error, const ItemLost& lost);

}  // namespace stint::api
