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
std::string to_json(const std::vector<std::pair<QueueConfig, QueueCounts>>& queues);
// {"error": {"code", "message", "cause", "item"}}
std::string to_json(const Error& error, const ItemLost& lost);

}  // namespace stint::api
