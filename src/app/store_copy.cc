#include "app/store_copy.h"

#include "base/text.h"
#include "store/shared_store.h"

namespace stint::app {
namespace {

// One opening for all that is done to FROM: some stores can be opened only once.
class From {
 public:
  From(std::shared_ptr<store::Store> store, const StoreCopy& copy, const Clock& clock,
       Random& random)
      : store_(std::move(store)), copy_(copy), clock_(clock), random_(random) {}
  Result<std::unique_ptr<Opened>> open() const {
    OpenOptions options = copy_.from;
    options.may_create = false;
    return Opened::open_on(std::make_unique<store::SharedStore>(store_), options, clock_, random_);
  }
  store::Store& store() const { return *store_; }
  const StoreCopy& copy() const { return copy_; }

 private:
  const std::shared_ptr<store::Store> store_;  // shared with what open() gives
  const StoreCopy& copy_;
  const Clock& clock_;
  Random& random_;
};

// The worker of each is stopped, as with `stint queue park`.
Status park_claimed(Opened& opened, const StoreCopy& copy) {
  auto queue = opened.queue();
  if (!queue) return queue.error();
  auto all = (*queue)->queues();
  if (!all) return all.error();
  for (const api::QueueConfig& one : *all) {
    auto items = (*queue)->list({.queue = one.name,
                                 .state = core::ItemState::Claimed,
                                 .limit = std::size_t{1'000'000},
                                 .after = {}});
    if (!items) return items.error();
    for (const api::QueueItem& item : *items) {
      auto done = (*queue)->order(item.id, {.what = core::ItemOrder::What::Park,
                                            .expected = item.item.epoch,
                                            .why = *copy.revoke_why,
                                            .by = copy.by,
                                            .id = {},
                                            .to = {},
                                            .hold = {}});
      if (!done) return done.error();
    }
  }
  return {};
}

// Whoever works under one of the leases notices at once, as with `stint revoke`.
Status revoke_all(const From& from) {
  const StoreCopy& copy = from.copy();
  auto opened = from.open();
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
    if (leases->size() < kCopyPage) return park_claimed(**opened, copy);
    after = leases->back().resource;
  }
}

// Claims that ran out are settled before anything is closed: they are nobody's.
Status settle_claims(const From& from) {
  const StoreCopy& copy = from.copy();
  auto opened = from.open();
  if (!opened) return opened.error();
  auto queue = (*opened)->queue();
  if (!queue) return queue.error();
  auto all = (*queue)->queues();
  if (!all) return all.error();
  if (!all->empty() && (copy.from.url.scheme == "dir" || copy.to.url.scheme == "dir")) {
    return Error{Code::Failed,
                 "the queue of a dir: store is plain files, which are not moved: nothing was "
                 "changed. Let its workers finish, and take the folder 'queues' away first; items "
                 "go from one to the other with 'stint queue ls --json' and 'stint queue put'"};
  }
  for (const api::QueueConfig& one : *all) {
    if (auto tended = (*queue)->tend(one.name); !tended) return tended.error();
  }
  return {};
}

// What is refused is refused before TO is made: opening it would leave an empty store behind. What
// is to be revoked stays until TO is open: a TO that cannot be used costs nobody a lease.
Status check_before(const From& from, const service::Move& move) {
  auto life = service::read_life(from.store());
  if (!life) return life.error();
  if (*life && (*life)->meta.moved_to.empty()) {
    if (auto done = settle_claims(from); !done) return done;
  }
  auto ok = service::check_movable(from.store(), move);
  if (!ok && ok.error().code == Code::Held && from.copy().revoke_why) return {};
  return ok;
}

}  // namespace

Result<service::Moved> copy_store(const StoreCopy& copy, const Clock& clock, Random& random) {
  if (copy.from.url.identity() == copy.to.url.identity()) {
    return invalid("FROM and TO are the same store");
  }
  OpenOptions from_options = copy.from;
  from_options.may_create = false;
  auto opened = open_known_store(from_options, clock);
  if (!opened) return opened.error();
  const From from(std::move(*opened), copy, clock, random);
  const service::Move move{
      .from_name = copy.from.url.printable, .to_name = copy.to.url.printable, .by = copy.by};
  if (auto ok = check_before(from, move); !ok) return ok.error();
  auto to = open_store(copy.to, clock);
  if (!to) return to.error();
  const auto anchors = anchor_file(copy.to);
  // Between a revocation and the move somebody may have taken a lease again.
  constexpr int kMostRounds = 10;
  for (int round = 0;; ++round) {
    // A move that was cut short has closed the old store: there is nothing left to settle.
    auto life = service::read_life(from.store());
    if (!life) return life.error();
    if (*life && (*life)->meta.moved_to.empty()) {
      if (auto done = settle_claims(from); !done) return done.error();
      if (copy.revoke_why) {
        if (auto done = revoke_all(from); !done) return done.error();
      }
    }
    auto moved = service::move_leases(from.store(), **to, anchors.get(), random, clock, move);
    const bool again = copy.revoke_why && round < kMostRounds;
    if (moved || moved.error().code != Code::Held || !again) return moved;
  }
}

}  // namespace stint::app
