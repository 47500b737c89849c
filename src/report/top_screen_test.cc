#include "report/top_screen.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "report/columns.h"

namespace stint::report {
namespace {

constexpr WallTime kTopNow{Millis(1'700'000'000'000)};

api::Lease lease_named(std::string resource, bool held = true) {
  api::Lease out;
  out.resource = std::move(resource);
  out.held = held;
  out.state = held ? core::State::Held : core::State::Free;
  out.owner = *Owner::parse("runner-1");
  out.token = Token(7);
  out.ttl = Millis(90'000);
  if (held) out.remaining = Millis(45'000);
  return out;
}

TopFacts facts_of(std::vector<api::Lease> leases) {
  TopFacts out;
  out.store = "sqlite:/s";
  out.now = kTopNow;
  out.leases = std::move(leases);
  return out;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

TEST(Columns, CountWideAndSittingCharacters) {
  EXPECT_EQ(columns_of("blog"), 4U);
  EXPECT_EQ(columns_of("\xE6\x97\xA5\xE6\x9C\xAC"), 4U);  // two wide ones
  EXPECT_EQ(columns_of("e\xCC\x81"), 1U);                 // e with an accent of its own
  EXPECT_EQ(fitted("blog", 6), "blog  ");
  EXPECT_EQ(fitted("blog-repo", 6), "blog-~");
  EXPECT_EQ(columns_of(fitted("\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E", 4)), 4U);
  EXPECT_EQ(fitted("x", 0), "");
}

TEST(TopScreen, TabGoesThroughWhatWasRefusedTheJobsAndTheQueues) {
  TopFacts facts = facts_of({lease_named("site/a")});
  facts.events.resize(2);
  facts.events[0].kind = "granted";
  facts.events[1].kind = "write_refused";
  facts.events[1].owner = "late-one";
  using State = core::SlotState;
  facts.jobs = {{.name = "nightly",
                 .schedule = "0 2 * * *",
                 .paused = false,
                 .next = kTopNow + Millis(3'600'000),
                 .slots = {State::Ran, State::Failed, State::SkippedStale, State::Lost,
                           State::Running, State::Due}}};
  facts.queues = {{.name = "mail", .counts = {}}};
  facts.queues[0].counts.waiting = 12;
  TopState state;
  const auto screen = [&] { return joined(top_screen(facts, state, 80, 24, Look::Text)); };
  EXPECT_NE(screen().find(" LATEST"), std::string::npos);
  EXPECT_NE(screen().find("granted"), std::string::npos);
  state.press("\t", facts, 5);
  EXPECT_NE(screen().find(" REFUSED"), std::string::npos);
  EXPECT_NE(screen().find("late-one"), std::string::npos);
  EXPECT_EQ(screen().find("granted"), std::string::npos);
  state.press("\t", facts, 5);
  EXPECT_NE(screen().find("nightly  0 2 * * *  in 60 min"), std::string::npos) << screen();
  EXPECT_NE(screen().find("#x-?>o"), std::string::npos) << screen();
  state.press("\t", facts, 5);
  EXPECT_NE(screen().find("mail  waiting 12"), std::string::npos) << screen();
  facts.jobs_trouble = "no jobs here";
  EXPECT_NE(screen().find("mail  waiting 12"), std::string::npos) << screen();
  facts.queues_trouble = "the key does not allow this";
  EXPECT_NE(screen().find("! the key does not allow"), std::string::npos) << screen();
  state.press("\t", facts, 5);
  EXPECT_NE(screen().find(" LATEST"), std::string::npos);
  // A key that is pressed while one lease is looked at goes back from it.
  state.press("\r\t", facts, 5);
  EXPECT_NE(screen().find(" LATEST"), std::string::npos);
}

TEST(TopScreen, JobsThatAreNotShownAreCounted) {
  TopFacts facts = facts_of({});
  for (int i = 0; i < 3; ++i) {
    facts.jobs.push_back({.name = cat("j", i), .schedule = "@daily", .next = {}, .slots = {}});
  }
  facts.jobs[0].readable = false;
  EXPECT_EQ(pane_lines(facts, TopPane::Jobs, 3).size(), 3U);
  EXPECT_NE(pane_lines(facts, TopPane::Jobs, 3)[0].find("?"), std::string::npos);
  EXPECT_NE(pane_lines(facts, TopPane::Jobs, 3)[1].find("never"), std::string::npos);
  EXPECT_EQ(pane_lines(facts, TopPane::Jobs, 2).back(), " and 2 more");
  facts.more_jobs = 10;
  EXPECT_EQ(pane_lines(facts, TopPane::Jobs, 9).back(), " and 10 more");
  EXPECT_EQ(pane_lines(facts, TopPane::Jobs, 3).back(), " and 11 more");
}

TEST(TopScreen, FillsEverySizeExactly) {
  std::vector<api::Lease> leases;
  for (int i = 0; i < 50; ++i) leases.push_back(lease_named(cat("site/", i), i % 2 == 0));
  const TopFacts facts = facts_of(std::move(leases));
  for (const auto& [columns, rows] : {std::pair{80U, 24U}, {200U, 60U}, {20U, 6U}, {1U, 1U}}) {
    const auto lines = top_screen(facts, {}, columns, rows, Look::Text);
    EXPECT_EQ(lines.size(), rows);
    for (const std::string& line : lines) EXPECT_LE(columns_of(line), columns) << line;
  }
}

TEST(TopScreen, HeldOnesComeFirstAndStuckOnesStandOut) {
  api::Lease stuck = lease_named("z-stuck");
  stuck.progress = "page 3";
  stuck.progress_at = kTopNow - Millis(271'000);
  const TopFacts facts = facts_of({lease_named("a-free", false), lease_named("m-held"), stuck});
  const std::string text = joined(top_screen(facts, {}, 120, 24, Look::Text));
  EXPECT_LT(text.find("m-held"), text.find("a-free"));
  EXPECT_NE(text.find("!z-stuck"), std::string::npos) << text;
  EXPECT_NE(text.find("####...."), std::string::npos) << text;  // half of its ttl is left
  EXPECT_NE(text.find("2 held of 3"), std::string::npos);
  const std::string coloured = joined(top_screen(facts, {}, 120, 24, Look::Colours));
  EXPECT_NE(coloured.find("\033[31m!z-stuck"), std::string::npos);
}

// The page says the same of the same lease (page/src/live.ts).
TEST(TopScreen, StuckIsNoProgressForThreeTtlsAndHalfAMinute) {
  api::Lease lease = lease_named("r");
  const auto stuck = [&](Millis ttl, Millis age) {
    lease.ttl = ttl;
    lease.progress_at = kTopNow - age;
    return looks_stuck(lease, kTopNow);
  };
  EXPECT_FALSE(stuck(Millis(60'000), Millis(180'000)));
  EXPECT_TRUE(stuck(Millis(60'000), Millis(180'001)));
  EXPECT_FALSE(stuck(Millis(1'000), Millis(30'000)));
  EXPECT_TRUE(stuck(Millis(1'000), Millis(30'001)));
  lease.held = false;
  EXPECT_FALSE(stuck(Millis(1'000), Millis(90'000)));
}

TEST(TopScreen, WithoutColoursOnlyTheCursorIsMarked) {
  const TopFacts facts = facts_of({lease_named("a"), lease_named("b", false)});
  for (const std::string& line : top_screen(facts, {}, 80, 24, Look::Plain)) {
    EXPECT_EQ(line.find("\033[3"), std::string::npos) << line;
    EXPECT_EQ(line.find("\033[1"), std::string::npos) << line;
  }
  EXPECT_EQ(joined(top_screen(facts, {}, 80, 24, Look::Text)).find('\033'), std::string::npos);
}

TEST(TopScreen, HostileNamesAreShownAsText) {
  const TopFacts facts = facts_of({lease_named("a\033[2Jb"), lease_named("c\xE2\x80\xAE"
                                                                         "d")});
  const std::string text = joined(top_screen(facts, {}, 120, 24, Look::Text));
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_NE(text.find("a\\x1b[2Jb"), std::string::npos) << text;
  EXPECT_EQ(text.find("\xE2\x80\xAE"), std::string::npos) << "turns the rest of the line around";
}

TEST(TopScreen, TeachesWhenThereIsNothing) {
  const std::string text = joined(top_screen(facts_of({}), {}, 80, 24, Look::Text));
  EXPECT_NE(text.find("stint run my-job"), std::string::npos) << text;
}

TEST(TopKeys, MoveFilterLookAndQuit) {
  const TopFacts facts = facts_of(
      {lease_named("blog"), lease_named("docs"), lease_named("shop"), lease_named("wiki")});
  TopState state;
  using Wish = TopState::Wish;
  EXPECT_EQ(state.selected(facts), "blog");
  EXPECT_EQ(state.press("\033[B\033[B", facts, 10), Wish::Nothing);
  EXPECT_EQ(state.selected(facts), "shop");
  EXPECT_EQ(state.press("\033[A", facts, 10), Wish::Nothing);
  EXPECT_EQ(state.selected(facts), "docs");
  EXPECT_EQ(state.press("G", facts, 10), Wish::Nothing);
  EXPECT_EQ(state.selected(facts), "wiki");
  EXPECT_EQ(state.press("\r", facts, 10), Wish::Nothing);
  EXPECT_TRUE(state.looking());
  EXPECT_EQ(state.press("\033", facts, 10), Wish::Nothing);
  EXPECT_FALSE(state.looking());
  EXPECT_EQ(state.press("/sho\x7F"
                        "op\r",
                        facts, 10),
            Wish::Nothing);  // q is a letter while typing
  EXPECT_EQ(state.filter(), "shop");
  EXPECT_EQ(state.selected(facts), "shop");
  EXPECT_EQ(state.press("/q", facts, 10), Wish::Nothing);
  EXPECT_EQ(state.selected(facts), "");
  EXPECT_EQ(state.press("\033", facts, 10), Wish::Nothing);
  EXPECT_EQ(state.filter(), "");
  EXPECT_EQ(state.press("q", facts, 10), Wish::Quit);
  EXPECT_EQ(TopState().press("/abc\x03", facts, 10), Wish::Quit);
}

TEST(TopKeys, TheCursorStaysOnItsLeaseWhileOthersComeAndGo) {
  TopState state;
  (void)state.press("j", facts_of({lease_named("b"), lease_named("d")}), 10);
  const TopFacts later = facts_of({lease_named("a"), lease_named("b"), lease_named("d")});
  EXPECT_EQ(state.selected(later), "d");
  EXPECT_EQ(state.selected(facts_of({lease_named("a"), lease_named("b")})), "a");
}

}  // namespace
}  // namespace stint::report
