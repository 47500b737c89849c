#include "store/postgres/plain_commit.h"

#include <algorithm>

#include "base/text.h"

namespace stint::store::postgres {
namespace {

using Way = PlainStep::Way;
using Kind = Step::Kind;
using TimerOp = Step::TimerOp;

// Each is planned and kept by every connection: the shapes that are met often are a handful.
constexpr std::size_t kMostShapes = 48;
constexpr std::size_t kMostSteps = 8;

enum class Column { Bad, Now, Given, Revision, Marked, Xid, Setting, Count };
constexpr int at(Column column) { return static_cast<int>(column); }

bool starts(const Step& step) {
  return step.timer == TimerOp::Start || step.timer == TimerOp::Extend;
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (const std::string& part : parts) out += cat(out.empty() ? "" : between, part);
  return out;
}

bool has_changes(const std::vector<PlainStep>& steps) {
  return std::ranges::any_of(steps, [](const PlainStep& s) { return changes(*s.step); });
}

bool writes_if_absent(const PlainStep& s) {
  return s.way == Way::Locked && s.step->kind == Kind::Set && s.step->expect == Expect::Any;
}

// The versions that a commit answers with must be known without asking for them.
std::optional<Way> way_of(const Step& step, bool gated) {
  if (step.expect == Expect::Seen && (step.version == 0 || step.version > INT64_MAX)) return {};
  const bool seen = step.expect == Expect::Seen;
  const bool rare = hardly_written(step.key);
  switch (step.kind) {
    case Kind::Check:
      if (!seen) return {};
      return rare && gated && !step.demand ? Way::Gated : Way::Locked;
    case Kind::Touch: return seen ? std::optional(Way::Locked) : std::nullopt;
    case Kind::Remove: return seen && !rare ? std::optional(Way::Locked) : std::nullopt;
    case Kind::Append:
      if (step.expect != Expect::Any || step.demand || step.timer != TimerOp::Keep) return {};
      return Way::Added;
    case Kind::Set:
      if (rare) return {};  // the gate is the function's
      if (step.expect != Expect::Absent) return Way::Locked;
      return step.demand ? std::nullopt : std::optional(Way::Made);
  }
  return {};
}

}  // namespace

std::optional<std::vector<PlainStep>> plain_steps(const std::vector<Step>& steps,
                                                  const PlainSettings& settings) {
  if (steps.size() > kMostSteps) return std::nullopt;
  std::vector<PlainStep> out;
  out.reserve(steps.size());
  // A commit that only touches has no need of the mark, and so does not stand at the gate.
  const bool changing = std::ranges::any_of(steps, changes);
  if (changing && !settings.mark) return std::nullopt;
  const bool gated = settings.gated && changing;
  bool any = false;
  for (const std::size_t place : in_key_order(steps)) {
    const Step& step = steps[place];
    const auto way = way_of(step, gated);
    if (!way) return std::nullopt;
    // A record that is checked beside its writing has rules of its own.
    const bool again = !out.empty() && out.back().step->key == step.key;
    if (again && step.kind != Kind::Append) return std::nullopt;
    out.push_back({&step, place, *way});
    any |= writes_if_absent(out.back());
  }
  // What is inserted is inserted in key order, all of it: so all of it is looked for, or nothing.
  for (PlainStep& s : out) {
    if (any && s.way == Way::Made) s.way = Way::Locked;
  }
  return out;
}

namespace {

// The text of one statement. Parameters are numbered as plain_params() gives them.
class Text {
 public:
  Text(const std::vector<PlainStep>& steps, const PlainSettings& settings)
      : steps_(steps), settings_(settings), changing_(has_changes(steps)) {
    if (changing_) next_ = 3;  // the file of the records, and the epoch
    for (const PlainStep& s : steps_) take(s);
  }

  std::string sql() const {
    const bool locks = !rows_.empty();
    return cat("WITH ", locks ? locked() : "", judged(), ", ", given(), updated(), inserted(),
               removed(), last());
  }

 private:
  std::string param(std::string_view type) { return cat('$', next_++, "::", type); }

  void take(const PlainStep& s) {
    const Step& step = *s.step;
    switch (s.way) {
      case Way::Gated: {
        const std::string key = param("bytea");
        const std::string version = param("bigint");
        bad_ += cat(", CASE WHEN (SELECT r.version FROM $S.record r WHERE r.key = ", key,
                    ") IS DISTINCT FROM ", version, " THEN ", s.place, " END");
        return;
      }
      case Way::Locked: return take_locked(s);
      case Way::Made: {
        const std::string key = param("bytea");
        const std::string value = param("bytea");
        const std::string ttl = starts(step) ? param("bigint") : "NULL::bigint";
        const bool runs = step.timer == TimerOp::Start;
        inserts_.push_back(cat(
            "SELECT ", key, ", ", value, ", g.given, g.now, ",
            runs ? cat("g.now + ", ttl, " * interval '1 millisecond'") : "NULL::timestamptz", ", ",
            runs ? ttl : "NULL::bigint", ", NULL::integer, NULL::bigint, NULL::bigint", " FROM g"));
        return;
      }
      case Way::Added: {
        const std::string head = param("bytea");
        const std::string tail = param("bytea");
        const std::string value = param("bytea");
        appends_.push_back(
            cat("SELECT ", head, " || lpad(txid_current()::text, 14, '0')::bytea || ", tail, ", ",
                value, ", g.given, g.now, NULL::timestamptz, NULL::bigint, $2::integer,",
                " txid_current(), nextval('$S.nth') FROM g"));
        return;
      }
    }
  }

  // (place, kind, key, expect, demand, content, timer, ttl)
  void take_locked(const PlainStep& s) {
    const Step& step = *s.step;
    const std::string key = param("bytea");
    std::string expect = "-1::bigint";
    if (step.expect == Expect::Seen) expect = param("bigint");
    if (step.expect == Expect::Absent) expect = "0::bigint";
    const std::string value = step.kind == Kind::Set ? param("bytea") : "NULL::bytea";
    const std::string ttl = starts(step) ? param("bigint") : "NULL::bigint";
    rows_.push_back(cat('(', s.place, ", ", number_of(step.kind), ", ", key, ", ", expect, ", ",
                        number_of(step.demand), ", ", value, ", ", number_of(step.timer), ", ", ttl,
                        ')'));
    has_[static_cast<std::size_t>(number_of(step.kind))] = true;
    demands_ |= step.demand.has_value();
    runs_ |= step.demand == TimerState::Running;
    timers_ |= step.timer != TimerOp::Keep;
    may_insert_ |= step.kind == Kind::Set && step.expect != Expect::Seen;
  }

  bool has(Kind kind) const { return has_[static_cast<std::size_t>(number_of(kind))]; }
  // An insertion may have to wait for another of the same key, and what ran may run out meanwhile.
  bool judges_again() const { return runs_ && (may_insert_ || !inserts_.empty()); }
  bool writes() const { return has(Kind::Set) || has(Kind::Touch) || has(Kind::Remove); }

  // In key order: whoever commits locks in that order.
  std::string locked() const {
    const bool both = writes() && has(Kind::Check);
    const auto look = [&](std::string_view name, std::string_view only, std::string_view how) {
      return cat(" LEFT JOIN LATERAL (SELECT r.version, r.at, r.fires_at FROM $S.record r",
                 " WHERE r.key = k.key", both ? only : "", how, ") ", name, " ON true");
    };
    const auto column = [&](std::string_view name) {
      if (both) return cat("coalesce(w.", name, ", c.", name, ") AS ", name);
      return cat(writes() ? "w." : "c.", name);
    };
    return cat("l AS MATERIALIZED (SELECT k.*, ", column("version"), ", ", column("at"), ", ",
               column("fires_at"), " FROM (VALUES ", joined(rows_, ", "),
               ") k (place, kind, key, expect, demand, content, timer, ttl)",
               writes() ? look("w", " AND k.kind > 0", " FOR UPDATE") : "",
               has(Kind::Check) ? look("c", " AND k.kind = 0", " FOR KEY SHARE") : "", "), ");
  }

  // After the last lock: rows of l come one by one, and the next one may have to be waited for. So
  // the time is asked when they have been counted.   G3
  // -1: what the caller knows of the epoch no longer holds.
  std::string judged() const {
    std::string bad = "NULL::integer";
    if (!rows_.empty()) {
      bad = cat("min(l.place) FILTER (WHERE l.expect >= 0 AND l.expect <> coalesce(l.version, 0)",
                demands_ ? " OR l.demand >= 0 AND l.demand <> CASE WHEN l.fires_at IS NULL THEN 0"
                           " WHEN greatest((SELECT CASE WHEN count(*) > 0 THEN clock_timestamp()"
                           " END FROM l), l.at) < l.fires_at THEN 1 ELSE 2 END"
                         : "",
                has(Kind::Touch) ? " OR l.kind = 2 AND l.version IS NULL)" : ")");
    }
    if (!bad_.empty()) bad = cat("least(", bad, bad_, ')');
    if (changing_) {
      // The table of the mark is the gate: naming it here takes the lock before the snapshot.
      bad = cat(
          "CASE WHEN pg_relation_filenode('$S.record'::regclass)::bigint <> $1::bigint",
          bad_.empty() ? "" : " OR NOT EXISTS (SELECT FROM $S.mark m WHERE m.epoch = $2::integer)",
          " THEN -1 ELSE ", bad, " END");
    }
    return cat("j AS MATERIALIZED (SELECT clock_timestamp() AS now, ", bad, " AS bad",
               judges_again() ? ", min(l.fires_at) FILTER (WHERE l.demand = 1) AS first_end" : "",
               rows_.empty() ? ")" : " FROM l)");
  }

  std::string given() const {
    return cat("g AS MATERIALIZED (SELECT j.now, ",
               changing_ ? "nextval('$S.version') AS given, nextval('$S.revision') AS revision"
                         : "NULL::bigint AS given, NULL::bigint AS revision",
               " FROM j WHERE j.bad IS NULL)");
  }

  std::string updated() const {
    if (!has(Kind::Set) && !has(Kind::Touch)) return "";
    const bool mixed = has(Kind::Touch) && has(Kind::Set);
    std::string set;
    if (has(Kind::Set)) {
      set = mixed ? "value = CASE WHEN l.kind = 1 THEN l.content ELSE r.value END,"
                    " version = CASE WHEN l.kind = 1 THEN g.given ELSE r.version END, "
                  : "value = l.content, version = g.given, ";
    }
    const std::string_view timers =
        "at = CASE WHEN l.timer = 0 THEN greatest(g.now, r.at) ELSE g.now END,"
        " fires_at = CASE l.timer WHEN 0 THEN r.fires_at WHEN 1 THEN NULL"
        " WHEN 2 THEN g.now + l.ttl * interval '1 millisecond'"
        " ELSE g.now + greatest(r.fires_at - greatest(g.now, r.at),"
        " l.ttl * interval '1 millisecond') END,"
        " ttl_ms = CASE l.timer WHEN 0 THEN r.ttl_ms WHEN 1 THEN NULL WHEN 2 THEN l.ttl"
        " ELSE CASE WHEN r.fires_at - greatest(g.now, r.at) > l.ttl * interval '1 millisecond'"
        " THEN r.ttl_ms ELSE l.ttl END END";
    return cat(", u AS (UPDATE $S.record r SET ", set,
               timers_ ? timers : std::string_view("at = greatest(g.now, r.at)"),
               " FROM g, l WHERE r.key = l.key", only({1, 2}),
               may_insert_ ? " AND l.version IS NOT NULL)" : ")");
  }

  // " AND l.kind IN (...)", where there are others.
  std::string only(std::initializer_list<int> kinds) const {
    bool others = false;
    std::vector<std::string> numbers;
    for (int kind = 0; kind < 4; ++kind) {
      const bool wanted = std::ranges::find(kinds, kind) != kinds.end();
      if (wanted) numbers.push_back(std::to_string(kind));
      others |= !wanted && has_[static_cast<std::size_t>(kind)];
    }
    return others ? cat(" AND l.kind IN (", joined(numbers, ", "), ')') : "";
  }

  // A record that appeared meanwhile makes it fail, and nothing is done.
  std::string inserted() const {
    std::vector<std::string> all;
    if (may_insert_) {
      all.push_back(
          cat("SELECT l.key, l.content, g.given, g.now,"
              " CASE WHEN l.timer = 2 THEN g.now + l.ttl * interval '1 millisecond' END,"
              " CASE WHEN l.timer = 2 THEN l.ttl END, NULL::integer, NULL::bigint, NULL::bigint"
              " FROM g, l WHERE l.version IS NULL",
              only({1})));
    }
    all.insert(all.end(), inserts_.begin(), inserts_.end());
    all.insert(all.end(), appends_.begin(), appends_.end());
    if (all.empty()) return "";
    return cat(", i AS (INSERT INTO $S.record (key, value, version, at, fires_at, ttl_ms, epoch,",
               " xid, nth) ", joined(all, " UNION ALL "), judges_again() ? " RETURNING 1)" : ")");
  }

  std::string removed() const {
    if (!has(Kind::Remove)) return "";
    return cat(", d AS (DELETE FROM $S.record r USING g, l WHERE r.key = l.key", only({3}), ')');
  }

  // The marks of waiters are looked for by a transaction that has its number, in a snapshot that is
  // taken then: one that is not seen is of a waiter that sees this transaction (listener.h). A
  // table that has no page has no marks.
  std::string last() const {
    std::string marks = "NULL::bytea[], NULL::bigint";
    if (changing_) {
      marks =
          cat("CASE WHEN g.given IS NOT NULL THEN CASE WHEN txid_current() > 0 THEN",
              " CASE WHEN pg_relation_size('$S.waiter'::regclass) > 0", " THEN $S.marked($", next_,
              "::bytea[]) END END END,", " CASE WHEN g.given IS NOT NULL THEN txid_current() END");
    }
    // When all is inserted; else it fails (22012), and nothing is done.   G3
    const std::string_view again =
        " / CASE WHEN (SELECT count(*) FROM i) >= 0 AND clock_timestamp() >= j.first_end"
        " THEN 0 ELSE 1 END";
    return cat(" SELECT j.bad, j.now, g.given, g.revision", judges_again() ? again : "", ", ",
               marks, ", ", settings_.relaxed ? "" : "CASE WHEN j.bad IS NOT NULL THEN ",
               "set_config('synchronous_commit', 'off', true)", settings_.relaxed ? "" : " END",
               " FROM j LEFT JOIN g ON true");
  }

  const std::vector<PlainStep>& steps_;
  const PlainSettings& settings_;
  const bool changing_;
  int next_ = 1;
  std::vector<std::string> rows_;     // of what is locked
  std::vector<std::string> inserts_;  // in key order
  std::vector<std::string> appends_;
  std::string bad_;  // what the gated ones add to the judgement
  bool has_[4] = {};
  bool demands_ = false;
  bool runs_ = false;  // something is demanded to run
  bool timers_ = false;
  bool may_insert_ = false;
};

// Everything that the text depends on.
std::string shape_of(const std::vector<PlainStep>& steps, const PlainSettings& settings) {
  std::string out(1, settings.relaxed ? 'r' : 'd');
  for (const PlainStep& s : steps) {
    const Step& step = *s.step;
    out += static_cast<char>('a' + static_cast<int>(s.way));
    out += static_cast<char>('0' + static_cast<int>(s.place));
    out += static_cast<char>('0' + number_of(step.kind));
    out += static_cast<char>('0' + static_cast<int>(step.expect));
    out += static_cast<char>('1' + number_of(step.demand));
    out += static_cast<char>('0' + number_of(step.timer));
  }
  return out;
}

}  // namespace

std::string append_head(std::string_view prefix, std::int32_t epoch) {
  const std::string digits = std::to_string(epoch);
  return cat(prefix, std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0'), digits);
}

std::string append_tail(std::size_t place) {
  return {static_cast<char>('0' + place / 10), static_cast<char>('0' + place % 10)};
}

const Statement* PlainStatements::of(const std::vector<PlainStep>& steps,
                                     const PlainSettings& settings) {
  const std::string shape = shape_of(steps, settings);
  const MutexLock lock(mutex_);
  const auto found = made_.find(shape);
  if (found != made_.end()) return found->second.get();
  if (made_.size() >= kMostShapes) return nullptr;
  auto made = std::make_unique<Statement>(
      Statement{cat("stint_", shape), settings_.sql(Text(steps, settings).sql())});
  return made_.emplace(shape, std::move(made)).first->second.get();
}

Params plain_params(const std::vector<PlainStep>& steps, const PlainSettings& settings) {
  const std::int64_t mark = settings.mark.value_or(0);
  const auto epoch = static_cast<std::int32_t>(mark & 0xFFFFFFFF);
  const bool changing = has_changes(steps);
  Params out;
  if (changing) out.bigint(mark >> 32).integer(epoch);
  std::vector<std::string_view> changed;
  for (const PlainStep& s : steps) {
    const Step& step = *s.step;
    if (changes(step)) changed.emplace_back(step.key);
    if (s.way == Way::Added) {
      out.bytes(append_head(step.key, epoch)).bytes(append_tail(s.place)).bytes(step.value);
      continue;
    }
    out.bytes(step.key);
    if (s.way == Way::Gated) {
      out.bigint(static_cast<std::int64_t>(step.version));
      continue;
    }
    if (step.expect == Expect::Seen) out.bigint(static_cast<std::int64_t>(step.version));
    if (step.kind == Kind::Set) out.bytes(step.value);
    if (starts(step)) out.bigint(step.ttl.count());
  }
  if (changing) out.byte_arrays(changed);
  return out;
}

Committed plain_committed(const std::vector<Step>& steps, std::int64_t now,
                          const PlainNumbers& numbers) {
  Committed done;
  const bool changing = std::ranges::any_of(steps, changes);
  if (changing) done.revision = static_cast<std::uint64_t>(numbers.revision);
  for (const Step& step : steps) {
    const bool kept = step.kind == Kind::Check || step.kind == Kind::Touch;
    const bool made = step.kind == Kind::Set;
    done.versions.push_back(kept ? step.version : made ? static_cast<Version>(numbers.given) : 0);
    done.granted_ttl.push_back(step.ttl);
  }
  done.store_wall = wall_from_ms(now / 1000);
  done.store_time = std::chrono::microseconds(now);
  return done;
}

namespace {

Result<Committed> plainly_committed(const Rows& rows, const std::vector<Step>& steps) {
  const auto now = rows.instant(0, at(Column::Now));
  if (!now) return now.error();
  PlainNumbers numbers;
  if (std::ranges::any_of(steps, changes)) {
    const auto revision = rows.bigint(0, at(Column::Revision));
    const auto version = rows.bigint(0, at(Column::Given));
    if (!revision) return revision.error();
    if (!version) return version.error();
    numbers = {.given = *version, .revision = *revision};
  }
  return plain_committed(steps, *now, numbers);
}

}  // namespace

Result<std::optional<CommitResult>> plain_result(const Rows& rows, const std::vector<Step>& steps) {
  if (auto ok = rows.expect_columns(at(Column::Count)); !ok) return ok.error();
  if (rows.count() != 1) return unavailable("the server answered with no row, or several");
  CommitResult out;
  if (!rows.is_null(0, at(Column::Bad))) {
    const auto place = rows.integer(0, at(Column::Bad));
    if (!place) return place.error();
    if (*place == -1) return std::optional<CommitResult>();
    if (*place < 0 || static_cast<std::size_t>(*place) >= steps.size()) {
      return unavailable("the server names a step that there is not");
    }
    out.answer = Conflict{static_cast<std::size_t>(*place)};
    return std::optional(std::move(out));
  }
  auto done = plainly_committed(rows, steps);
  if (!done) return done.error();
  out.answer = std::move(*done);
  if (rows.is_null(0, at(Column::Marked))) return std::optional(std::move(out));
  auto marked = rows.byte_arrays(0, at(Column::Marked));
  auto xid = rows.bigint(0, at(Column::Xid));
  if (!marked) return marked.error();
  if (!xid) return xid.error();
  out.marked = std::move(*marked);
  out.xid = *xid;
  return std::optional(std::move(out));
}

}  // namespace stint::store::postgres
