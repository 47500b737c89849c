#include "store/dir/dir_store.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "os/filesystem.h"
#include "store/dir/courtesy.h"
#include "store/dir/readable.h"
#include "store/file_rights.h"
#include "store/steps.h"
#include "store/wake_topic.h"

namespace stint::store {

using dir::LogFile;
using dir::Placed;

namespace {

constexpr std::size_t kMostInBatch = 64;
constexpr Millis kCourtesy{200};
constexpr Millis kNoCourtesyFor{5000};

Error copied_error(const std::string& path) {
  return unavailable(cat("the store ", quoted(path),
                         " was copied or restored from another directory. Tokens issued since that "
                         "copy are not in it, so it is refused until an operator has looked at it: "
                         "see docs/guides/restore.md"));
}

}  // namespace

// One commit() call that waits for its turn.
struct DirStore::Pending {
  const std::vector<Step>& steps;
  Sync sync;
  Result<CommitAnswer> answer = CommitAnswer(Conflict{});
};

DirStore::DirStore(DirOptions options, const Clock& clock, dir::Place place)
    : options_(std::move(options)),
      clock_(clock),
      place_(std::move(place)),
      wake_files_(options_.path + "/wake", place_.modes),
      capabilities_{.name = "dir",
                    .clock = Capabilities::ClockKind::Wall,
                    .smallest_ttl = Millis(100),
                    .ttl_grain = Millis(1),
                    .step = Millis(50),
                    .failover_restarts_timers = false,
                    .durable = true,
                    .relaxed_renewals = false,
                    .may_lose =
                        "releases and progress of the last moments, in a power cut of the "
                        "file server; more, if it acknowledges before it syncs"},
      replica_(place_),
      server_clock_(clock_, place_.clock),
      commits_([this](const std::vector<Pending*>& batch) { run_in_parts(batch); }) {}

DirStore::~DirStore() = default;

Result<std::unique_ptr<DirStore>> DirStore::open(const DirOptions& options, const Clock& clock) {
  os::SystemRandom random;
  auto place = dir::open_place(options.path, options.may_create, random);
  if (!place) return place.error();
  std::unique_ptr<DirStore> store(new DirStore(options, clock, std::move(*place)));
  if (auto entered = store->enter(); !entered) return entered.error();
  return store;
}

Status DirStore::enter() {
  auto kind = os::filesystem_of(place_.path);
  if (!kind) return kind.error();
  // Where another machine may write, nobody is told: there a waiter looks again and again.
  constexpr std::array<std::string_view, 8> kOfOneMachine = {"ext4", "xfs",   "btrfs",   "f2fs",
                                                             "zfs",  "tmpfs", "overlay", "ramfs"};
  const bool local = std::ranges::find(kOfOneMachine, *kind) != kOfOneMachine.end();
  poll_ = options_.poll;
  if (!poll_ && !local) poll_ = Millis(1000);
  // Overlays and some user-space file systems make up a directory's inode at every mount.
  const bool stable_inodes = (local && *kind != "overlay") || *kind == "nfs";
  const MutexLock lock(mutex_);
  if (auto fresh = replica_.refresh(); !fresh) return fresh;
  opening_.created = place_.created;
  opening_.copied =
      stable_inodes && !replica_.identity().matches(dir::Identity::of(place_.log_facts));
  if (opening_.copied && !options_.accept_copy) return copied_error(place_.path);
  return {};
}

Result<Reading> DirStore::read(const std::vector<std::string>& keys) {
  const MutexLock lock(mutex_);
  if (auto fresh = replica_.refresh(); !fresh) return fresh.error();
  auto now = server_clock_.now(replica_.last_facts().changed);
  if (!now) return now.error();
  Reading out{.entries = {},
              .store_wall = WallTime(std::chrono::duration_cast<Millis>(*now)),
              .store_time = *now};
  for (const std::string& key : keys) {
    auto slot = replica_.state().look(key);
    if (!slot) return slot.error();
    out.entries.push_back(dir::entry_of(key, *slot, *now));
  }
  return out;
}

Result<Reading> DirStore::scan(const ScanRange& range) {
  const MutexLock lock(mutex_);
  if (auto fresh = replica_.refresh(); !fresh) return fresh.error();
  auto now = server_clock_.now(replica_.last_facts().changed);
  if (!now) return now.error();
  Reading out{.entries = {},
              .store_wall = WallTime(std::chrono::duration_cast<Millis>(*now)),
              .store_time = *now};
  auto scanned = replica_.state().scan(range, [&](std::string_view key, const dir::Record& record) {
    out.entries.push_back(dir::entry_of(std::string(key), record, *now));
  });
  if (!scanned) return scanned.error();
  return out;
}

Result<CommitAnswer> DirStore::commit(const std::vector<Step>& steps, Sync sync) {
  if (auto ok = check_sizes(steps); !ok) return ok.error();
  Pending own{.steps = steps, .sync = sync};
  commits_.run(own);
  if (own.answer && std::holds_alternative<Committed>(*own.answer)) snapshot_if_due();
  return std::move(own.answer);
}

// A file of the log has a size: many commits are several files.
void DirStore::run_in_parts(const std::vector<Pending*>& batch) {
  for (auto from = batch.begin(); from != batch.end();) {
    const auto rest = static_cast<std::size_t>(batch.end() - from);
    const auto to = from + static_cast<std::ptrdiff_t>(std::min(rest, kMostInBatch));
    run_batch({from, to});
    from = to;
  }
}

void DirStore::run_batch(const std::vector<Pending*>& batch) {
  const auto fail = [&batch](const Error& error) {
    for (Pending* pending : batch) pending->answer = error;
  };
  const MonoTime deadline = clock_.mono() + options_.timeout;
  dir::Courtesy courtesy;
  while (true) {
    auto done = attempt(batch);
    if (!done) return fail(done.error());
    if (*done == Attempt::Done) return;
    if (clock_.mono() >= deadline) {
      return fail(unavailable(cat("other writers of the store ", quoted(place_.path),
                                  " were faster for ", format_duration(options_.timeout))));
    }
    if (courtesy.held() || clock_.mono() < no_courtesy_before_) continue;
    if (!courtesy.take(place_, clock_, kCourtesy)) {
      no_courtesy_before_ = clock_.mono() + kNoCourtesyFor;
    }
  }
}

Result<dir::Plan> DirStore::plan(const std::vector<Pending*>& batch, const dir::State& state,
                                 dir::Number number, Nanos now) {
  dir::Plan plan(state, number, now);
  for (Pending* pending : batch) {
    pending->answer = plan.add(pending->steps);
    if (!pending->answer) return pending->answer.error();
  }
  return plan;
}

void DirStore::begin_file(LogFile& file) {
  file.number = replica_.last() + 1;
  file.nonce = random_.next();
  file.previous = replica_.nonce();
  file.previous_void = replica_.last_void();
  file.base_at = replica_.base_at();
}

// Decides on the newest state; nothing: there is nothing to write.
Result<std::optional<DirStore::Draft>> DirStore::draft(const std::vector<Pending*>& batch) {
  const MutexLock lock(mutex_);
  if (auto fresh = replica_.refresh(); !fresh) return fresh.error();
  auto now = server_clock_.now(replica_.last_facts().changed);
  if (!now) return now.error();
  Draft draft;
  begin_file(draft.file);
  const dir::State& state = replica_.state();
  {
    auto first = plan(batch, state, draft.file.number, *now);
    if (!first) return first.error();
    if (first->changes().empty()) return std::optional<Draft>();
  }
  // The server's time, after the call and before the link: what has fired by now stays fired, and
  // what must still be running is judged by the time of the link.
  auto staged = dir::stage(place_, draft.file.number, draft.file.nonce);
  if (!staged) return staged.error();
  server_clock_.learn(staged->changed);
  auto planned = plan(batch, state, draft.file.number, staged->changed);
  if (!planned || planned->changes().empty()) {
    place_.tmp.remove(staged->name);
    if (!planned) return planned.error();
    return std::optional<Draft>();
  }
  draft.file.changes = planned->changes();
  draft.file.valid_before = planned->valid_before();
  for (const Pending* pending : batch) draft.file.durable |= pending->sync == Sync::Durable;
  draft.staged = std::move(*staged);
  draft.below = replica_.last_facts();
  return std::optional<Draft>(std::move(draft));
}

Result<DirStore::Attempt> DirStore::attempt(const std::vector<Pending*>& batch) {
  auto drafted = draft(batch);
  if (!drafted) return drafted.error();
  if (!*drafted) return Attempt::Done;
  Draft& draft = **drafted;
  const Placed placed = dir::put_in_place(place_, draft.staged, draft.file, draft.below);
  auto settled = settle(draft, placed);
  if (settled && *settled == Attempt::Done) tell(batch, draft.file);
  return settled;
}

Result<DirStore::Attempt> DirStore::settle(Draft& draft, const Placed& placed) {
  switch (placed.kind) {
    case Placed::Kind::Beaten: return Attempt::Again;
    case Placed::Kind::Failed: return placed.error;
    case Placed::Kind::Stray: return settle_stray(draft.file);
    case Placed::Kind::Unknown: {
      const MutexLock lock(mutex_);
      replica_.forget();
      return placed.error;
    }
    case Placed::Kind::Linked: break;
  }
  const MutexLock lock(mutex_);
  const dir::Number number = draft.file.number;
  if (replica_.last() + 1 == number) {
    auto counts = replica_.apply_own(draft.file, placed.facts);
    if (!counts) return Error{Code::UnknownOutcome, counts.error().message};
  }
  // The name under which the one below was staged may go now: how that one was judged is written.
  place_.tmp.remove(dir::staged_name(number - 1, draft.file.previous));
  if (!draft.file.valid_before) return Attempt::Done;
  // Its ctime says when it was linked, unless a later commit is there: then that one says it.
  if (auto fresh = replica_.refresh(); !fresh) {
    return Error{Code::UnknownOutcome, fresh.error().message};
  }
  const auto is_void = replica_.void_at(number);
  if (!is_void) return Error{Code::UnknownOutcome, "a commit was overtaken by very many others"};
  return *is_void ? Attempt::Again : Attempt::Done;
}

// The number below is gone: so many others came since that old numbers were removed. Either the
// commit is one of them, or its number had come free again and it counts for nothing.
Result<DirStore::Attempt> DirStore::settle_stray(const LogFile& file) {
  const MutexLock lock(mutex_);
  const auto unknown = [](const std::string& message) {
    return Error{Code::UnknownOutcome, message};
  };
  replica_.forget();
  if (auto fresh = replica_.refresh(); !fresh) return unknown(fresh.error().message);
  const auto nonce = replica_.nonce_at(file.number);
  if (!nonce && file.number <= replica_.last()) {
    return unknown("a commit was overtaken by very many others");
  }
  if (nonce != file.nonce) {
    auto there = replica_.read(file.number);
    if (!there) return unknown(there.error().message);
    if (*there && (*there)->file.nonce == file.nonce) {
      place_.log.remove(dir::file_name(file.number));
      // Above the end of the log: numbers were taken away from under this process.
      if (!nonce) return unknown("the log has lost the commits below this one");
    }
    place_.tmp.remove(dir::staged_name(file.number, file.nonce));
    return Attempt::Again;
  }
  if (!file.valid_before) return Attempt::Done;
  const auto is_void = replica_.void_at(file.number);
  if (!is_void) return unknown("a commit was overtaken by very many others");
  return *is_void ? Attempt::Again : Attempt::Done;
}

// After the commit: the readable copy, and whoever waits.
void DirStore::tell(const std::vector<Pending*>& batch, const LogFile& file) const {
  if (options_.readable) dir::show(place_, file.changes, file.number);
  std::set<std::string_view> topics;
  for (const Pending* pending : batch) {
    if (!pending->answer || !std::holds_alternative<Committed>(*pending->answer)) continue;
    for (const Step& step : pending->steps) {
      if (step.kind == Step::Kind::Check || step.kind == Step::Kind::Touch) continue;
      topics.insert(wake_topic(step.key));
    }
  }
  for (const std::string_view topic : topics) wake_files_.touch(topic);
}

Result<std::unique_ptr<Watch>> DirStore::watch(std::string_view key) {
  return wake_files_.watch(wake_topic(key), poll_);
}

Result<std::uint64_t> DirStore::appended(const std::string& prefix) {
  const MutexLock lock(mutex_);
  if (auto fresh = replica_.refresh(); !fresh) return fresh.error();
  const auto& counts = replica_.state().appended();
  const auto found = counts.find(prefix);
  return found == counts.end() ? 0 : found->second;
}

Result<std::vector<Finding>> DirStore::examine() {
  const std::string& path = options_.path;
  return std::vector<Finding>{
      file_rights({.own = {path, path + "/log", path + "/snap", path + "/tmp", path + "/clock"}})};
}

Result<std::uint64_t> DirStore::revision() {
  const MutexLock lock(mutex_);
  if (auto fresh = replica_.refresh(); !fresh) return fresh.error();
  return replica_.last();
}

Status DirStore::accept() {
  auto done = commit_file([this](LogFile& file, const dir::Replica&) {
    file.identity = dir::Identity::of(place_.log_facts);
    return true;
  });
  return done ? Status() : Status(done.error());
}

}  // namespace stint::store
