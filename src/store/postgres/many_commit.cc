#include "store/postgres/many_commit.h"

#include <algorithm>

#include "base/text.h"
#include "store/postgres/commit_call.h"

namespace stint::store::postgres {
namespace {

using ManyWay = PlainStep::Way;

// Appended keys end in two digits: the place among all that one transaction appends.
constexpr std::size_t kMostAppended = 100;

enum class ManyColumn { Now, Given, Revision, Failed, Marked, Xid, Setting, Count };
constexpr int in(ManyColumn column) { return static_cast<int>(column); }

// Rows in the order of the parameters, which is the keys': they are locked and inserted in that
// order. What is locked is judged after the last lock. `failed` has a commit once for each step
// that does not hold. A row that somebody else has locked is passed over and so looks absent: a
// record that must be there fails its commit, and one that may be there or not is inserted, which
// fails all of them (23505).
constexpr std::string_view kManyJudged =
    "WITH l AS MATERIALIZED (SELECT k.*, coalesce(w.version, c.version) AS version,"
    " coalesce(w.at, c.at) AS at, coalesce(w.fires_at, c.fires_at) AS fires_at"
    " FROM unnest($3::bigint[], $4::smallint[], $5::bytea[], $6::bigint[], $7::smallint[],"
    " $8::bytea[], $9::smallint[], $10::bigint[])"
    " k (commit, kind, key, expect, demand, content, timer, ttl)"
    " LEFT JOIN LATERAL (SELECT r.version, r.at, r.fires_at FROM $S.record r"
    " WHERE r.key = k.key AND k.kind > 0 FOR UPDATE SKIP LOCKED) w ON true"
    " LEFT JOIN LATERAL (SELECT r.version, r.at, r.fires_at FROM $S.record r"
    " WHERE r.key = k.key AND k.kind = 0 FOR KEY SHARE SKIP LOCKED) c ON true),"
    " g AS MATERIALIZED (SELECT clock_timestamp() AS now, nextval('$S.version') AS given,"
    " nextval('$S.revision') AS revision, q.failed";
constexpr std::string_view kManyChanged =
    " FROM (SELECT coalesce(array_agg(l.commit) FILTER (WHERE"
    " l.expect >= 0 AND l.expect <> coalesce(l.version, 0)"
    " OR l.demand >= 0 AND l.demand <> CASE WHEN l.fires_at IS NULL THEN 0"
    " WHEN greatest(clock_timestamp(), l.at) < l.fires_at THEN 1 ELSE 2 END"
    " OR l.kind = 2 AND l.version IS NULL), '{}'::bigint[]) AS failed FROM l) q"
    // The table of the mark is the gate: naming it here takes the lock before the snapshot.
    " WHERE pg_relation_filenode('$S.record'::regclass)::bigint = $1::bigint"
    " AND EXISTS (SELECT FROM $S.mark m WHERE m.epoch = $2::integer)"
    " AND NOT EXISTS (SELECT FROM unnest($11::bytea[], $12::bigint[]) s (key, version)"
    " WHERE (SELECT r.version FROM $S.record r WHERE r.key = s.key) IS DISTINCT FROM s.version)),"
    " u AS (UPDATE $S.record r SET"
    " value = CASE WHEN l.kind = 1 THEN l.content ELSE r.value END,"
    " version = CASE WHEN l.kind = 1 THEN g.given ELSE r.version END,"
    " at = CASE WHEN l.timer = 0 THEN greatest(g.now, r.at) ELSE g.now END,"
    " fires_at = CASE l.timer WHEN 0 THEN r.fires_at WHEN 1 THEN NULL"
    " WHEN 2 THEN g.now + l.ttl * interval '1 millisecond'"
    " ELSE g.now + greatest(r.fires_at - greatest(g.now, r.at),"
    " l.ttl * interval '1 millisecond') END,"
    " ttl_ms = CASE l.timer WHEN 0 THEN r.ttl_ms WHEN 1 THEN NULL WHEN 2 THEN l.ttl"
    " ELSE CASE WHEN r.fires_at - greatest(g.now, r.at) > l.ttl * interval '1 millisecond'"
    " THEN r.ttl_ms ELSE l.ttl END END"
    " FROM g, l WHERE r.key = l.key AND l.kind IN (1, 2) AND l.version IS NOT NULL"
    " AND l.commit <> ALL (g.failed)),"
    " i AS (INSERT INTO $S.record (key, value, version, at, fires_at, ttl_ms, epoch, xid, nth)"
    " SELECT l.key, l.content, g.given, g.now,"
    " CASE WHEN l.timer = 2 THEN g.now + l.ttl * interval '1 millisecond' END,"
    " CASE WHEN l.timer = 2 THEN l.ttl END, NULL::integer, NULL::bigint, NULL::bigint"
    " FROM g, l WHERE l.version IS NULL AND l.kind = 1 AND l.commit <> ALL (g.failed)"
    " UNION ALL SELECT a.head || lpad(txid_current()::text, 14, '0')::bytea || a.tail, a.value,"
    " g.given, g.now, NULL::timestamptz, NULL::bigint, $2::integer, txid_current(),"
    " nextval('$S.nth') FROM g, unnest($13::bytea[], $14::bytea[], $15::bytea[], $16::bigint[])"
    " a (head, tail, value, commit) WHERE a.commit <> ALL (g.failed)";
constexpr std::string_view kManyAnswer =
    " d AS (DELETE FROM $S.record r USING g, l WHERE r.key = l.key AND l.kind = 3"
    " AND l.commit <> ALL (g.failed))"
    // Marks: as in plain_commit.cc.
    " SELECT g.now, g.given, g.revision";
constexpr std::string_view kManyRest =
    ", g.failed, CASE WHEN g.given IS NOT NULL THEN CASE WHEN txid_current() > 0 THEN"
    " CASE WHEN pg_relation_size('$S.waiter'::regclass) > 0 THEN $S.marked($17::bytea[]) END"
    " END END,"
    " CASE WHEN g.given IS NOT NULL THEN txid_current() END, ";

// An insertion may have to wait for another of the same key. What was judged to run must still run
// when all is inserted; else all of it fails (22012).   G3
constexpr std::string_view kFirstEnd =
    ", (SELECT min(l.fires_at) FROM l WHERE l.demand = 1 AND l.commit <> ALL (q.failed))"
    " AS first_end";
constexpr std::string_view kStillRuns =
    " / CASE WHEN (SELECT count(*) FROM i) >= 0 AND clock_timestamp() >= g.first_end"
    " THEN 0 ELSE 1 END";

}  // namespace

std::string many_sql(bool relaxed, bool judges_again) {
  return cat(kManyJudged, judges_again ? kFirstEnd : "", kManyChanged,
             judges_again ? " RETURNING 1)," : "),", kManyAnswer, judges_again ? kStillRuns : "",
             kManyRest, relaxed ? "" : "CASE WHEN g.given IS NULL THEN ",
             "set_config('synchronous_commit', 'off', true)", relaxed ? "" : " END",
             " FROM (SELECT 1) one LEFT JOIN g ON true");
}

bool ManyCommit::gate_is(const std::vector<PlainStep>& steps) const {
  std::size_t next = 0;
  for (const PlainStep& s : steps) {
    if (s.way != ManyWay::Gated) continue;
    if (next == gate_.size() || gate_[next]->key != s.step->key ||
        gate_[next]->version != s.step->version) {
      return false;
    }
    ++next;
  }
  return next == 0 || next == gate_.size();
}

bool ManyCommit::add(const std::vector<Step>& steps) {
  const auto plain = plain_steps(steps, settings_);
  if (!plain || (!gate_.empty() && !gate_is(*plain))) return false;
  std::size_t appending = 0;
  for (const PlainStep& s : *plain) {
    if (s.way == ManyWay::Added) ++appending;
    if (s.way == ManyWay::Added || s.way == ManyWay::Gated) continue;
    // What all check would be a row that all lock.
    if (hardly_written(s.step->key) || keys_.contains(s.step->key)) return false;
  }
  if (appended_.size() + appending > kMostAppended) return false;
  const bool first_at_gate = gate_.empty();
  for (const PlainStep& s : *plain) {
    switch (s.way) {
      case ManyWay::Added: appended_.push_back({s, commits_.size()}); break;
      case ManyWay::Gated:
        if (first_at_gate) gate_.push_back(s.step);
        break;
      case ManyWay::Locked:
      case ManyWay::Made:
        keys_.insert(s.step->key);
        runs_ |= s.step->demand == TimerState::Running;
        inserts_ |= s.step->kind == Step::Kind::Set && s.step->expect != Expect::Seen;
        rows_.push_back({s, commits_.size()});
        break;
    }
  }
  commits_.push_back(&steps);
  return true;
}

Params ManyCommit::params() const {
  const std::int64_t mark = settings_.mark.value_or(0);
  const auto epoch = static_cast<std::int32_t>(mark & 0xFFFFFFFF);
  std::vector<Row> rows = rows_;
  std::ranges::sort(rows, {},
                    [](const Row& row) -> const std::string& { return row.plain.step->key; });
  std::vector<std::int64_t> commits, expects, ttls, gate_versions, append_commits;
  std::vector<std::int16_t> kinds, demands, timers;
  std::vector<std::string_view> keys, contents, gate_keys, head_views, tail_views, values, changed;
  for (const auto& [plain, commit] : rows) {
    const Step& step = *plain.step;
    commits.push_back(static_cast<std::int64_t>(commit));
    kinds.push_back(number_of(step.kind));
    keys.emplace_back(step.key);
    expects.push_back(step.expect == Expect::Seen  ? static_cast<std::int64_t>(step.version)
                      : step.expect == Expect::Any ? -1
                                                   : 0);
    demands.push_back(number_of(step.demand));
    contents.emplace_back(step.value);
    timers.push_back(number_of(step.timer));
    ttls.push_back(step.ttl.count());
    if (changes(step)) changed.emplace_back(step.key);
  }
  for (const Step* step : gate_) {
    gate_keys.emplace_back(step->key);
    gate_versions.push_back(static_cast<std::int64_t>(step->version));
  }
  std::vector<std::string> heads;
  std::vector<std::string> tails;
  for (const auto& [plain, commit] : appended_) {
    heads.push_back(append_head(plain.step->key, epoch));
    tails.push_back(append_tail(tails.size()));
    values.emplace_back(plain.step->value);
    append_commits.push_back(static_cast<std::int64_t>(commit));
    changed.emplace_back(plain.step->key);
  }
  head_views.assign(heads.begin(), heads.end());
  tail_views.assign(tails.begin(), tails.end());
  Params out;
  out.bigint(mark >> 32).integer(epoch).bigints(commits).smallints(kinds).byte_arrays(keys);
  out.bigints(expects).smallints(demands).byte_arrays(contents).smallints(timers).bigints(ttls);
  out.byte_arrays(gate_keys).bigints(gate_versions);
  out.byte_arrays(head_views).byte_arrays(tail_views).byte_arrays(values);
  out.bigints(append_commits).byte_arrays(changed);
  return out;
}

Result<std::optional<ManyCommit::Done>> ManyCommit::result(const Rows& rows) const {
  if (auto ok = rows.expect_columns(in(ManyColumn::Count)); !ok) return ok.error();
  if (rows.count() != 1) return unavailable("the server answered with no row, or several");
  if (rows.is_null(0, in(ManyColumn::Given))) return std::optional<Done>();
  const auto now = rows.instant(0, in(ManyColumn::Now));
  const auto given = rows.bigint(0, in(ManyColumn::Given));
  const auto revision = rows.bigint(0, in(ManyColumn::Revision));
  const auto failed = rows.bigints(0, in(ManyColumn::Failed));
  const auto xid = rows.bigint(0, in(ManyColumn::Xid));
  if (!now) return now.error();
  if (!given) return given.error();
  if (!revision) return revision.error();
  if (!failed) return failed.error();
  if (!xid) return xid.error();
  Done out;
  out.xid = *xid;
  for (std::size_t i = 0; i < commits_.size(); ++i) {
    const bool undone = std::ranges::find(*failed, static_cast<std::int64_t>(i)) != failed->end();
    out.commits.push_back(undone
                              ? std::nullopt
                              : std::optional(plain_committed(
                                    *commits_[i], *now, {.given = *given, .revision = *revision})));
  }
  if (!rows.is_null(0, in(ManyColumn::Marked))) {
    auto marked = rows.byte_arrays(0, in(ManyColumn::Marked));
    if (!marked) return marked.error();
    out.marked = std::move(*marked);
  }
  return std::optional(std::move(out));
}

}  // namespace stint::store::postgres
