#include "report/pictures.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace stint::report {
namespace {

constexpr WallTime kDrawnAt{Millis(1'700'000'100'000)};

api::PastGrant grant_of(std::uint64_t token, Millis from, std::optional<Millis> to,
                        std::optional<core::Reason> ended) {
  api::PastGrant out;
  out.token = Token(token);
  out.owner = *Owner::parse(cat("run-", token));
  out.acquired_at = WallTime(Millis(1'700'000'000'000)) + from;
  if (to) out.ended_at = WallTime(Millis(1'700'000'000'000)) + *to;
  out.ended = ended;
  return out;
}

std::size_t count(const std::string& text, std::string_view piece) {
  std::size_t n = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1))
    ++n;
  return n;
}

TEST(HistoryPicture, HasOneBarAHolderColouredByItsEnd) {
  const std::vector<api::PastGrant> grants = {
      grant_of(3, Millis(60'000), std::nullopt, std::nullopt),
      grant_of(2, Millis(30'000), Millis(50'000), core::Reason::Expired),
      grant_of(1, Millis(0), Millis(20'000), core::Reason::Released)};
  api::Event late{.number = "1",
                  .at = kDrawnAt - Millis(5'000),
                  .kind = "write_refused",
                  .resource = "blog",
                  .token = 2,
                  .owner = "run-2",
                  .details = {}};
  const std::string svg = history_svg("blog", grants, {late}, kDrawnAt);
  EXPECT_EQ(count(svg, "<rect x="), 3U);
  EXPECT_EQ(count(svg, "fill=\"#2e7d32\""), 1U);  // released
  EXPECT_EQ(count(svg, "fill=\"#b26a00\""), 1U);  // expired
  EXPECT_NE(svg.find("#3 run-3, held"), std::string::npos);
  EXPECT_NE(svg.find("1 late write refused"), std::string::npos);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(HistoryPicture, EscapesWhatStrangersWrote) {
  api::PastGrant grant = grant_of(1, Millis(0), std::nullopt, std::nullopt);
  grant.owner = *Owner::parse("<script>&\"'");
  const std::string svg = history_svg("<img src=x>", {grant}, {}, kDrawnAt);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("<img"), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt;&amp;&quot;&#39;"), std::string::npos);
  EXPECT_NE(history_svg("r", {}, {}, kDrawnAt).find("never acquired"), std::string::npos);
}

TEST(SlotsPicture, HasOneMarkASlotAndCountsTheStates) {
  std::vector<api::SlotView> slots(45);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    slots[i].job = "nightly";
    slots[i].slot.at = WallTime(Millis(1'700'000'000'000 + static_cast<std::int64_t>(i) * 60'000));
    slots[i].state = i % 3 == 0 ? core::SlotState::SkippedOverlap : core::SlotState::Ran;
  }
  const std::string svg = slots_svg("nightly", slots);
  EXPECT_EQ(count(svg, "<rect x="), 45U + 2U);
  EXPECT_NE(svg.find("skipped_overlap 15"), std::string::npos);
  EXPECT_NE(svg.find("ran 30"), std::string::npos);
  EXPECT_NE(slots_svg("j", {}).find("nothing was due"), std::string::npos);
}

}  // namespace
}  // namespace stint::report
