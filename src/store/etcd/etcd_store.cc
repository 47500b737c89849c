#include "store/etcd/etcd_store.h"

#include <algorithm>

#include "base/text.h"
#include "store/steps.h"

namespace stint::store::etcd {
namespace {

Capabilities capabilities_of(const ServerFacts& facts) {
  return {.name = "etcd",
          .clock = Capabilities::ClockKind::TimersOnly,
          .smallest_ttl = Millis(1000),
          .ttl_grain = Millis(1000),
          .step = Millis(1000),
          .failover_restarts_timers = true,
          .durable = true,
          .relaxed_renewals = false,
          .may_lose = cat("nothing that a majority of its members kept; a timer that runs when the "
                          "leader changes starts over",
                          facts.warning.empty() ? "" : "; ", facts.warning)};
}

// The keys of a timer as they were read: mark and end, or the mark alone, or nothing.
Status show_timer(const std::vector<const KeyValue*>& keys, Timer& timer, LeaseId& lease) {
  if (keys.empty()) return {};
  const auto seconds = seconds_of_mark(keys.front()->value);
  if (!seconds || keys.size() > 2) return damaged("timer");
  timer.state = keys.size() == 2 ? TimerState::Running : TimerState::Fired;
  timer.ttl = Millis(*seconds * 1000);
  if (timer.state == TimerState::Running) lease = keys.back()->lease;
  return {};
}

}  // namespace

EtcdStore::EtcdStore(const Settings& settings, const Clock& clock, Millis timeout)
    : clock_(clock),
      timeout_(timeout),
      keys_(settings.root),
      http_(net::make_http_client({.tls = settings.tls}, clock)),
      caller_{.user = settings.gateway.user, .certificate = !settings.tls.certificate.empty()},
      gateway_(settings.gateway, *http_, clock),
      log_(keys_, gateway_),
      leases_(gateway_, clock),
      watches_(keys_, gateway_, *http_, clock, timeout) {}

Result<std::unique_ptr<EtcdStore>> EtcdStore::open(const OpenRequest& request, const Clock& clock) {
  const auto settings = settings_of(request.address);
  if (!settings) return settings.error();
  std::unique_ptr<EtcdStore> store(new EtcdStore(*settings, clock, request.timeout));
  const Deadline deadline(clock, request.timeout);
  auto facts = ask_facts(store->gateway_, deadline);
  if (!facts) return facts.error();
  store->facts_ = std::move(*facts);
  store->capabilities_ = capabilities_of(store->facts_);
  const auto made = find_or_make(store->keys_, store->gateway_, store->log_, request, deadline);
  if (!made) return made.error();
  store->opening_.created = *made;
  return store;
}

Result<std::vector<Finding>> EtcdStore::examine() {
  auto out = facts_.findings();
  out.push_back(ask_rights(gateway_, caller_, keys_.all(), Deadline(clock_, timeout_)));
  return out;
}

void EtcdStore::saw(std::uint64_t revision) {
  std::uint64_t known = seen_revision_;
  while (known < revision && !seen_revision_.compare_exchange_weak(known, revision)) {
  }
}

Result<TxnAnswer> EtcdStore::ask(const Txn& txn, const Deadline& deadline) {
  const Reply reply = gateway_.ask("/v3/kv/txn", txn.json(), deadline, Twice::Harmless);
  if (!reply) return *reply.error;
  auto answer = parse_txn(reply.body);
  if (!answer) return answer.error();
  if (answer->operations.size() != txn.operations(true)) return damaged("transaction");
  saw(answer->revision);
  return answer;
}

Result<Reading> EtcdStore::read(const std::vector<std::string>& keys) {
  if (keys.empty()) return Reading{};
  const Deadline deadline(clock_, timeout_);
  std::vector<std::string> to_find;
  std::shared_ptr<const LogState> known = log_.state();
  while (true) {
    to_find.clear();
    bool unsure = false;  // a key that could be an appended record's
    for (const std::string& key : keys) {
      const auto parts = split_appended(key);
      unsure |= parts.has_value();
      if (parts && known->prefixes.contains(parts->prefix)) to_find.push_back(key);
    }
    auto appended = log_.find(to_find, deadline);
    if (!appended) return appended.error();
    Txn txn;
    for (const std::string& key : keys) {
      const auto found = appended->find(key);
      txn.then(get(found == appended->end() ? keys_.record(key) : found->second));
      txn.then(range({.keys = keys_.timer(key)}));
    }
    if (unsure) txn.then(get(keys_.log()));
    auto answer = ask(txn, deadline);
    if (!answer) return answer.error();
    if (unsure) {
      if (auto ok = log_.learn(answer->operations.back()); !ok) return ok.error();
      const auto before = std::exchange(known, log_.state());
      if (before->prefixes != known->prefixes) continue;
    }
    Reading out;
    std::vector<LeaseId> leases(keys.size(), 0);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const OpAnswer& record = answer->operations[2 * i];
      Entry& entry = out.entries.emplace_back();
      entry.key = keys[i];
      if (record.found.empty()) continue;
      entry.value = record.found.front().value;
      entry.version = record.found.front().modified;
      std::vector<const KeyValue*> timer;
      for (const KeyValue& one : answer->operations[2 * i + 1].found) timer.push_back(&one);
      if (auto ok = show_timer(timer, entry.timer, leases[i]); !ok) return ok.error();
    }
    if (auto ok = fill_remaining(out.entries, leases, deadline); !ok) return ok.error();
    return out;
  }
}

// Rounded down: a holder that counts on it never counts on too much.
Status EtcdStore::fill_remaining(std::vector<Entry>& entries, const std::vector<LeaseId>& leases,
                                 const Deadline& deadline) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Timer& timer = entries[i].timer;
    if (timer.state == TimerState::Fired) timer.remaining = Millis(0);
    if (timer.state != TimerState::Running) continue;
    auto left = leases_.remaining(leases[i], deadline);
    if (!left) return left.error();
    // Ended since: what was read stays what was read.
    timer.remaining = std::min(Millis(left->value_or(0) * 1000), *timer.ttl);
  }
  return {};
}

// Every timer belongs to a record: as many of them as records, from the same place, are enough.
Result<std::vector<Entry>> EtcdStore::scan_records(const ScanRange& range_,
                                                   const Deadline& deadline) {
  const std::string end = range_.prefix + "\xFF";
  std::string from = range_.prefix;
  std::string to = end;
  // The least text above a key that has no NUL.
  if (!range_.after.empty() && !range_.backwards) from = std::max(from, range_.after + '\x01');
  if (!range_.after.empty() && range_.backwards) to = std::min(to, range_.after);
  std::vector<Entry> out;
  if (from >= to || range_.limit == 0) return out;
  const std::uint64_t limit = std::min<std::uint64_t>(range_.limit, 1'000'000);
  const auto keys_from = [&](const std::string& at, const std::string& until) {
    return KeyRange{at, until};
  };
  // Timers stand as KEY \0 a: those of `from` and above, below `to`.
  const KeyRange records = keys_from(keys_.record(from), keys_.record(to));
  const KeyRange timers = keys_from(keys_.timer(from).from, keys_.timer(to).from);
  Txn txn;
  txn.then(range({.keys = records, .limit = limit, .descending = range_.backwards}));
  txn.then(range({.keys = timers, .limit = 2 * limit, .descending = range_.backwards}));
  txn.then(get(keys_.log()));
  auto answer = ask(txn, deadline);
  if (!answer) return answer.error();
  if (auto ok = log_.learn(answer->operations[2]); !ok) return ok.error();
  std::map<std::string, std::vector<const KeyValue*>> by_key;
  for (const KeyValue& one : answer->operations[1].found) {
    const auto key = keys_.timer_of(one.key);
    if (!key) return damaged("timer");
    by_key[*key].push_back(&one);
  }
  for (const KeyValue& stored : answer->operations[0].found) {
    const auto key = keys_.record_of(stored.key);
    if (!key) return damaged("record");
    Entry& entry = out.emplace_back();
    entry.key = *key;
    entry.value = stored.value;
    entry.version = stored.modified;
    auto timer = by_key[*key];
    std::ranges::sort(timer, {}, [](const KeyValue* one) { return one->key; });
    LeaseId ignored = 0;
    if (auto ok = show_timer(timer, entry.timer, ignored); !ok) return ok.error();
  }
  return out;
}

Result<Reading> EtcdStore::scan(const ScanRange& range) {
  const Deadline deadline(clock_, timeout_);
  Reading out;
  // Under a prefix that is appended to stands nothing else.
  if (!log_.state()->prefixes.contains(range.prefix)) {
    auto records = scan_records(range, deadline);
    if (!records) return records.error();
    out.entries = std::move(*records);
  }
  bool merged = false;
  // As it was learnt by now. Held: a `for` over what the call returns would let it go before the
  // first turn, and another thread that learns of a new prefix meanwhile would free it.
  const std::shared_ptr<const LogState> known = log_.state();
  for (const std::string& prefix : known->prefixes) {
    if (!prefix.starts_with(range.prefix) && !range.prefix.starts_with(prefix)) continue;
    auto some =
        log_.list(prefix, numbers_of(range, prefix), range.limit, range.backwards, deadline);
    if (!some) return some.error();
    merged |= !out.entries.empty();
    std::ranges::move(*some, std::back_inserter(out.entries));
  }
  if (!merged) return out;
  std::ranges::sort(out.entries, {}, &Entry::key);
  if (range.backwards) std::ranges::reverse(out.entries);
  if (out.entries.size() > range.limit) out.entries.resize(range.limit);
  return out;
}

Result<CommitAnswer> EtcdStore::commit(const std::vector<Step>& steps, Sync /*sync*/) {
  if (auto ok = check_sizes(steps); !ok) return ok.error();
  const CommitParts parts{.keys = keys_, .gateway = gateway_, .log = log_, .leases = leases_};
  const Deadline deadline(clock_, timeout_);
  auto answer = Commit(parts, steps, deadline).run();
  if (answer) {
    if (const auto* done = std::get_if<Committed>(&*answer)) saw(done->revision);
  }
  return answer;
}

Result<std::unique_ptr<Watch>> EtcdStore::watch(std::string_view key) {
  if (seen_revision_ == 0) {
    if (auto now = revision(); !now) return now.error();
  }
  return watches_.watch(key, seen_revision_);
}

Result<std::uint64_t> EtcdStore::appended(const std::string& prefix) {
  return log_.count(prefix, Deadline(clock_, timeout_));
}

Result<std::uint64_t> EtcdStore::revision() {
  Txn txn;
  txn.then(range({.keys = {keys_.format()}, .count_only = true}));
  auto answer = ask(txn, Deadline(clock_, timeout_));
  if (!answer) return answer.error();
  return answer->revision;
}

}  // namespace stint::store::etcd
