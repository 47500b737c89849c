#include "app/store_copy.h"

#include "base/text.h"
#include "store/seam.h"

namespace stint::app {
namespace {

// Whoever works under one of the leases notices at once, as with `stint revoke`.
Status revoke_all(const StoreCopy& copy, const Clock& clock, Random& random) {
  OpenOptions from = copy.from;
  from.may_create = false;
  auto opened = Opened::open(from, clock, random);
  if (!opened) return opened.error();
  constexpr std::size_t kCopyPage = 500;
  std::string after;
  while (true) {
    auto leases = (*opened)->leases().list({.prefix = "", .after = after, .limit = kCopyPage});
    if (!leases) return leases.error();
    for (const api::Lease& lease : *leases) {
      if (lease.state == core::State::Free) continue;
      auto name = ResourceName::parse(lease.resource);
      if (!name) return name.error();
      auto done = (*opened)->leases().revoke({*name, lease.token, *copy.revoke_why, copy.by},
                                             core::Reason::Revoked);
      if (!done) return done.error();
    }
    if (leases->size() < kCopyPage) return {};
    after = leases->back().resource;
  }
}

}  // namespace

Result<service::Moved> copy_store(const StoreCopy& copy, const Clock& clock, Random& random) {
  if (copy.from.url.identity() == copy.to.url.identity()) {
    return invalid("FROM and TO are the same store");
  }
  OpenOptions from_options = copy.from;
  from_options.may_create = false;
  auto from = open_store(from_options, clock);
  if (!from) return from.error();
  auto to = open_store(copy.to, clock);
  if (!to) return to.error();
  const auto anchors = anchor_file(copy.to);
  const service::Move move{
      .from_name = copy.from.url.printable, .to_name = copy.to.url.printable, .by = copy.by};
  // Between a revocation and the move somebody may have taken a lease again.
  constexpr int kMostRounds = 10;
  for (int round = 0;; ++round) {
    if (copy.revoke_why) {
      // A move that was cut short has closed the old store: there is nothing left to revoke.
      auto life = service::read_life(**from);
      if (!life) return life.error();
      if (*life && (*life)->meta.moved_to.empty()) {
        if (auto done = revoke_all(copy, clock, random); !done) return done.error();
      }
    }
    auto moved = service::move_leases(**from, **to, anchors.get(), random, clock, move);
    const bool again = copy.revoke_why && round < kMostRounds;
    if (moved || moved.error().code != Code::Held || !again) return moved;
  }
}

}  // namespace stint::app
