// How a queue is laid out in a store: keys and values (JSON, so that people can read them).
//
//   queue/Q              the queue's limits
//   ready/Q:w<1F>S       an item that anybody may claim (S: the letters of its id; sorted as they
//                        are to be claimed)
//   later/Q:w<1F>S       not yet, or reserved; its timer is the delay
//   claimed/Q:c<1F>S     claimed; its timer is the claim's (what renew touches)
//   parked/Q:c<1F>S      parked
//   ended/Q:e<1F>S       done, failed or cancelled
//   due/Q:d<1F>T<1F>S    finds the items of later/ that wait for their time T
//   to/Q:d<1F>O<1F>S     finds those that are reserved for the owner O
//   pace/Q:p<1F>S        the progress timer of a claimed item, where one is used
//   uniq/Q:u<1F>KEY      the item that has the unique key
//   idle/Q:i             somebody waits for work: whoever brings some takes it away, which wakes
//   them stop/ID              an operator moved the item while it was claimed: wakes its worker
//   blob/ID<1F>WHAT.N    a content that is too large for the item's own record, in pieces
//
// An item is ONE record that moves from shelf to shelf: so each change of its state is one
// compare-and-commit, and a follow-up is one step of its parent's commit. What stands before the
// <1F> is what some stores wake by: waiters are not woken by heartbeats and completions.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/queue.h"
#include "base/result.h"
#include "core/item.h"
#include "store/seam.h"

namespace stint::service {

enum class Shelf { Ready, Later, Claimed, Parked, Ended };
constexpr std::array<Shelf, 5> kShelves = {Shelf::Ready, Shelf::Later, Shelf::Claimed,
                                           Shelf::Parked, Shelf::Ended};
constexpr std::string_view kQueuePrefix = "queue/";

std::string queue_key(const core::QueueName& queue);
std::string shelf_prefix(Shelf shelf, const core::QueueName& queue);
std::string shelf_key(Shelf shelf, const core::ItemId& id);
std::string bell_key(const core::QueueName& queue);
std::string due_prefix(const core::QueueName& queue);
std::string due_key(const core::ItemId& id, WallTime not_before);
std::string reserved_prefix(const core::QueueName& queue);
std::string reserved_key(const core::ItemId& id, const Owner& owner);
std::string pace_prefix(const core::QueueName& queue);
std::string pace_key(const core::ItemId& id);
std::string unique_key(const core::QueueName& queue, std::string_view key);
std::string stop_key(const core::ItemId& id);
std::string blob_prefix(const core::ItemId& id);
std::string blob_key(const core::ItemId& id, std::string_view what, std::size_t piece);

// What stands after the last <1F>.
std::optional<core::ItemId> id_of(const core::QueueName& queue, std::string_view key);

// A payload, a checkpoint or a result: in the item's own record, or in pieces beside it.
struct Content {
  bool given = false;
  std::size_t bytes = 0;
  std::string text;        // in the record
  std::size_t pieces = 0;  // beside it: blob_key(id, what, 0 .. pieces-1)
  std::string what;
};

struct StoredItem {
  core::Item item;
  Content payload;
  Content checkpoint;
  Content result;
  std::vector<std::string> labels;
  std::string unique;
  std::string put_by;
  WallTime put_at{};
  std::string parent;
  std::optional<WallTime> not_before;
};

Shelf shelf_of(const core::Item& item, bool delayed);
// The records that find a delayed item: by its time; a reserved one by its owner, too.
std::vector<std::string> index_keys(const core::ItemId& id, const StoredItem& stored);

std::string encode(const StoredItem& item);
Result<StoredItem> decode_item(std::string_view value);
std::string encode(const core::ItemLimits& limits);
Result<core::ItemLimits> decode_limits(std::string_view value);

// The content as it is kept, and the steps that write what does not fit into the record (none if it
// does). `room`: how many bytes it may take there.
Content make_content(const core::ItemId& id, std::string what, const std::string& bytes,
                     std::size_t room, std::vector<store::Step>& steps);

}  // namespace stint::service
