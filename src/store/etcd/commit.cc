#include "store/etcd/commit.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace stint::store::etcd {
namespace {

constexpr int kMostTries = 100;
constexpr Millis kSideWork{1000};

bool times(const Step& step) {
  const bool kind = step.kind == Step::Kind::Set || step.kind == Step::Kind::Touch;
  return kind && (step.timer == Step::TimerOp::Start || step.timer == Step::TimerOp::Extend);
}

bool extends(const Step& step) { return times(step) && step.timer == Step::TimerOp::Extend; }

}  // namespace

Result<CommitAnswer> Commit::run() {
  for (const Step& step : steps_) {
    CHECK(!extends(step) || step.demand == TimerState::Running, "Extend needs a running timer");
  }
  auto answer = try_until_settled();
  give_back();
  return answer;
}

Result<CommitAnswer> Commit::try_until_settled() {
  for (int tries = 0; tries < kMostTries && !(tries > 0 && deadline_.passed()); ++tries) {
    if (auto ok = prepare(); !ok) return ok.error();
    build();
    if (txn_.compares() > Txn::kMostCompares) return invalid("a commit with too many conditions");
    const Reply reply = parts_.gateway.ask("/v3/kv/txn", txn_.json(), deadline_, Twice::Never);
    if (reply.refusal == Refusal::LeaseNotFound) {
      // Stopped between the grant and here for longer than the ttl: nothing was written.
      for (TimerWork& timer : timers_) timer.lease = {};
      continue;
    }
    if (reply.refusal == Refusal::NoSpace && !surely_not_done()) {
      unknown_ = true;
      return Error{Code::UnknownOutcome, reply.error->message};
    }
    if (!reply) {
      unknown_ = reply.error->code == Code::UnknownOutcome;
      return *reply.error;
    }
    auto answer = parse_txn(reply.body);
    if (!answer || answer->operations.size() != txn_.operations(answer->succeeded)) {
      // Carried out or not: this answer does not tell.
      unknown_ = true;
      return Error{Code::UnknownOutcome, damaged("transaction").message};
    }
    if (answer->succeeded) return CommitAnswer(committed(*answer));
    auto next = refused(*answer);
    if (!next) return next.error();
    if (*next == Next::Done) return CommitAnswer(*conflict_);
  }
  return unavailable("the store is too busy, or went back in time while it was open");
}

// The transaction was answered, so it is over: a record that it would have changed and that is as
// it was expected to be was not changed by it. One that was expected to be absent does not tell: it
// may have been made, and removed by another since.
bool Commit::surely_not_done() const {
  const auto telling = std::ranges::find_if(steps_, [](const Step& step) {
    const bool changes = step.kind == Step::Kind::Set || step.kind == Step::Kind::Remove;
    return changes && step.expect == Expect::Seen;
  });
  if (telling == steps_.end()) return false;
  Txn look;
  look.then(range({.keys = {stored_name(*telling)}, .keys_only = true}));
  const Reply reply = parts_.gateway.ask("/v3/kv/txn", look.json(), deadline_, Twice::Harmless);
  if (!reply) return false;
  const auto answer = parse_txn(reply.body);
  if (!answer || answer->operations.size() != 1) return false;
  const auto& found = answer->operations.front().found;
  return !found.empty() && found.front().modified == telling->version;
}

// Leases that nothing hangs on. Of what was sent without an answer, nobody can say that.
void Commit::give_back() {
  if (unknown_) return;
  for (const TimerWork& timer : timers_) {
    if (!timer.attached) parts_.leases.revoke_later(timer.lease.id, timer.lease.seconds);
  }
}

Status Commit::prepare() {
  log_ = parts_.log.state();
  needs_log_ = false;
  appends_ = false;
  std::set<std::string> new_prefixes;
  std::vector<std::string> to_find;
  for (const Step& step : steps_) {
    if (step.kind == Step::Kind::Append) {
      appends_ = true;
      if (!log_->prefixes.contains(step.key)) new_prefixes.insert(step.key);
      continue;
    }
    const auto parts = split_appended(step.key);
    if (!parts || step.kind == Step::Kind::Set) continue;
    // It may be an appended record. Whether its prefix is one is part of what is compared.
    needs_log_ = true;
    if (log_->prefixes.contains(parts->prefix)) to_find.push_back(step.key);
  }
  needs_log_ |= appends_;
  if (!new_prefixes.empty()) {
    if (auto ok = parts_.log.open_bucket(new_prefixes, deadline_); !ok) return ok.error();
    log_ = parts_.log.state();
  }
  if (!to_find.empty()) {
    auto found = parts_.log.find(to_find, deadline_);
    if (!found) return found.error();
    appended_ = std::move(*found);
  }
  return grant_leases();
}

Status Commit::grant_leases() {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    TimerWork& timer = timers_[i];
    if (!times(steps_[i]) || timer.lease.id != 0 || timer.keep) continue;
    auto lease = parts_.leases.grant(whole_seconds(steps_[i].ttl), deadline_);
    if (!lease) return lease.error();
    timer.lease = *lease;
  }
  return {};
}

std::string Commit::stored_name(const Step& step) const {
  const auto found = appended_.find(step.key);
  return found == appended_.end() ? parts_.keys.record(step.key) : found->second;
}

void Commit::build() {
  txn_ = {};
  places_.assign(steps_.size(), {});
  log_place_.reset();
  if (needs_log_) {
    txn_.compare(mod_revision_is(parts_.keys.log(), log_->bucket));
    log_place_ = txn_.otherwise(etcd::get(parts_.keys.log()));
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const bool appended = appended_.contains(steps_[i].key);
    build_conditions(i, appended);
    build_changes(i, stored_name(steps_[i]), appended);
  }
  // A transaction that only compares is answered from what the one member has; a read makes it ask
  // the others.
  txn_.then(range({.keys = {parts_.keys.format()}, .keys_only = true}));
}

void Commit::build_conditions(std::size_t i, bool appended) {
  const Step& step = steps_[i];
  const std::string record = stored_name(step);
  const KeyRange timer = parts_.keys.timer(step.key);
  const std::string end = parts_.keys.timer_end(step.key);
  const std::size_t before = txn_.compares();
  switch (step.expect) {
    case Expect::Any: break;
    case Expect::Absent: txn_.compare(is_absent({record})); break;
    case Expect::Seen: txn_.compare(mod_revision_is(record, step.version)); break;
  }
  const bool timer_proves = step.demand && *step.demand != TimerState::None;
  if (step.kind == Step::Kind::Touch && step.expect == Expect::Any && !timer_proves) {
    txn_.compare(is_present(record));
  }
  if (step.demand) {
    switch (*step.demand) {
      case TimerState::None: txn_.compare(is_absent(timer)); break;
      case TimerState::Fired: txn_.compare(value_below(timer, kBetweenMarkAndEnd)); break;
      case TimerState::Running:
        if (!extends(step)) {
          txn_.compare(is_present(end));
        } else if (timers_[i].longer != 0) {
          txn_.compare(lease_is(end, timers_[i].longer));
        } else {
          txn_.compare(value_below({end}, end_value(timers_[i].lease.seconds + 1)));
        }
        break;
    }
  }
  if (txn_.compares() == before) return;
  places_[i].seen_record = txn_.otherwise(range({.keys = {record}, .keys_only = true}));
  if (step.demand && !appended) places_[i].seen_timer = txn_.otherwise(range({.keys = timer}));
}

void Commit::build_changes(std::size_t i, const std::string& record, bool appended) {
  const Step& step = steps_[i];
  switch (step.kind) {
    case Step::Kind::Check:
    case Step::Kind::Touch:
      if (step.expect == Expect::Any) {
        places_[i].record = txn_.then(range({.keys = {record}, .keys_only = true}));
      }
      if (step.kind == Step::Kind::Touch) build_timer(i);
      break;
    case Step::Kind::Set:
      txn_.then(put(record, step.value));
      build_timer(i);
      break;
    case Step::Kind::Remove:
      txn_.then(remove(record));
      if (!appended) places_[i].old_lease = txn_.then(take_away(parts_.keys.timer(step.key)));
      break;
    case Step::Kind::Append:
      txn_.then(put(parts_.log.new_name(step.key, log_->bucket, i), step.value));
      break;
  }
}

void Commit::build_timer(std::size_t i) {
  const Step& step = steps_[i];
  const TimerWork& timer = timers_[i];
  switch (step.timer) {
    case Step::TimerOp::Keep: break;
    case Step::TimerOp::Stop:
      places_[i].old_lease = txn_.then(take_away(parts_.keys.timer(step.key)));
      break;
    case Step::TimerOp::Start:
    case Step::TimerOp::Extend:
      if (timer.keep) break;
      txn_.then(put(parts_.keys.timer_mark(step.key), mark_value(timer.lease.seconds)));
      places_[i].old_lease = txn_.then(put_on_lease(
          parts_.keys.timer_end(step.key), end_value(timer.lease.seconds), timer.lease.id));
      break;
  }
}

Committed Commit::committed(const TxnAnswer& answer) {
  Committed done;
  done.revision = answer.revision;
  const auto at = [&](std::optional<std::size_t> place) {
    return place ? &answer.operations[*place] : nullptr;
  };
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    Version version = 0;
    if (step.kind == Step::Kind::Set) version = answer.revision;
    if (step.kind == Step::Kind::Check || step.kind == Step::Kind::Touch) {
      if (step.expect == Expect::Seen) version = step.version;
      const OpAnswer* record = at(places_[i].record);
      if (record != nullptr && !record->found.empty()) version = record->found.front().modified;
    }
    done.versions.push_back(version);
    TimerWork& timer = timers_[i];
    const bool kept = timer.keep;
    timer.attached = times(step) && !kept;
    const std::int64_t seconds = kept ? whole_seconds(step.ttl) : timer.lease.seconds;
    done.granted_ttl.push_back(times(step) ? Millis(seconds * 1000) : step.ttl);
    // Its key has just been moved or removed: nothing hangs on it any more.
    const OpAnswer* old = at(places_[i].old_lease);
    if (old == nullptr) continue;
    for (const KeyValue& before : old->found) {
      const auto length = before.value.starts_with(kBetweenMarkAndEnd)
                              ? seconds_of_mark(before.value.substr(kBetweenMarkAndEnd.size()))
                              : std::nullopt;
      if (length) parts_.leases.revoke_later(before.lease, *length);
    }
  }
  if (appends_ && AppendLog::due(answer.revision)) {
    // The next one tries again.
    const Deadline soon(deadline_.within(kSideWork));
    [[maybe_unused]] const bool opened = parts_.log.open_bucket({}, soon).has_value();
  }
  return done;
}

bool Commit::holds(const Step& step, const OpAnswer* record, const OpAnswer* timer) const {
  const bool there = record != nullptr && !record->found.empty();
  const Version version = there ? record->found.front().modified : 0;
  if (step.expect == Expect::Absent && there) return false;
  if (step.expect == Expect::Seen && version != step.version) return false;
  if (record != nullptr && step.kind == Step::Kind::Touch && !there) return false;
  if (!step.demand) return true;
  const std::size_t keys = timer == nullptr ? 0 : timer->found.size();
  const TimerState state = keys == 0   ? TimerState::None
                           : keys == 1 ? TimerState::Fired
                                       : TimerState::Running;
  return state == *step.demand;
}

Result<Commit::Next> Commit::refused(const TxnAnswer& answer) {
  const auto at = [&](std::optional<std::size_t> place) {
    return place ? &answer.operations[*place] : nullptr;
  };
  if (const OpAnswer* log = at(log_place_)) {
    if (auto ok = parts_.log.learn(*log); !ok) return ok.error();
    // The names of this transaction were made for another bucket: what they say is not sure.
    if (log->found.front().modified != log_->bucket) return Next::Again;
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (!holds(steps_[i], at(places_[i].seen_record), at(places_[i].seen_timer))) {
      conflict_ = Conflict{i};
      return Next::Done;
    }
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const OpAnswer* timer = at(places_[i].seen_timer);
    if (!extends(steps_[i]) || timer == nullptr || timer->found.size() != 2) continue;
    const KeyValue& end = timer->found.back();
    if (end.value < end_value(timers_[i].lease.seconds + 1) && timers_[i].longer == 0) continue;
    if (auto ok = look_at_longer(i, end); !ok) return ok.error();
  }
  return Next::Again;
}

// The timer in place is longer than the extension, so its end may be the later one. Asked before
// the new lease is granted: if less than that is left, the new end is the later one for certain.
Status Commit::look_at_longer(std::size_t i, const KeyValue& end) {
  TimerWork& timer = timers_[i];
  auto left = parts_.leases.remaining(end.lease, deadline_);
  if (!left) return left.error();
  parts_.leases.revoke_later(timer.lease.id, timer.lease.seconds);
  timer.lease = {};
  timer.longer = end.lease;
  timer.keep = *left && **left >= whole_seconds(steps_[i].ttl);
  return {};
}

}  // namespace stint::store::etcd
