// How a lease is laid out in a store: keys and values. The values are JSON, so that people can read
// them.
//
//   meta/store    generation, its ancestors, the floor
//   own/R         token, owner, claim hash, reason: changes only with ownership
//   alive/R       how it stands; its timer is the lease's (what renew touches)
//   work/R        note and progress
//   cap/R rest/R cool/R   timers of max_hold, at_least and cooldown, only where used
//   hist/R<1F>N   the grant with token N, once it has ended
//   sealed/R      the targets that holders of R have sealed, or are about to; outlives the lease's
//                 own records, as the fences at the targets do
//   seals/R       when each of them was sealed last, and since when it is remembered
//   fence/T       the fence of a target that keeps none itself       (service/fence_records.h)
//   act/NAME<1F>K intent and result of `stint admit NAME --key K`
//   job/J         a job: how far it is decided, what is due, what runs    (service/slot_records.h)
//   slot/J<1F>T   a slot that has ended; skip/J<1F>T a range of dropped ones
//   once/K        `stint once K`
//   bell/jobs     changes when a job is to be looked at
//   quiet/H       refusals at a target (H: its hash) since the last line in the ledger; its timer
//                 says how long there is no other line
//   key/ID        a key of the server, hashed                     (service/key_service.h)
//   answer/K      the answer to a request with an idempotency key (service/once_records.h)
//   ev/N          the ledger
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/events.h"
#include "api/lease.h"
#include "base/result.h"
#include "core/lease.h"

namespace stint::service {

constexpr std::string_view kMetaKey = "meta/store";
constexpr std::string_view kLedgerPrefix = "ev/";

std::string own_key(std::string_view resource);
std::string alive_key(std::string_view resource);
std::string work_key(std::string_view resource);
std::string cap_key(std::string_view resource);
std::string rest_key(std::string_view resource);
std::string cool_key(std::string_view resource);
std::string history_prefix(std::string_view resource);
std::string history_key(std::string_view resource, Token token);

// The life of the store.
struct Meta {
  Generation generation;
  std::vector<Generation> ancestors;
  Token floor;
  WallTime created_at{};
  std::string moved_to;       // where its leases went; it gives no more grants
  std::string arriving_from;  // leases of another store are on their way; no grants yet
};

std::string encode(const Meta& meta);
std::string encode(const core::Ownership& own);
std::string encode(const core::Pulse& pulse);
std::string encode(const core::Work& work);
std::string encode(const core::Past& past);
std::string encode(const api::Event& event);

// Hostile or damaged values: Code::Unavailable, never a default.
Result<Meta> decode_meta(std::string_view value);
Result<core::Ownership> decode_own(std::string_view value);
Result<core::Pulse> decode_pulse(std::string_view value);
Result<core::Work> decode_work(std::string_view value);
Result<api::PastGrant> decode_past(std::string_view value);
Result<api::Event> decode_event(std::string_view value);

}  // namespace stint::service
