#include "service/watched_store.h"

#include <algorithm>

#include "base/text.h"
#include "store/many.h"

namespace stint::service {
namespace {

class WatchedMany final : public WatchedStore, public store::ManyCommits {
 public:
  WatchedMany(store::Store& store, store::ManyCommits& many, Anchors& anchors)
      : WatchedStore(store, anchors), many_(many) {}
  std::vector<Result<store::CommitAnswer>> commit_many(
      const std::vector<store::Proposal>& proposals) override {
    const Sent sent = sending();
    auto answers = many_.commit_many(proposals);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      learn(proposals[i].steps, proposals[i].sync, sent, answers[i]);
    }
    return answers;
  }

 private:
  store::ManyCommits& many_;
};

bool writes(const store::Step& step) {
  return step.kind == store::Step::Kind::Set || step.kind == store::Step::Kind::Append;
}

}  // namespace

std::unique_ptr<WatchedStore> watch_over(store::Store& store, Anchors& anchors) {
  if (auto* many = dynamic_cast<store::ManyCommits*>(&store)) {
    return std::make_unique<WatchedMany>(store, *many, anchors);
  }
  return std::make_unique<WatchedStore>(store, anchors);
}

void WatchedStore::begun(Tell tell) {
  const MutexLock lock(mutex_);
  tell_ = std::move(tell);
}

std::string WatchedStore::trouble() const {
  const MutexLock lock(mutex_);
  return trouble_;
}

Result<store::Reading> WatchedStore::read(const std::vector<std::string>& keys) {
  const std::uint64_t turn = ++turns_;
  auto known = anchors_.recall();
  if (!known) return known.error();
  if (!*known) return store_.read(keys);
  std::vector<std::string> all = keys;
  for (std::string& key : proof_keys(**known, capabilities())) all.push_back(std::move(key));
  auto reading = store_.read(all);
  if (!reading) {
    note(turn, reading.error());
    return reading;
  }
  const Status found = check(**known, reading->entries.data() + keys.size());
  note(turn, found);
  if (!found) return found.error();
  reading->entries.resize(keys.size());
  return reading;
}

Status WatchedStore::check(const Anchor& known, const store::Entry* proof) {
  if (auto ok = check_proof(known, capabilities(), proof); !ok) return ok;
  auto meta = decode_meta(proof->value);
  if (!meta) return meta.error();
  const bool recovered = meta->generation != known.generation;
  if (recovered) {
    if (auto met = anchors_.meet(meta->generation); !met) return met.error();
  }
  const MutexLock lock(mutex_);
  if (recovered) {
    ++lives_;
    newest_ = 0;
    behind_.reset();
  }
  return behind_ ? Status(fell_behind(behind_->now, behind_->seen)) : Status();
}

// Looks come back in another order than they were made: an older one does not undo a newer one.
void WatchedStore::note(std::uint64_t turn, const Status& found) {
  Tell tell;
  std::string why;
  {
    const MutexLock lock(mutex_);
    if (turn < judged_) return;
    judged_ = turn;
    const bool worse = !found && is_went_back(found.error()) && !went_back_;
    went_back_ = !found && (went_back_ || is_went_back(found.error()));
    trouble_ = found ? "" : found.error().message;
    if (!worse || !tell_) return;
    tell = tell_;
    why = trouble_;
  }
  tell(why);
}

Result<store::CommitAnswer> WatchedStore::commit(const std::vector<store::Step>& steps,
                                                 store::Sync sync) {
  const Sent sent = sending();
  auto answer = store_.commit(steps, sync);
  learn(steps, sync, sent, answer);
  return answer;
}

// Every durable commit has a greater number than those that were acknowledged before it was sent. A
// relaxed one may be lost with the store's machine, and its number comes again.
void WatchedStore::learn(const std::vector<store::Step>& steps, store::Sync sync, const Sent& sent,
                         const Result<store::CommitAnswer>& answer) {
  const auto* done = answer ? std::get_if<store::Committed>(&*answer) : nullptr;
  if (done == nullptr || sync != store::Sync::Durable) return;
  if (!capabilities().tail_record.empty() || std::ranges::none_of(steps, writes)) return;
  const MutexLock lock(mutex_);
  if (lives_ != sent.life) return;  // an operator has spoken in between
  if (done->revision <= sent.newest && !behind_) behind_ = {done->revision, sent.newest};
  newest_ = std::max(newest_, done->revision);
}

WatchedStore::Sent WatchedStore::sending() const {
  const MutexLock lock(mutex_);
  return {lives_, newest_};
}

}  // namespace stint::service
