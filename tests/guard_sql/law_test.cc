// The law in the database against core/fence.h, cell by cell: every fence, offer and word of the
// store, first stint.verdict() alone, then stint.admit() and stint.seal() on real rows.
#include <gtest/gtest.h>

#include <functional>

#include "base/text.h"
#include "core/fence.h"
#include "guard/sql/sqlstate.h"
#include "store/postgres/schema.h"
#include "tests/guard_sql/session.h"

namespace stint::test {
namespace {

using core::Fence;
using core::FenceDecision;
using core::FenceMode;
using core::Issued;
using core::Offer;
using core::Verdict;

Generation generation(int digit) {
  return Generation::parse(std::string(32, static_cast<char>('0' + digit))).value();
}

struct Cell {
  std::optional<Fence> fence;
  Offer offer;
  std::optional<Issued> issued;
  bool writing = true;
};

std::vector<std::optional<Fence>> all_fences() {
  std::vector<std::optional<Fence>> out = {std::nullopt};
  for (const std::uint64_t token : {2U, 3U}) {
    for (const bool used : {false, true}) {
      out.push_back(Fence{.generation = generation(1),
                          .resource = "r",
                          .token = Token(token),
                          .used = used,
                          .key = used ? "k" : "",
                          .digest = used ? "d" : ""});
    }
    out.push_back(Fence{.generation = generation(1),
                        .resource = "r",
                        .token = Token(token),
                        .key = "",
                        .digest = "",
                        .nobodys = true});
  }
  return out;
}

std::vector<Offer> all_offers() {
  std::vector<Offer> out;
  for (std::uint64_t token = 0; token <= 4; ++token) {
    for (int life = 1; life <= 3; ++life) {
      for (const auto mode : {FenceMode::AtLeast, FenceMode::Once}) {
        for (const auto& [key, digest] : {std::pair("k", "d"), {"x", "d"}, {"k", "x"}}) {
          // Keys count only there.
          if (mode == FenceMode::AtLeast && (*key != 'k' || *digest != 'd')) continue;
          for (const bool by_order : {false, true}) {
            for (const bool adopt : {false, true}) {
              out.push_back({.generation = generation(life),
                             .resource = "r",
                             .token = Token(token),
                             .mode = mode,
                             .key = key,
                             .digest = digest,
                             .by_order = by_order,
                             .adopt = adopt});
            }
          }
        }
      }
    }
  }
  return out;
}

constexpr int kGranted = 1;
constexpr int kNobodys = 2;

std::vector<std::optional<Issued>> all_words() {
  std::vector<std::optional<Issued>> out = {std::nullopt};
  for (std::uint64_t newest = 0; newest <= 4; ++newest) {
    for (const int whose : {0, 1, 2}) {
      // No token: there is no record, so no revocation.
      if (whose == kNobodys && newest == 0) continue;
      Issued word{.generation = generation(1),
                  .ancestors = {},
                  .newest = Token(newest),
                  .newest_granted = whose == kGranted,
                  .newest_nobodys = whose == kNobodys};
      out.emplace_back(word);
      word.generation = generation(2);
      out.emplace_back(word);
      word.ancestors = {generation(1)};
      out.emplace_back(word);
    }
  }
  return out;
}

void each_cell(const std::function<void(const Cell&)>& f) {
  for (const auto& fence : all_fences()) {
    for (const Offer& offer : all_offers()) {
      for (const auto& issued : all_words()) {
        for (const bool writing : {true, false}) f({fence, offer, issued, writing});
      }
    }
  }
}

FenceDecision by_core(const Cell& cell) {
  return cell.writing ? core::admit(cell.fence, cell.offer, cell.issued)
                      : core::seal(cell.fence, cell.offer, cell.issued);
}

std::string word_of(Verdict verdict) {
  if (verdict == Verdict::Admitted) return "admitted";
  if (verdict == Verdict::Done) return "done";
  for (const guard::SqlState& known : guard::kSqlStates) {
    if (known.verdict == verdict) return std::string(known.word);
  }
  return "?";
}

std::string word_of(const FenceDecision& decision) {
  return decision.fence ? "raised" : word_of(decision.verdict);
}

std::string quote(std::string_view text) { return cat('\'', text, '\''); }
std::string truth(bool value) { return value ? "true" : "false"; }

std::string arguments(const Cell& cell) {
  const auto& [f, o, i, writing] = cell;
  std::string out = truth(writing) + ",";
  out += f ? cat(quote(f->generation.hex()), ',', f->token.number(), ',', truth(f->used), ',',
                 quote(f->key), ',', quote(f->digest), ',', truth(f->nobodys))
           : "NULL,NULL,NULL,NULL,NULL,NULL";
  out += cat(',', quote(o.generation.hex()), ',', o.token.number(), ',',
             truth(o.mode == FenceMode::Once), ',', quote(o.key), ',', quote(o.digest), ',',
             truth(o.by_order), ',', truth(o.adopt), ',');
  if (!i) return out + "NULL,NULL,NULL,NULL";
  const std::string ancestors = i->ancestors.empty() ? "" : i->ancestors.front().hex();
  return out + cat(quote(i->generation.hex()), ",'{", ancestors, "}',", i->newest.number(), ',',
                   i->newest_nobodys ? "NULL" : truth(i->newest_granted));
}

// Asks in portions: `sql_of` one expression a cell; compares with `expected`.
class Portions {
 public:
  Portions(Session& session, std::size_t most, std::string head, std::string tail)
      : session_(session), most_(most), head_(std::move(head)), tail_(std::move(tail)) {}
  ~Portions() { ask(); }
  Portions(const Portions&) = delete;
  Portions& operator=(const Portions&) = delete;

  void add(const std::string& row, std::string expected) {
    rows_ += cat(rows_.empty() ? "" : ",", '(', expected_.size(), ',', row, ')');
    names_.push_back(row);
    expected_.push_back(std::move(expected));
    ++total;
    if (expected_.size() == most_) ask();
  }

  int total = 0;

 private:
  void ask() {
    if (expected_.empty()) return;
    const Answer answer = session_.must(cat(head_, rows_, tail_));
    ASSERT_EQ(answer.rows.size(), expected_.size());
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      EXPECT_EQ(answer.rows[i][0], expected_[i]) << names_[i];
    }
    rows_.clear();
    names_.clear();
    expected_.clear();
  }

  Session& session_;
  const std::size_t most_;
  std::string head_;
  std::string tail_;
  std::string rows_;
  std::vector<std::string> names_;
  std::vector<std::string> expected_;
};

constexpr const char* kColumns =
    " AS c (n, writing, f_generation, f_token, f_used, f_key, f_digest, f_nobodys, o_generation, "
    "o_token,"
    " o_once, o_key, o_digest, o_by_order, o_adopt, i_generation, i_ancestors, i_newest,"
    " i_granted) ORDER BY c.n";

// EVIDENCE-OF: G5
TEST(SqlLaw, VerdictIsTheOneOfCoreInEveryCell) {
  Session session(guarded_database());
  Portions portions(
      session, 2000,
      "SELECT stint.verdict(c.writing, c.f_generation, c.f_token, c.f_used, c.f_key, c.f_digest,"
      " c.f_nobodys, c.o_generation, c.o_token, c.o_once, c.o_key, c.o_digest, c.o_by_order, "
      "c.o_adopt,"
      " c.i_generation, c.i_ancestors::text[], c.i_newest, c.i_granted) FROM (VALUES "
      // Types of the columns; n below all others.
      "(-1,true,'',0::bigint,true,'','',true,'',0::bigint,true,'','',true,true,'','{}',0::bigint,"
      "true),",
      cat(")", kColumns, " OFFSET 1"));
  each_cell([&](const Cell& cell) { portions.add(arguments(cell), word_of(by_core(cell))); });
  EXPECT_EQ(portions.total, 7 * 240 * 43 * 2);
}

// Puts the cell's fence and own/R there, asks, and tells the answer and the fence that stands.
constexpr const char* kTry = R"sql(
CREATE FUNCTION pg_temp.try(writing boolean, f_generation text, f_token bigint, f_used boolean,
  f_key text, f_digest text, f_nobodys boolean, o_generation text, o_token bigint, o_once boolean, o_key text,
  o_digest text, o_by_order boolean, o_adopt boolean, i_generation text, i_ancestors text,
  i_newest bigint, i_granted boolean, here boolean) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
  said text;
  after text;
BEGIN
  DELETE FROM stint.fences;
  IF f_token IS NOT NULL THEN
    INSERT INTO stint.fences VALUES ('r', f_generation, f_token, f_used, f_key, f_digest, now(),
      f_nobodys);
  END IF;
  DELETE FROM stint.record;
  IF here THEN
    INSERT INTO stint.record (key, value, version, at) VALUES
      ('meta/store', convert_to(jsonb_build_object('generation', i_generation, 'ancestors',
         to_jsonb(i_ancestors::text[]))::text, 'UTF8'), 1, now());
    IF i_newest > 0 THEN
      INSERT INTO stint.record (key, value, version, at) VALUES
        ('own/r', convert_to(jsonb_build_object('token', i_newest, 'claim',
           CASE WHEN i_granted THEN 'c' ELSE '' END, 'owner',
           CASE WHEN i_granted IS NULL THEN '' ELSE 'o' END)::text, 'UTF8'), 1, now());
    END IF;
  END IF;
  BEGIN
    IF writing THEN
      said := stint.admit('r', o_token, o_generation, mode => CASE WHEN o_once THEN 'once'
        ELSE 'at-least' END, key => o_key, digest => o_digest);
    ELSIF here THEN
      said := stint.seal('r', o_token, o_generation, by_order => o_by_order,
        adopt => CASE WHEN o_adopt THEN 'me: so' ELSE '' END);
    ELSE
      said := stint.seal('r', o_token, o_generation, i_newest, i_granted, i_ancestors::text[],
        o_by_order, CASE WHEN o_adopt THEN 'me: so' ELSE '' END, i_generation);
    END IF;
  EXCEPTION WHEN OTHERS THEN
    said := SQLSTATE;
  END;
  SELECT f.generation || ' ' || f.token || ' ' || f.used || ' ' || f.key || ' ' || f.digest || ' ' || f.nobodys
    INTO after FROM stint.fences f;
  RETURN said || ' | ' || coalesce(after, 'none');
END $f$;
)sql";

std::string state_of(Verdict verdict) {
  for (const guard::SqlState& known : guard::kSqlStates) {
    if (known.verdict == verdict) return std::string(known.state);
  }
  return "?";
}

std::string shown(const std::optional<Fence>& fence) {
  if (!fence) return "none";
  return cat(fence->generation.hex(), ' ', fence->token.number(), ' ', truth(fence->used), ' ',
             fence->key, ' ', fence->digest, ' ', truth(fence->nobodys));
}

// `here`: own/R is asked also where the fence would do, and is the fence itself (docs/internals).
std::string expected_of(const Cell& cell, bool here) {
  FenceDecision decision = by_core(cell);
  const bool good = decision.verdict == Verdict::Admitted || decision.verdict == Verdict::Done;
  if (!cell.offer.token.issued()) decision = {Verdict::NoToken, std::nullopt};
  if (here && cell.writing && good && cell.offer.token.issued()) {
    const FenceDecision own = core::admit(std::nullopt, cell.offer, cell.issued);
    if (own.verdict != Verdict::Admitted) decision = own;
    if (cell.offer.mode == FenceMode::AtLeast) decision.fence.reset();
  }
  const std::string after = shown(decision.fence ? decision.fence : cell.fence);
  switch (decision.verdict) {
    case Verdict::Admitted:
      if (cell.writing) return cat("admitted | ", after);
      return cat(decision.fence ? "sealed | " : "already | ", after);
    case Verdict::Done: return cat("done | ", after);
    case Verdict::AskStore:
    case Verdict::Stale:
    case Verdict::Used:
    case Verdict::NeverIssued:
    case Verdict::NeverGranted:
    case Verdict::Foreign:
    case Verdict::NoToken:
    case Verdict::Restored: break;
  }
  return cat(state_of(decision.verdict), " | ", after);
}

void try_all(bool here, const std::function<bool(const Cell&)>& wanted) {
  Session session(guarded_database());
  // The store's own tables, as it makes them.
  std::string tables = store::postgres::kTables;
  for (std::size_t at = tables.find("$S"); at != tables.npos; at = tables.find("$S")) {
    tables.replace(at, 2, "stint");
  }
  session.must(tables);
  session.must(kTry);
  Portions portions(
      // Rows that one transaction replaces again and again make it slow.
      session, 100,
      "TRUNCATE stint.fences, stint.record, stint.overrides; SELECT pg_temp.try(c.writing, "
      "c.f_generation, c.f_token, c.f_used, c.f_key, c.f_digest, c.f_nobodys,"
      " c.o_generation, c.o_token, c.o_once, c.o_key, c.o_digest, c.o_by_order, c.o_adopt,"
      " c.i_generation, c.i_ancestors, c.i_newest, c.i_granted, " +
          truth(here) +
          ") FROM (VALUES "
          "(-1,true,NULL,NULL::bigint,true,'','',true,repeat('1',32),1::bigint,false,'','',true,"
          "true,"
          "repeat('1',32),'{}',0::bigint,true),",
      cat(")", kColumns, " OFFSET 1"));
  each_cell([&](const Cell& cell) {
    if (wanted(cell)) portions.add(arguments(cell), expected_of(cell, here));
  });
  EXPECT_GT(portions.total, 1000);
}

// A writer has no way to show the store's word: only who seals does.
// EVIDENCE-OF: G5
TEST(SqlLaw, AdmitAndSealOnRealFencesAnswerAsCoreDoes) {
  try_all(false, [](const Cell& cell) {
    const bool plain = !cell.offer.by_order && !cell.offer.adopt;
    if (cell.writing) return plain && !cell.issued;
    return cell.offer.mode == FenceMode::AtLeast;
  });
}

// Where the lease lives in the same database.
// EVIDENCE-OF: G5
TEST(SqlLaw, OwnIsTheWordWhereTheStoreIsHere) {
  try_all(true, [](const Cell& cell) {
    if (!cell.issued) return false;
    // Of another store than the one that is here: as if there were none.
    if (cell.offer.generation != cell.issued->generation &&
        (cell.issued->ancestors.empty() ||
         cell.offer.generation != cell.issued->ancestors.front())) {
      return false;
    }
    if (cell.writing) return !cell.offer.by_order && !cell.offer.adopt;
    return cell.offer.mode == FenceMode::AtLeast;
  });
}

}  // namespace
}  // namespace stint::test
