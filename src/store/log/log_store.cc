#include "store/log/log_store.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "os/random.h"
#include "store/append_key.h"
#include "store/commit_together.h"
#include "store/log/group.h"
#include "store/log/opening.h"
#include "store/log/recovery.h"
#include "store/steps.h"

namespace stint::store {

// One commit() call that waits for its turn.
struct LogStore::Pending {
  const std::vector<Step>& steps;
  Sync sync;
  Result<CommitAnswer> answer = CommitAnswer(Conflict{});
  bool wrote = false;
  bool boots = false;  // instead of steps: the boots are to be written
};

LogStore::LogStore(LogOptions options, const Clock& clock, std::unique_ptr<log::Ground> ground)
    : options_(std::move(options)),
      clock_(clock),
      capabilities_{.name = "log",
                    .clock = Capabilities::ClockKind::Monotonic,
                    .smallest_ttl = Millis(100),
                    .ttl_grain = Millis(1),
                    .step = Millis(1),
                    .failover_restarts_timers = false,
                    .durable = true,
                    .relaxed_renewals = true,
                    .may_lose = "releases and progress of the last moments, in a power cut"},
      ground_(std::move(ground)),
      writer_(ground_->root, options_.path, options_.segment_size, os::SystemRandom().next()),
      watches_(std::make_shared<log::Watches>()),
      commits_([this](const std::vector<Pending*>& batch) { run_batch(batch); }) {}

Result<std::unique_ptr<LogStore>> LogStore::open(const LogOptions& options, const Clock& clock) {
  CHECK(options.segment_size >= LogOptions::kSmallestSegment, "a segment must hold a commit");
  auto ground = log::take_ground(options, clock.mono().time_since_epoch());
  if (!ground) return ground.error();
  auto recovered = log::recover((*ground)->root, options.path, options.clock_name.boot_id);
  if (!recovered) return recovered.error();
  auto entered = log::enter(*recovered, options, clock.mono().time_since_epoch());
  if (!entered) return entered.error();
  std::unique_ptr<LogStore> store(new LogStore(options, clock, std::move(*ground)));
  store->opening_ = entered->opening;
  store->opening_.created = store->ground_->created;
  if (auto started = store->start(std::move(*recovered)); !started) return started.error();
  if (!entered->changed) return store;
  if (auto written = store->write_boots(); !written) return written.error();
  return store;
}

// What was made ahead of need is made again when it is needed: it may hold entries that were left
// out.
Status LogStore::start(log::Recovered&& recovered) {
  log::remove_unfinished_snapshot(ground_->root);
  for (const std::uint64_t number : recovered.further) {
    ground_->root.remove(log::segment_name(number));
  }
  if (auto started = writer_.start(recovered.end, std::move(recovered.segment), recovered.unsynced);
      !started) {
    return started;
  }
  // Whoever made the snapshot may have died before its name was synced; until then the log before
  // it is needed.
  if (!recovered.older.empty()) {
    if (const int e = ground_->root.sync()) {
      return log::store_file_error("opening", options_.path, e);
    }
    writer_.give_back(recovered.older);
  }
  for (const BootRow& row : recovered.boots) boots_.push_back(row.boot);
  {
    const MutexLock lock(mutex_);
    table_ = std::move(recovered.table);
    boot_rows_ = std::move(recovered.boots);
    mark_ = recovered.mark;
    applied_ = recovered.end;
  }
  const MutexLock lock(house_mutex_);
  snapshot_from_ = recovered.from;
  snapshot_bytes_ = recovered.snapshot_bytes;
  // Counted as if this process had written it.
  log_bytes_ = 0 - recovered.log_bytes;
  return {};
}

Status LogStore::write_boots() {
  const std::vector<Step> none;
  Pending own{.steps = none, .sync = Sync::Durable, .boots = true};
  commits_.run(own);
  return own.answer ? Status() : Status(own.answer.error());
}

Status LogStore::usable() const {
  if (writer_.spoilt()) {
    return unavailable(cat("the store ", quoted(options_.path),
                           " has to be opened anew: a write to its disk failed, and what the disk "
                           "has is not known. Look at the disk, then start this process again"));
  }
  // A store that nobody else can reach any more tells nothing.
  if (ground_->in_place()) return {};
  return unavailable(
      cat("the store ", quoted(options_.path), " was moved or deleted while in use"));
}

Result<Reading> LogStore::read(const std::vector<std::string>& keys) {
  if (auto ok = usable(); !ok) return ok.error();
  const Moment moment(boots_, clock_.mono().time_since_epoch());
  Reading out{.entries = {}, .store_wall = clock_.wall(), .store_time = moment.now()};
  out.entries.reserve(keys.size());
  const MutexLock lock(mutex_);
  for (const std::string& key : keys) {
    const Row* row = table_.find(key);
    out.entries.push_back(moment.entry(key, row == nullptr ? Row() : *row));
  }
  return out;
}

Result<Reading> LogStore::scan(const ScanRange& range) {
  if (auto ok = usable(); !ok) return ok.error();
  const Moment moment(boots_, clock_.mono().time_since_epoch());
  Reading out{.entries = {}, .store_wall = clock_.wall(), .store_time = moment.now()};
  log::Table::FoundRows rows;
  {
    const MutexLock lock(mutex_);
    rows = table_.scan(range);
  }
  for (auto& [key, row] : rows) {
    out.entries.push_back(moment.entry(std::move(key), std::move(row)));
  }
  return out;
}

Result<CommitAnswer> LogStore::commit(const std::vector<Step>& steps, Sync sync) {
  if (auto ok = check_sizes(steps); !ok) return ok.error();
  Pending own{.steps = steps, .sync = sync};
  commits_.run(own);
  return std::move(own.answer);
}

std::vector<Result<CommitAnswer>> LogStore::commit_many(const std::vector<Proposal>& proposals) {
  return commit_together(commits_, proposals);
}

void LogStore::run_batch(const std::vector<Pending*>& batch) {
  for (std::size_t first = 0; first < batch.size();) {
    std::size_t end = batch.size();
    bool unknown = false;
    Status done = usable();
    if (done) {
      log::Group group(boots_);
      end = plan_group(batch, first, group);
      done = write_group(group, unknown);
    }
    for (std::size_t i = first; !done && i < end; ++i) {
      Error error = done.error();
      // Only who wrote cannot know; a conflict is one with something that may not have happened.
      if (unknown && batch[i]->wrote) error.code = Code::UnknownOutcome;
      batch[i]->answer = error;
    }
    if (done)
      wake({batch.begin() + static_cast<std::ptrdiff_t>(first),
            batch.begin() + static_cast<std::ptrdiff_t>(end)});
    first = end;
  }
  look_after();
}

// As many as fit into one write; each sees what the ones before it did. Returns the first that is
// not in it.
std::size_t LogStore::plan_group(const std::vector<Pending*>& batch, std::size_t first,
                                 log::Group& group) {
  const MutexLock lock(mutex_);
  group.begin(table_, newest_, mark_, clock_.mono().time_since_epoch(), clock_.wall());
  std::size_t at = first;
  for (; at < batch.size() && group.bytes() < options_.segment_size / 4; ++at) {
    Pending& pending = *batch[at];
    if (pending.boots) {
      std::string body(1, static_cast<char>(log::EntryKind::Boots));
      log::pack_boots(body, boot_rows_);
      group.add(std::move(body), true);
      pending.wrote = true;
      continue;
    }
    pending.answer = group.apply(pending.steps, pending.sync == Sync::Durable, pending.wrote);
  }
  return at;
}

// Nobody sees what is not on the disk yet: the table takes it over after the sync.
Status LogStore::write_group(log::Group& group, bool& unknown) {
  if (group.drafts().empty()) return {};
  if (auto written = writer_.write(group.drafts(), group.wants_sync(), unknown); !written) {
    return written;
  }
  const log::Place end = writer_.end();
  {
    const MutexLock lock(mutex_);
    group.take_over(table_, newest_);
    mark_ = group.mark();
    applied_ = end;
  }
  auto still = usable();
  unknown = !still;  // it landed in a directory that may or may not come back
  return still;
}

void LogStore::wake(const std::vector<Pending*>& batch) {
  if (!watches_->anyone()) return;
  for (const Pending* pending : batch) {
    if (!pending->wrote) continue;
    for (const Step& step : pending->steps) {
      if (step.kind == Step::Kind::Check || step.kind == Step::Kind::Touch) continue;
      watches_->wake(step.key);
    }
  }
}

Result<std::unique_ptr<Watch>> LogStore::watch(std::string_view key) {
  return log::Watches::add(watches_, key);
}

// From the oldest to the newest: counting would look at them all.
Result<std::uint64_t> LogStore::appended(const std::string& prefix) {
  if (auto ok = usable(); !ok) return ok.error();
  const MutexLock lock(mutex_);
  const auto oldest = table_.scan({.prefix = prefix, .after = {}, .limit = 1, .backwards = false});
  if (oldest.empty()) return 0;
  return table_.newest(prefix) - append_number(prefix, oldest.front().first) + 1;
}

Result<std::uint64_t> LogStore::revision() {
  if (auto ok = usable(); !ok) return ok.error();
  const MutexLock lock(mutex_);
  return log::revision_of(mark_, boots_);
}

Status LogStore::accept() {
  {
    const MutexLock lock(mutex_);
    for (BootRow& row : boot_rows_) row.copied = false;
  }
  return write_boots();
}

}  // namespace stint::store
