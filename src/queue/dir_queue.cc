#include "queue/dir_queue.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/sha256.h"
#include "base/text.h"
#include "os/files.h"
#include "os/pause.h"

namespace stint::queue {
namespace {

constexpr int kMostTries = 200;
constexpr Millis kPoll{1000};  // other machines' changes are not seen by inotify

Error fault(std::string_view doing, int error) { return os::file_error(doing, error); }

bool moves_epoch(const core::ItemVerb& verb) {
  return std::holds_alternative<core::ClaimItem>(verb) ||
         std::holds_alternative<core::ItemOrder>(verb);
}

Error follow_ups_wait(const core::ItemId& id) {
  return unavailable(cat("a follow-up of ", quoted(id.text()),
                         " cannot be put into its queue yet, and would be lost: see that the queue"
                         " is there and can be written, then try again"));
}

// What a verb has just done; null: nothing, or it was done before.
const api::ItemDone* fresh(const Result<api::ItemAnswer>& answer) {
  const auto* done = answer ? std::get_if<api::ItemDone>(&*answer) : nullptr;
  return done != nullptr && !done->repeated ? done : nullptr;
}

}  // namespace

DirQueue::DirQueue(std::string path, api::Events* events, const Clock& clock, Random& random)
    : path_(std::move(path)),
      events_(events),
      clock_(clock),
      wakes_(path_ + "/.wake"),
      random_(random) {}

std::string DirQueue::nonce() {
  const MutexLock lock(mutex_);
  return random_.id_hex().substr(0, 16);
}

std::string DirQueue::folder_path(const core::QueueName& queue) const {
  return cat(path_, "/", queue.text());
}

Result<QueueFolder> DirQueue::folder(const core::QueueName& queue, bool create) const {
  QueueFolder out;
  if (create) {
    if (auto made = QueueFolder::make_root(folder_path(queue)); !made) return made.error();
  }
  const int error = QueueFolder::open(folder_path(queue), create, out);
  if (error == ENOENT) return api::unknown_queue(queue);
  if (error != 0) return fault(cat("opening ", quoted(folder_path(queue))), error);
  return out;
}

Result<WallTime> DirQueue::server_now(const QueueFolder& folder) {
  auto now = folder.server_now(nonce());
  if (!now) return now.error();
  return WallTime(std::chrono::floor<Millis>(*now));
}

// ---- from a decision to one rename

std::string DirQueue::target_of(const Seen& seen, const core::ItemChange& change,
                                const std::string& nonce) const {
  const core::Item& item = change.item;
  const std::string stem = stem_of(seen.place.suffix, item.epoch);
  if (item.state == core::ItemState::Claimed) {
    const Millis length = change.alive.length;
    const std::int64_t deadline = change.alive.op == core::TimerPlan::Op::Keep
                                      ? *seen.place.time_ms
                                      : to_ms(seen.now + length);
    if (change.alive.op != core::TimerPlan::Op::Start) {
      // It never shortens.   G3
      return next_turn(seen.place, std::max(deadline, *seen.place.time_ms), nonce);
    }
    return cat("claimed/", worker_folder(item.owner), "/", stem, ".", deadline, ".", nonce);
  }
  if (change.delay.count() > 0) return cat("later/", stem, ".", to_ms(seen.now + change.delay));
  return cat(folder_of(item.state), "/", stem);
}

// What the new place needs beside it, by name.
std::map<std::string, Notes> DirQueue::notes_of_move(const core::ItemVerb& verb,
                                                     const core::Item& after) {
  if (std::holds_alternative<core::TendItem>(verb)) {
    return {{"janitor", {{"why", after.why}, {"reason", std::string(core::word(after.reason))}}}};
  }
  std::map<std::string, Notes> notes;
  if (const auto* fail = std::get_if<core::FailItem>(&verb)) {
    if (fail->later) notes["back"] = {{"why", "later"}};
    notes["said"] = {{"word", std::string(core::word(after.last))}, {"why", after.why}};
  }
  if (std::holds_alternative<core::ReleaseItem>(verb)) {
    notes["back"] = {{"why", "released"}};
    notes["said"] = {{"word", "released"}, {"why", ""}};
  }
  return notes;
}

// An order takes the next epoch by its note: EEXIST if another order was first.
int DirQueue::note_order(const QueueFolder& folder, const Seen& seen, const core::ItemOrder& order,
                         const core::ItemChange& change) {
  const Notes notes = {{"what", std::string(core::word(order.what))},
                       {"why", order.why},
                       {"by", order.by},
                       {"id", order.id},
                       {"to", order.to.text()}};
  return folder.write_new(note_path(seen.place, change.item.epoch.number(), "order"), encode(notes),
                          nonce());
}

// Takes a turn, and puts what was written already beside the claim, under that turn: whoever was
// about to do something to the claim as it was comes too late now, and its notes count for nothing.
// Nothing slow in between: others would take it away again.   G8
int DirQueue::take_turn(const QueueFolder& folder, Seen& seen, const std::string& chance,
                        const std::map<std::string, std::string>& written) {
  if (seen.place.state == core::ItemState::Claimed) {
    const std::string to = next_turn(seen.place, *seen.place.time_ms, chance);
    int error = folder.root().rename(seen.place.path, to);
    if (error == ENOENT && folder.there(to)) error = 0;  // a lost reply
    if (error != 0) return error;
    seen.place.path = to;
    ++seen.place.turn;
  }
  for (const auto& [what, path] : written) {
    const std::string name = cat(what, ".", turn_of(seen.place));
    const int error =
        folder.root().rename(path, note_path(seen.place, seen.place.epoch.number(), name));
    if (error != 0) return error;
  }
  return 0;
}

// All that stands beside it before the one rename that counts. An errno.
int DirQueue::prepare(const QueueFolder& folder, Seen& seen, const core::ItemVerb& verb,
                      const core::ItemChange& change, const Before& before,
                      const std::string& chance) {
  if (before.at_leisure) {
    if (const int error = before.at_leisure(folder, seen, change); error != 0) return error;
  }
  if (const auto* order = std::get_if<core::ItemOrder>(&verb)) {
    return note_order(folder, seen, *order, change);
  }
  if (change.item.state == core::ItemState::Claimed) return 0;  // the rename is its turn
  std::map<std::string, std::string> written;
  int error = 0;
  for (const auto& [what, notes] : notes_of_move(verb, change.item)) {
    written[what] = cat("tmp/", nonce());
    if (error == 0) error = folder.stage(written[what], encode(notes));
  }
  if (error == 0) error = take_turn(folder, seen, chance, written);
  if (error == 0 && before.in_turn) error = before.in_turn(folder, seen, change);
  if (error == 0) return 0;
  for (const auto& [what, path] : written) folder.remove(path);
  return error;
}

// The rename that counts.
int DirQueue::put_there(const QueueFolder& folder, const std::string& from, const std::string& to,
                        const core::ItemVerb& verb, const core::ItemChange& change) {
  const bool ends = change.item.state != core::ItemState::Claimed && !moves_epoch(verb);
  // A target that bears our chance or our epoch is ours alone, also when the reply was lost.
  if (!ends) return folder.rename(from, to);
  // Another's end may have the same name: whoever looks again finds whose it is.
  if (from != to) {  // else its notes say it all
    if (const int error = folder.root().rename(from, to); error != 0) return error;
    if (const int error = folder.sync_parent(to); error != 0) return error;
  }
  // What was put beside it in its turn is as durable as the move.
  const std::string suffix = to.substr(to.find('/') + 1, core::ItemId::kSuffix);
  const bool noted = !notes_of_move(verb, change.item).empty();
  return noted ? folder.sync_parent(cat("about/", suffix, "/")) : 0;
}

// False: somebody else was first.
Result<bool> DirQueue::move(const QueueFolder& folder, Seen& seen, const core::ItemVerb& verb,
                            const core::ItemChange& change, const Before& before, Millis& granted) {
  const std::string chance = nonce();
  if (const int error = prepare(folder, seen, verb, change, before, chance); error != 0) {
    if (error == EEXIST || error == ENOENT) return false;
    if (error == EBUSY) return follow_ups_wait(seen.id);
    return fault(cat("writing beside ", quoted(seen.id.text())), error);
  }
  if (change.dropped) {
    const int error = folder.remove(seen.place.path);
    if (error == ENOENT) return false;
    if (error != 0) return fault("dropping an item", error);
    if (const std::string key = text_of(seen.put, "unique"); !key.empty()) {
      forget_key(folder, key, seen.id);
    }
    folder.remove_all(cat("about/", seen.place.suffix));
    for (const std::string& name : folder.list("staged")) {
      if (name.starts_with(seen.place.suffix)) folder.remove_all(cat("staged/", name));
    }
    folder.remove(cat("rolling/", stem_of(seen.place.suffix, seen.place.epoch)));
    return true;
  }
  const std::string to = target_of(seen, change, chance);
  const int error = put_there(folder, seen.place.path, to, verb, change);
  if (error == ENOENT) {
    // Whether the reply was lost could not be looked at.
    if (auto ok = folder.sound(); !ok) return Error{Code::UnknownOutcome, ok.error().message};
    if (std::holds_alternative<core::ItemOrder>(verb)) {
      folder.remove(note_path(seen.place, change.item.epoch.number(), "order"));
    }
    return false;
  }
  if (error != 0) return Error{Code::UnknownOutcome, fault("moving an item", error).message};
  seen.place = place_of(to).value_or(seen.place);
  if (change.alive.op != core::TimerPlan::Op::Keep) granted = change.alive.length;
  return true;
}

Result<std::optional<DirQueue::Settled>> DirQueue::settle(const core::ItemId& id,
                                                          const core::ItemVerb& verb,
                                                          const Before& before) {
  using Answer = std::optional<Settled>;
  auto here = folder(id.queue());
  if (!here) {
    if (here.error().code == Code::Invalid) return Answer();
    return here.error();
  }
  for (int tries = 0; tries < kMostTries; ++tries) {
    auto seen = look(*here, id);
    if (!seen) return seen.error();
    if (!*seen) return Answer();
    const core::Context context{.floor = moves_epoch(verb) ? (*seen)->next : Token(),
                                .now_wall = (*seen)->now};
    Settled settled{.decision = core::decide((*seen)->record, verb, context),
                    .seen = std::move(**seen)};
    if (!settled.decision.change) return Answer(std::move(settled));
    auto moved =
        move(*here, settled.seen, verb, *settled.decision.change, before, settled.granted_ttl);
    if (!moved) return moved.error();
    if (!*moved) continue;
    const core::ItemChange& change = *settled.decision.change;
    core::ItemRecord& record = settled.seen.record;
    record.item = change.item;
    record.timers = core::timers_after(record.timers, change, change.alive.length);
    return Answer(std::move(settled));
  }
  return unavailable(cat("the item ", quoted(id.text()), " moves too fast"));
}

Result<api::ItemAnswer> DirQueue::answer(const core::ItemId& id, const core::ItemVerb& verb,
                                         const Before& before) {
  auto settled = settle(id, verb, before);
  if (!settled) return settled.error();
  if (!*settled) {
    note_stale(id, verb, core::ItemCause::NotThere, nullptr);
    return api::ItemAnswer(api::ItemLost{.cause = core::ItemCause::NotThere, .item = {}});
  }
  const Settled& it = **settled;
  const core::ItemOutcome outcome = it.decision.outcome;
  api::QueueItem view = view_of(it.seen);
  os::FileFacts facts;
  if (auto here = folder(id.queue()); here && here->root().facts(it.seen.place.path, facts) == 0) {
    view.payload_bytes = static_cast<std::size_t>(facts.size);
  }
  if (outcome == core::ItemOutcome::Lost || outcome == core::ItemOutcome::Refused) {
    note_stale(id, verb, it.decision.cause, &it.seen.record.item);
    return api::ItemAnswer(api::ItemLost{.cause = it.decision.cause, .item = std::move(view)});
  }
  return api::ItemAnswer(api::ItemDone{.item = std::move(view),
                                       .repeated = outcome == core::ItemOutcome::Repeated,
                                       .granted_ttl = it.granted_ttl});
}

// ---- the worker's verbs

Result<api::ItemAnswer> DirQueue::start(const api::ItemRef& ref, bool reports) {
  if (auto ok = api::check_ref(ref); !ok) return ok.error();
  return answer(
      ref.id, core::StartItem{ref.epoch, reports},
      {.at_leisure = [&](const QueueFolder& here, const Seen& seen, const core::ItemChange&) {
        return here.write(note_path(seen.place, ref.epoch.number(), "start"),
                          encode({{"reports", reports ? "1" : "0"}}), nonce());
      }});
}

Result<api::ItemAnswer> DirQueue::renew(const api::ItemRef& ref, Millis ttl) {
  if (auto ok = api::check_ref(ref); !ok) return ok.error();
  if (auto ok = api::check_length("a ttl", ttl); !ok) return ok.error();
  if (auto ok = core::check_claim_ttl(ttl); ttl.count() > 0 && !ok) return ok.error();
  return answer(ref.id, core::RenewItem{ref.epoch, ttl}, {});
}

Result<api::ItemAnswer> DirQueue::checkpoint(const api::ItemRef& ref, const std::string& marker,
                                             const std::optional<std::string>& data) {
  if (auto ok = api::check_ref(ref); !ok) return ok.error();
  if (auto ok = api::check_marker(marker); !ok) return ok.error();
  if (data) {
    if (auto ok = api::check_data("a checkpoint", *data); !ok) return ok.error();
  }
  return answer(
      ref.id, core::CheckpointItem{ref.epoch, marker},
      {.at_leisure = [&](const QueueFolder& here, const Seen& seen, const core::ItemChange&) {
        const std::uint64_t epoch = ref.epoch.number();
        if (data) {
          const int error = here.write(note_path(seen.place, epoch, "checkpoint"), *data, nonce());
          if (error != 0) return error;
        }
        return here.write(note_path(seen.place, epoch, "progress"), encode({{"marker", marker}}),
                          nonce());
      }});
}

Result<api::ItemAnswer> DirQueue::fail(const api::ItemRef& ref, const std::string& why,
                                       std::optional<Millis> later) {
  if (auto ok = api::check_ref(ref); !ok) return ok.error();
  if (auto ok = api::check_why(why, false); !ok) return ok.error();
  if (auto ok = api::check_length("'later'", later.value_or(Millis(0))); !ok) return ok.error();
  auto done = answer(ref.id, core::FailItem{ref.epoch, why, later}, {});
  if (const auto* it = fresh(done)) {
    record(ref.id, later ? "item_put_off" : "item_failed", it->item.item);
  }
  return done;
}

Result<api::ItemAnswer> DirQueue::release(const api::ItemRef& ref) {
  if (auto ok = api::check_ref(ref); !ok) return ok.error();
  auto done = answer(ref.id, core::ReleaseItem{ref.epoch}, {});
  if (const auto* it = fresh(done)) record(ref.id, "item_released", it->item.item);
  wakes_.touch(ref.id.queue().text());
  return done;
}

// Everything that a completion brings, at `making`; not in place yet.
int DirQueue::stage(const QueueFolder& folder, const Seen& seen, const api::Completion& completion,
                    const std::vector<core::ItemLimits>& limits, const std::string& making,
                    std::vector<core::ItemId>& follow_ups) {
  follow_ups.clear();
  int error = folder.make(making);
  if (error == 0 && completion.result) {
    error = folder.write(cat(making, "/result"), *completion.result, nonce());
  }
  for (std::size_t i = 0; i < completion.then.size() && error == 0; ++i) {
    const api::FollowUp& next = completion.then[i];
    std::optional<core::ItemId> id;
    {
      const MutexLock lock(mutex_);
      id = ids_.make(next.queue, 0, clock_.wall(), random_);
    }
    Notes put = notes_of(limits[i]);
    put["parent"] = seen.id.text();
    put["put_by"] = seen.record.item.owner.text();
    put["put_at_ms"] = cat(to_ms(seen.now));
    const std::string name = cat(making, "/then.", id->suffix(), ".", next.queue.text());
    error = folder.write(cat(name, ".put"), encode(put), nonce());
    if (error == 0) error = folder.write(name, next.payload, nonce());
    follow_ups.push_back(*id);
  }
  if (error == 0) {
    error = folder.write(cat(making, "/digest"), api::digest_of(completion), nonce());
  }
  if (error != 0) folder.remove_all(making);
  return error;
}

Result<api::ItemAnswer> DirQueue::complete(const api::Completion& completion) {
  if (auto ok = api::check_completion(completion); !ok) return ok.error();
  std::vector<core::ItemLimits> limits;
  for (const api::FollowUp& next : completion.then) {
    auto known = config(next.queue);
    if (!known) return known.error();
    limits.push_back(known->limits);
  }
  const core::ItemId& id = completion.ref.id;
  const std::string stem = stem_of(id.suffix(), completion.ref.epoch);
  bool second = false;
  std::string making;
  std::vector<core::ItemId> follow_ups;
  std::optional<std::uint64_t> turn;  // under which it is staged
  auto here = folder(id.queue());
  const Before staged{
      .at_leisure =
          [&](const QueueFolder& to, const Seen& seen, const core::ItemChange&) {
            if (!making.empty()) to.remove_all(making);  // of a try that came to nothing
            making = cat("tmp/", nonce(), ".stage");
            const int error = stage(to, seen, completion, limits, making, follow_ups);
            if (error != 0 || completion.then.empty()) return error;
            return mark_rolling(to, stem);
          },
      .in_turn =
          [&](const QueueFolder& to, const Seen& seen, const core::ItemChange&) {
            turn = seen.place.state == core::ItemState::Claimed ? std::optional(seen.place.turn)
                                                                : std::nullopt;
            return put_stage(to, seen, making, second);
          }};
  auto done =
      answer(id, core::CompleteItem{completion.ref.epoch, api::digest_of(completion)}, staged);
  if (here && !making.empty()) here->remove_all(making);
  if (!done || !std::holds_alternative<api::ItemDone>(*done)) return done;
  if (here) {
    const bool repeated = std::get<api::ItemDone>(*done).repeated;
    // What was told as done once may never have been synced.
    if (const int error = repeated ? here->sync_parent(cat("done/", stem)) : 0; error != 0) {
      return Error{Code::UnknownOutcome, fault("completing an item", error).message};
    }
    if (repeated || !turn || !name_stage(*here, stem, *turn)) settle_stage(*here, stem);
    move_follow_ups(*here, stem);
  }
  if (second) {
    auto now = show(id);
    if (!now) return now.error();
    return api::ItemAnswer(api::ItemLost{.cause = core::ItemCause::Spoken, .item = *now});
  }
  if (!std::get<api::ItemDone>(*done).repeated) {
    ++completions_;
    std::get<api::ItemDone>(*done).follow_ups = std::move(follow_ups);
    record(id, "item_completed", std::get<api::ItemDone>(*done).item.item);
  }
  return done;
}

Result<api::ItemAnswer> DirQueue::order(const core::ItemId& id, const core::ItemOrder& order,
                                        const std::optional<api::Once>& /*once*/) {
  if (auto ok = api::check_order(order); !ok) return ok.error();
  core::ItemOrder with_id = order;
  if (with_id.id.empty()) with_id.id = nonce();
  auto done = answer(id, with_id,
                     {.at_leisure = [&](const QueueFolder& here, const Seen& seen,
                                        const core::ItemChange&) { return finish(here, seen); }});
  if (done && std::holds_alternative<api::ItemDone>(*done)) {
    if (const auto* it = fresh(done)) record(id, core::event_word(order.what), it->item.item);
    wakes_.touch(id.text());
    wakes_.touch(id.queue().text());
  }
  return done;
}

api::QueueTraffic DirQueue::traffic() const {
  return {.puts = puts_,
          .claims = claims_,
          .completions = completions_,
          .stale = stale_,
          .parked = parked_};
}

Result<std::unique_ptr<Watch>> DirQueue::watch(const core::QueueName& queue) {
  return wakes_.watch(queue.text(), kPoll);
}

Result<std::unique_ptr<Watch>> DirQueue::watch_item(const core::ItemId& id) {
  return wakes_.watch(id.text(), kPoll);
}

}  // namespace stint::queue
