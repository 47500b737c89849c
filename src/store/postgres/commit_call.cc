#include "store/postgres/commit_call.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"

namespace stint::store::postgres {
namespace {

enum CommitColumn {
  kConflict,
  kHad,
  kJudgedAt,
  kGiven,
  kRevision,
  kMark,
  kMarked,
  kXid,
  kCommitColumns
};

}  // namespace

std::int16_t number_of(Step::Kind kind) {
  switch (kind) {
    case Step::Kind::Check: return 0;
    case Step::Kind::Set: return 1;
    case Step::Kind::Touch: return 2;
    case Step::Kind::Remove: return 3;
    case Step::Kind::Append: return 4;
  }
  return 0;
}

std::int16_t number_of(Step::TimerOp op) {
  switch (op) {
    case Step::TimerOp::Keep: return 0;
    case Step::TimerOp::Stop: return 1;
    case Step::TimerOp::Start: return 2;
    case Step::TimerOp::Extend: return 3;
  }
  return 0;
}

std::int16_t number_of(const std::optional<TimerState>& demand) {
  if (!demand) return -1;
  switch (*demand) {
    case TimerState::None: return 0;
    case TimerState::Running: return 1;
    case TimerState::Fired: return 2;
  }
  return -1;
}

Error sent_unanswered(const Error& error) {
  return {Code::UnknownOutcome, cat("the commit was sent and not answered: ", error.message)};
}

bool changes(const Step& step) {
  return step.kind != Step::Kind::Check && step.kind != Step::Kind::Touch;
}

std::vector<std::size_t> in_key_order(const std::vector<Step>& steps) {
  std::vector<std::size_t> order(steps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    if (steps[a].key != steps[b].key) return steps[a].key < steps[b].key;
    return steps[a].kind != Step::Kind::Check && steps[b].kind == Step::Kind::Check;
  });
  return order;
}

namespace {

std::int64_t expected_by(const Step& step) {
  switch (step.expect) {
    case Expect::Any: return -1;
    case Expect::Absent: return 0;
    case Expect::Seen:
      // A version that no record can have: it is never met.
      return step.version > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(step.version);
  }
  return -1;
}

// A check of a key that the same commit writes holds no place of its own for what is absent: the
// write does.
constexpr std::int16_t kCheckBesideAWrite = 5;

bool beside_a_write(const std::vector<Step>& steps, const Step& check) {
  return check.kind == Step::Kind::Check && std::ranges::any_of(steps, [&](const Step& other) {
           return other.key == check.key && other.kind != Step::Kind::Check &&
                  other.kind != Step::Kind::Append;
         });
}

}  // namespace

Params commit_params(const std::vector<Step>& steps, const CommitSettings& settings) {
  std::vector<std::int16_t> places;
  std::vector<std::int16_t> kinds;
  std::vector<std::string_view> keys;
  std::vector<std::int64_t> expected;
  std::vector<std::int16_t> demands;
  std::vector<std::string_view> contents;
  std::vector<std::int16_t> timers;
  std::vector<std::int64_t> ttls;
  std::vector<std::string_view> changing;
  for (const std::size_t place : in_key_order(steps)) {
    const Step& step = steps[place];
    places.push_back(static_cast<std::int16_t>(place));
    kinds.push_back(beside_a_write(steps, step) ? kCheckBesideAWrite : number_of(step.kind));
    keys.emplace_back(step.key);
    expected.push_back(expected_by(step));
    demands.push_back(number_of(step.demand));
    contents.emplace_back(step.value);
    timers.push_back(number_of(step.timer));
    ttls.push_back(step.ttl.count());
    if (changes(step)) changing.emplace_back(step.key);
  }
  Params out;
  settings.wait_ms ? out.integer(*settings.wait_ms) : out.null(Params::Null::Integer);
  settings.sync ? out.text(*settings.sync) : out.null(Params::Null::Text);
  settings.mark ? out.bigint(*settings.mark) : out.null(Params::Null::Bigint);
  out.smallints(places).smallints(kinds).byte_arrays(keys).bigints(expected).smallints(demands);
  out.byte_arrays(contents).smallints(timers).bigints(ttls);
  changing.empty() ? out.null(Params::Null::ByteArrays) : out.byte_arrays(changing);
  return out;
}

namespace {

Result<Committed> committed(const Rows& rows, const std::vector<Step>& steps) {
  const auto had = rows.bigints(0, kHad);
  const auto at = rows.instant(0, kJudgedAt);
  if (!had) return had.error();
  if (!at) return at.error();
  if (had->size() != steps.size()) return unavailable("the server answered for other steps");
  Committed done;
  Version given = 0;
  if (!rows.is_null(0, kRevision)) {
    const auto revision = rows.bigint(0, kRevision);
    const auto version = rows.bigint(0, kGiven);
    if (!revision) return revision.error();
    if (!version) return version.error();
    done.revision = static_cast<std::uint64_t>(*revision);
    given = static_cast<Version>(*version);
  }
  done.versions.resize(steps.size());
  const std::vector<std::size_t> order = in_key_order(steps);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Step& step = steps[order[i]];
    Version& version = done.versions[order[i]];
    switch (step.kind) {
      case Step::Kind::Check:
      case Step::Kind::Touch: version = static_cast<Version>((*had)[i]); break;
      case Step::Kind::Set: version = given; break;
      case Step::Kind::Remove:
      case Step::Kind::Append: version = 0; break;
    }
  }
  for (const Step& step : steps) done.granted_ttl.push_back(step.ttl);
  done.store_wall = wall_from_ms(*at / 1000);
  done.store_time = std::chrono::microseconds(*at);
  return done;
}

}  // namespace

Result<CommitResult> commit_result(const Rows& rows, const std::vector<Step>& steps) {
  if (auto ok = rows.expect_columns(kCommitColumns); !ok) return ok.error();
  if (rows.count() != 1) return unavailable("the server answered with no row, or several");
  CommitResult out;
  if (!rows.is_null(0, kMark)) {
    const auto mark = rows.bigint(0, kMark);
    if (!mark) return mark.error();
    out.mark = *mark;
  }
  if (!rows.is_null(0, kConflict)) {
    const auto place = rows.integer(0, kConflict);
    if (!place) return place.error();
    if (*place < 0 || static_cast<std::size_t>(*place) >= steps.size()) {
      return unavailable("the server names a step that there is not");
    }
    out.answer = Conflict{static_cast<std::size_t>(*place)};
    return out;
  }
  auto done = committed(rows, steps);
  if (!done) return done.error();
  out.answer = std::move(*done);
  if (rows.is_null(0, kMarked)) return out;
  auto marked = rows.byte_arrays(0, kMarked);
  auto xid = rows.bigint(0, kXid);
  if (!marked) return marked.error();
  if (!xid) return xid.error();
  out.marked = std::move(*marked);
  out.xid = *xid;
  return out;
}

}  // namespace stint::store::postgres
