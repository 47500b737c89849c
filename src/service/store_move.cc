#include "service/store_move.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/text.h"
#include "core/lease.h"
#include "service/fence_records.h"
#include "service/key_service.h"
#include "service/ledger.h"
#include "service/once_records.h"
#include "service/queue_records.h"
#include "service/slot_records.h"

namespace stint::service {
namespace {

using store::Step;

constexpr std::string_view kOwnPrefix = "own/";
constexpr std::string_view kHistoryPrefix = "hist/";
constexpr std::size_t kResourcesInCommit = 20;  // three records each, below kMaxSteps

// Everything that moves, besides the leases.
constexpr std::array kFencePrefixes = {kSealedPrefix, kSealsPrefix, kFencePrefix, kActPrefix,
                                       kKeyPrefix};
constexpr std::array kSchedulePrefixes = {kJobPrefix, kSlotPrefix, kSkipPrefix, kOncePrefix,
                                          kAnswerPrefix};
// Beside the items themselves: what finds them, and their contents.
constexpr std::array<std::string_view, 6> kBesidePrefixes = {kQueuePrefix, "due/",  "to/",
                                                             "uniq/",      "blob/", "stop/"};
constexpr std::array<std::string_view, 4> kItemPrefixes = {"ready/", "later/", "parked/", "ended/"};
// Stay behind, or end; one that stands in the new store is of a life of its own.
constexpr std::array<std::string_view, 3> kOtherPrefixes = {kOwnPrefix, kHistoryPrefix, "claimed/"};

// True: done. A conflict on a meta record means that somebody else changed it meanwhile.
Result<store::Committed> commit(store::Store& store, const std::vector<Step>& steps) {
  auto answer = store.commit(steps, store::Sync::Durable);
  if (!answer) return answer.error();
  if (const auto* done = std::get_if<store::Committed>(&*answer)) return *done;
  return unavailable("a store was changed by somebody else during the move; start it again");
}

// Calls `each` with every page of records under the prefix.
Status pages(store::Store& store, std::string_view prefix, std::size_t size,
             const std::function<Status(const std::vector<store::Entry>&)>& each) {
  std::string after;
  while (true) {
    auto found = store.scan(
        {.prefix = std::string(prefix), .after = after, .limit = size, .backwards = false});
    if (!found) return found.error();
    if (found->entries.empty()) return {};
    if (auto done = each(found->entries); !done) return done;
    after = found->entries.back().key;
  }
}

struct Found {
  std::string resource;
  core::Record record;
  bool has_work = false;
};

Result<Found> look(store::Store& store, const std::string& resource) {
  auto reading = store.read({own_key(resource), alive_key(resource), work_key(resource),
                             cap_key(resource), rest_key(resource), cool_key(resource)});
  if (!reading) return reading.error();
  const auto& entries = reading->entries;
  Found out{.resource = resource, .record = {}, .has_work = entries[2].present()};
  auto own = decode_own(entries[0].value);
  if (!own) return own.error();
  out.record.own = std::move(*own);
  auto pulse = decode_pulse(entries[1].value);
  if (!pulse) return pulse.error();
  out.record.pulse = *pulse;
  if (out.has_work) {
    auto work = decode_work(entries[2].value);
    if (!work) return work.error();
    out.record.work = std::move(*work);
  }
  out.record.timers = {entries[1].timer, entries[3].timer, entries[4].timer, entries[5].timer};
  return out;
}

// An item that somebody works on could be done there and again here.
Status check_unclaimed(store::Store& from) {
  std::size_t count = 0;
  std::string first;
  const auto walked =
      pages(from, "claimed/", 100, [&](const std::vector<store::Entry>& claims) -> Status {
        if (first.empty()) {
          const std::size_t at = claims.front().key.find(':');
          first = claims.front().key.substr(8, at == std::string::npos ? at : at - 8);
        }
        count += claims.size();
        return {};
      });
  if (!walked) return walked;
  if (count == 0) return {};
  return Error{Code::Held, cat(count, " item(s) claimed (the first in the queue ", quoted(first),
                               "): wait until their workers are done; see 'stint help store'")};
}

// Code::Held: something is. `highest` is raised to the highest token.
Status check_free(store::Store& from, Token& highest) {
  std::string busy;
  std::size_t count = 0;
  const auto walked =
      pages(from, kOwnPrefix, 100, [&](const std::vector<store::Entry>& owns) -> Status {
        for (const store::Entry& entry : owns) {
          auto found = look(from, entry.key.substr(kOwnPrefix.size()));
          if (!found) return found.error();
          highest = std::max(highest, found->record.own->token);
          const core::State state = core::state_of(found->record);
          if (state == core::State::Free) continue;
          if (++count <= 3) {
            busy +=
                cat(busy.empty() ? "" : ", ", quoted(found->resource), " is ", core::word(state));
            if (const Owner& owner = found->record.own->owner; !owner.empty()) {
              busy += cat(state == core::State::Reserved ? " for " : " by ", quoted(owner.text()));
            }
          }
        }
        return {};
      });
  if (!walked) return walked;
  if (count == 0) return check_unclaimed(from);
  return Error{Code::Held, cat(count, " lease(s) not free (", busy,
                               "): wait until they are; see 'stint help store'")};
}

class Mover {
 public:
  Mover(store::Store& from, store::Store& to, const Clock& clock, const Move& move)
      : from_(from), to_(to), clock_(clock), move_(move) {}

  Result<Moved> run(Anchors* to_anchors, Random& random);

 private:
  Status close_old();
  Status open_again(const Error& why_not);
  Status prepare_new();
  Status copy_leases();
  Status copy_records(std::string_view prefix, std::size_t& count);
  Status check_empty();
  Step set_record(std::string key, std::string value) const;
  Status open_new(Anchors* to_anchors, Random& random);

  store::Store& from_;
  store::Store& to_;
  const Clock& clock_;
  const Move& move_;
  Life old_;
  Life new_;
  bool arriving_ = false;  // an earlier move was cut short: what it has written is written again
  Token highest_;
  Moved moved_;
};

Step Mover::set_record(std::string key, std::string value) const {
  Step step;
  step.kind = Step::Kind::Set;
  step.key = std::move(key);
  step.value = std::move(value);
  step.timer = Step::TimerOp::Stop;
  step.expect = arriving_ ? store::Expect::Any : store::Expect::Absent;
  return step;
}

Result<Moved> Mover::run(Anchors* to_anchors, Random& random) {
  if (auto done = prepare_new(); !done) return done.error();
  if (auto done = close_old(); !done) return done.error();
  if (auto free = check_free(from_, highest_); !free) {
    if (auto opened = open_again(free.error()); !opened) return opened.error();
    return free.error();
  }
  if (auto done = copy_leases(); !done) return done.error();
  if (auto done = copy_records(kHistoryPrefix, moved_.grants); !done) return done.error();
  for (const std::string_view prefix : kFencePrefixes) {
    if (auto done = copy_records(prefix, moved_.fences); !done) return done.error();
  }
  for (const std::string_view prefix : kSchedulePrefixes) {
    if (auto done = copy_records(prefix, moved_.slots); !done) return done.error();
  }
  std::size_t beside = 0;
  for (const std::string_view prefix : kBesidePrefixes) {
    if (auto done = copy_records(prefix, beside); !done) return done.error();
  }
  for (const std::string_view prefix : kItemPrefixes) {
    if (auto done = copy_records(prefix, moved_.items); !done) return done.error();
  }
  if (auto done = open_new(to_anchors, random); !done) return done.error();
  return moved_;
}

// Only the store's own meta record and its ledger may be there: a job's record that is replaced
// would set its cursor back.   G9
Status Mover::check_empty() {
  const auto look = [&](const auto& prefixes) -> Status {
    for (const std::string_view prefix : prefixes) {
      auto any = to_.scan({.prefix = std::string(prefix), .after = "", .limit = 1});
      if (!any) return any.error();
      if (any->entries.empty()) continue;
      return invalid(cat("the store ", move_.to_name, " has records of its own (",
                         quoted(printable(any->entries.front().key)),
                         "); move into an empty one. Nothing was changed"));
    }
    return {};
  };
  if (auto ok = look(kOtherPrefixes); !ok) return ok;
  if (auto ok = look(kFencePrefixes); !ok) return ok;
  if (auto ok = look(kSchedulePrefixes); !ok) return ok;
  if (auto ok = look(kBesidePrefixes); !ok) return ok;
  return look(kItemPrefixes);
}

Status Mover::prepare_new() {
  auto life = read_life(to_);
  if (!life) return life.error();
  arriving_ = *life && (*life)->meta.arriving_from == move_.from_name;
  if (!arriving_) {
    if (auto empty = check_empty(); !empty) return empty;
  }
  if (*life) new_ = **life;
  return {};
}

Status Mover::close_old() {
  auto life = read_life(from_);
  if (!life) return life.error();
  if (!*life) return invalid(cat("there is no Stint store at ", move_.from_name));
  old_ = **life;
  if (old_.meta.moved_to == move_.to_name) return {};
  if (!old_.meta.moved_to.empty()) return check_settled(old_.meta);
  if (!old_.meta.arriving_from.empty()) return check_settled(old_.meta);
  old_.meta.moved_to = move_.to_name;
  auto done = commit(from_, {set_meta(old_.meta, store::Expect::Seen, old_.version)});
  if (!done) return done.error();
  old_.version = done->versions.front();
  return {};
}

Status Mover::open_again(const Error& why_not) {
  // A move that was cut short after this point had found everything free.
  if (why_not.code != Code::Held) return {};
  old_.meta.moved_to.clear();
  auto done = commit(from_, {set_meta(old_.meta, store::Expect::Seen, old_.version)});
  if (!done) return done.error();
  return {};
}

Status Mover::copy_leases() {
  // Marked first: whoever opens it meanwhile must not start a life of its own.
  new_.meta.arriving_from = move_.from_name;
  if (new_.meta.generation.empty()) new_.meta.generation = old_.meta.generation;
  auto marked = commit(
      to_, {set_meta(new_.meta, new_.version == 0 ? store::Expect::Absent : store::Expect::Seen,
                     new_.version)});
  if (!marked) return marked.error();
  new_.version = marked->versions.front();
  return pages(from_, kOwnPrefix, kResourcesInCommit,
               [&](const std::vector<store::Entry>& owns) -> Status {
                 std::vector<Step> steps;
                 for (const store::Entry& entry : owns) {
                   auto found = look(from_, entry.key.substr(kOwnPrefix.size()));
                   if (!found) return found.error();
                   const std::string& r = found->resource;
                   core::Pulse pulse = found->record.pulse;
                   // Timers stay behind: when an expired one ended is written down.
                   if (const auto past = core::past_of(found->record, clock_.wall())) {
                     pulse.ended_at = past->ended_at;
                   }
                   steps.push_back(set_record(own_key(r), encode(*found->record.own)));
                   steps.push_back(set_record(alive_key(r), encode(pulse)));
                   if (found->has_work) {
                     steps.push_back(set_record(work_key(r), encode(found->record.work)));
                   }
                 }
                 moved_.leases += owns.size();
                 auto done = commit(to_, steps);
                 if (!done) return done.error();
                 return {};
               });
}

// Records as they are; a timer that runs goes on, from now.
Status Mover::copy_records(std::string_view prefix, std::size_t& count) {
  return pages(from_, prefix, store::Store::kMaxSteps - 4,
               [&](const std::vector<store::Entry>& records) -> Status {
                 std::vector<Step> steps;
                 for (const store::Entry& record : records) {
                   Step& step = steps.emplace_back(set_record(record.key, record.value));
                   if (record.timer.state == TimerState::None) continue;
                   step.timer = Step::TimerOp::Start;
                   step.ttl = std::max(record.timer.remaining.value_or(Millis(0)), Millis(1));
                 }
                 count += records.size();
                 auto done = commit(to_, steps);
                 if (!done) return done.error();
                 return {};
               });
}

Status Mover::open_new(Anchors* to_anchors, Random& random) {
  Meta meta = old_.meta;
  meta.ancestors.push_back(old_.meta.generation);
  // A store that had begun a life of its own keeps it in the line: somebody may have pinned it.
  if (new_.meta.generation != old_.meta.generation) {
    meta.ancestors.push_back(new_.meta.generation);
  }
  meta.generation = Generation::make(random);
  meta.moved_to.clear();
  meta.arriving_from.clear();
  meta.created_at = clock_.wall();
  api::Event event;
  event.at = clock_.wall();
  event.kind = "moved";
  event.details.emplace_back("from", move_.from_name);
  event.details.emplace_back("to", move_.to_name);
  event.details.emplace_back("by", move_.by);
  event.details.emplace_back("leases", static_cast<std::int64_t>(moved_.leases));
  auto opened =
      commit(to_, {set_meta(meta, store::Expect::Seen, new_.version), append_event(event)});
  if (!opened) return opened.error();
  if (to_anchors != nullptr) {
    to_anchors->remember({meta.generation, opened->revision, std::max(highest_, meta.floor)});
  }
  moved_.generation = meta.generation;
  moved_.floor = meta.floor;
  // The old store's ledger tells it too; the move is done either way.
  [[maybe_unused]] const bool told =
      from_.commit({append_event(event)}, store::Sync::Relaxed).has_value();
  return {};
}

}  // namespace

Status check_movable(store::Store& from, const Move& move) {
  auto life = read_life(from);
  if (!life) return life.error();
  if (!*life) return invalid(cat("there is no Stint store at ", move.from_name));
  const Meta& meta = (*life)->meta;
  // A move that was cut short had found everything free.
  if (meta.moved_to == move.to_name) return {};
  if (auto settled = check_settled(meta); !settled) return settled;
  Token highest;
  return check_free(from, highest);
}

Result<Moved> move_leases(store::Store& from, store::Store& to, Anchors* to_anchors, Random& random,
                          const Clock& clock, const Move& move) {
  return Mover(from, to, clock, move).run(to_anchors, random);
}

}  // namespace stint::service
