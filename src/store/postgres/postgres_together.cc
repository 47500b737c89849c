// What several threads ask of PostgresStore at once, or one caller proposes at once, in one
// statement.
#include <algorithm>

#include "store/postgres/many_commit.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/reading.h"
#include "store/steps.h"

namespace stint::store {

using postgres::Params;

// What fails is asked alone, in the time that each has left, and fails there.
void PostgresStore::read_together(const std::vector<ReadTask*>& tasks) {
  std::vector<std::string_view> keys;
  for (const ReadTask* task : tasks) keys.insert(keys.end(), task->keys.begin(), task->keys.end());
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  const MonoTime until =
      (*std::ranges::min_element(tasks, {}, [](const ReadTask* t) { return t->until; }))->until;
  auto rows = ask_for(keys, until);
  if (!rows) return;
  auto reading = postgres::reading_of(*rows);
  if (!reading) return;
  std::ranges::sort(reading->entries, {}, &Entry::key);
  for (ReadTask* task : tasks) {
    task->answer = Reading{.entries = postgres::picked(reading->entries, task->keys),
                           .store_wall = reading->store_wall,
                           .store_time = reading->store_time};
  }
}

// A connection learns the mark by its first commit, or here.
bool PostgresStore::know_mark(postgres::Connection& conn, MonoTime until) {
  if (conn.mark) return true;
  const auto rows = conn.run(mark_, Params(), until);
  if (!rows || !rows->expect_columns(1) || rows->count() != 1) return false;
  const auto mark = rows->bigint(0, 0);
  if (mark) conn.mark = *mark;
  return mark.has_value();
}

// Unless it is certain that nothing was done, all of them are unknown: they were one transaction.
void PostgresStore::commit_together(const std::vector<CommitTask*>& tasks) {
  const MonoTime until =
      (*std::ranges::min_element(tasks, {}, [](const CommitTask* t) { return t->until; }))->until;
  if (!gated_ || pool_.pooled()) return;
  auto loan = pool_.borrow(until);
  if (!loan || (*loan)->pooled() || !know_mark(**loan, until)) return;
  postgres::ManyCommit many({.relaxed = false, .gated = true, .mark = (*loan)->mark});
  std::vector<CommitTask*> sent;
  bool relaxed = true;
  for (CommitTask* task : tasks) {
    if (!many.add(task->steps)) continue;
    sent.push_back(task);
    relaxed &= task->sync == Sync::Relaxed;
  }
  if (sent.size() < std::min<std::size_t>(tasks.size(), 2)) return;
  const auto which = (relaxed ? 1U : 0U) + (many.judges_again() ? 2U : 0U);
  auto rows = (*loan)->run(many_[which], many.params(), until);
  if (!rows) {
    if (rows.error().certain) return;
    for (CommitTask* task : sent) task->answer = postgres::sent_unanswered(rows.error().error);
    return;
  }
  auto done = many.result(*rows);
  if (!done) {
    loan->spoil();
    for (CommitTask* task : sent) task->answer = postgres::sent_unanswered(done.error());
    return;
  }
  if (!*done) {
    (*loan)->mark.reset();
    return;
  }
  if (!(*done)->marked.empty()) wake(**loan, (*done)->marked, (*done)->xid);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    auto& committed = (*done)->commits[i];
    if (!committed) continue;
    saw(committed->revision);
    if (committed->revision == 0) committed->revision = last_revision_;
    sent[i]->answer = CommitAnswer(std::move(*committed));
  }
}

std::vector<Result<CommitAnswer>> PostgresStore::commit_many(
    const std::vector<Proposal>& proposals) {
  constexpr std::size_t kMostTogether = 32;
  std::vector<CommitTask> own;
  own.reserve(proposals.size());
  std::vector<CommitTask*> waiting;
  const auto send = [&] {
    if (waiting.size() > 1) commit_together(waiting);
    waiting.clear();
  };
  for (const Proposal& one : proposals) {
    own.push_back({.steps = one.steps, .sync = one.sync, .until = deadline()});
    if (check_sizes(one.steps)) waiting.push_back(&own.back());
    if (waiting.size() == kMostTogether) send();
  }
  send();
  std::vector<Result<CommitAnswer>> out;
  out.reserve(own.size());
  for (CommitTask& task : own) {
    out.push_back(task.answer ? std::move(*task.answer) : commit(task.steps, task.sync));
  }
  return out;
}

}  // namespace stint::store
