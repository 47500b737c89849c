// The verbs of `stint queue`; and what they share.
#pragma once

#include <optional>
#include <string>

#include "api/queue.h"
#include "cli/session.h"

namespace stint::cli {

int queue_put(Session& session);
int queue_claim(Session& session);
int queue_ls(Session& session);
int queue_show(Session& session);
int queue_renew(Session& session);
int queue_complete(Session& session);
int queue_fail(Session& session);
int queue_release(Session& session);
int queue_checkpoint(Session& session);
int queue_order(Session& session);  // park, requeue, reassign, cancel, replay, drop

// The operand after the verb, else STINT_ITEM.
Result<core::ItemId> item_id(Session& session);
// With --epoch, else STINT_EPOCH of that very item.
Result<api::ItemRef> item_ref(Session& session);
// --max-attempts, --claim-ttl ...; empty: none of them is given.
Result<std::optional<core::ItemLimits>> given_limits(Session& session, core::ItemLimits base);
// The whole file; "-": standard input. Larger than a content may be: an error.
Result<std::string> read_content(std::string_view what, const std::string& path);
Result<api::Queue*> open_queue(Session& session);
// Of ./stint.toml and of the user's own file, the nearer first. Before anything else: the former
// may name the store.
Result<std::vector<api::QueueConfig>> declared_queues(Session& session);
// ... for who puts or works: a declared queue is there afterwards, with those limits.
Result<api::Queue*> open_declared_queue(Session& session, const core::QueueName& name,
                                        const std::vector<api::QueueConfig>& declared);

// How an answer is told; 12 if it is lost.
int tell(Session& session, const Result<api::ItemAnswer>& answer, Token offered);

}  // namespace stint::cli
