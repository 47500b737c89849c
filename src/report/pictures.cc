#include "report/pictures.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/text.h"

namespace stint::report {
namespace {

constexpr int kPictureWidth = 720;
constexpr int kEdge = 20;
constexpr int kRowHeight = 22;

constexpr std::string_view kGood = "#2e7d32";
constexpr std::string_view kStanding = "#4878a8";
constexpr std::string_view kLateColour = "#b26a00";
constexpr std::string_view kBad = "#b03030";
constexpr std::string_view kQuiet = "#9a9a9a";

std::string opening(const std::string& title, int height) {
  return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", kPictureWidth, " ", height,
             "\" width=\"", kPictureWidth, "\" height=\"", height,
             "\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>", title,
             "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"", kEdge,
             "\" y=\"22\" font-size=\"14\">", title, "</text>\n");
}

std::string box(int x, int y, int width, int height, std::string_view colour,
                const std::string& tip) {
  return cat("<rect x=\"", x, "\" y=\"", y, "\" width=\"", width, "\" height=\"", height,
             "\" rx=\"2\" fill=\"", colour, "\"><title>", tip, "</title></rect>\n");
}

std::string words(int x, int y, std::string_view colour, const std::string& text) {
  return cat("<text x=\"", x, "\" y=\"", y, "\" fill=\"", colour, "\">", text, "</text>\n");
}

std::string_view colour_of(const std::optional<core::Reason>& ended) {
  if (!ended) return kStanding;
  switch (*ended) {
    case core::Reason::Released:
    case core::Reason::First: return kGood;
    case core::Reason::Transferred:
    case core::Reason::TakenUp:
    case core::Reason::Retaken: return kStanding;
    case core::Reason::Expired:
    case core::Reason::Stalled:
    case core::Reason::Recovered: return kLateColour;
    case core::Reason::Revoked:
    case core::Reason::Cancelled: return kBad;
  }
  return kQuiet;
}

std::string_view colour_of(core::SlotState state) {
  switch (state) {
    case core::SlotState::Ran: return kGood;
    case core::SlotState::Failed:
    case core::SlotState::Quarantined: return kBad;
    case core::SlotState::Lost: return kLateColour;
    case core::SlotState::Due:
    case core::SlotState::Claimed:
    case core::SlotState::Starting:
    case core::SlotState::Running: return kStanding;
    case core::SlotState::SkippedOverlap:
    case core::SlotState::SkippedHeld:
    case core::SlotState::SkippedStale:
    case core::SlotState::SkippedLate:
    case core::SlotState::SkippedPaused:
    case core::SlotState::SkippedLimit: return kQuiet;
  }
  return kQuiet;
}

struct Span {
  WallTime from;
  WallTime to;
  int x(WallTime t) const {
    const std::int64_t whole = std::max<std::int64_t>((to - from).count(), 1);
    constexpr int kRoom = kPictureWidth - 2 * kEdge;
    return kEdge +
           static_cast<int>(std::clamp<std::int64_t>((t - from).count() * kRoom / whole, 0, kRoom));
  }
};

std::string axis(const Span& span, int y) {
  return cat("<line x1=\"", kEdge, "\" y1=\"", y, "\" x2=\"", kPictureWidth - kEdge, "\" y2=\"", y,
             "\" stroke=\"black\"/>\n", words(kEdge, y + 16, "black", format_utc(span.from)),
             "<text x=\"", kPictureWidth - kEdge, "\" y=\"", y + 16, "\" text-anchor=\"end\">",
             format_utc(span.to), "</text>\n");
}

bool is_refusal(const api::Event& event) { return event.kind.find("refused") != std::string::npos; }

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string history_svg(const std::string& resource, const std::vector<api::PastGrant>& grants,
                        const std::vector<api::Event>& events, WallTime now) {
  std::vector<const api::PastGrant*> drawn;
  for (const api::PastGrant& grant : grants) {
    if (grant.acquired_at) drawn.push_back(&grant);
  }
  std::reverse(drawn.begin(), drawn.end());
  const int rows = static_cast<int>(std::max<std::size_t>(drawn.size(), 1));
  constexpr int kTop = 36;
  const int bottom = kTop + rows * kRowHeight;
  std::string out = opening(escaped(resource), bottom + 60);
  if (drawn.empty()) {
    out += words(kEdge, kTop + 14, kQuiet, "it was never acquired");
    return out + "</svg>\n";
  }
  Span span{*drawn.front()->acquired_at, *drawn.front()->acquired_at};
  for (const api::PastGrant* grant : drawn) {
    span.from = std::min(span.from, *grant->acquired_at);
    span.to = std::max(span.to, grant->ended_at.value_or(grant->ended ? *grant->acquired_at : now));
  }
  int y = kTop;
  for (const api::PastGrant* grant : drawn) {
    const WallTime end = grant->ended_at.value_or(grant->ended ? *grant->acquired_at : now);
    const int left = span.x(*grant->acquired_at);
    const int width = std::max(2, span.x(end) - left);
    const std::string how = grant->ended ? std::string(core::word(*grant->ended)) : "held";
    const std::string label =
        cat("#", grant->token.number(), " ",
            grant->owner.text().empty() ? "nobody" : escaped(grant->owner.text()), ", ", how);
    out += box(left, y + 2, width, kRowHeight - 6, colour_of(grant->ended), label);
    // Beside the bar where there is room, else in front of it.
    constexpr int kHalf = kPictureWidth / 2;
    if (left + width < kHalf) {
      out += words(left + width + 6, y + 14, "black", label);
    } else if (left > kHalf) {
      out += cat("<text x=\"", left - 6, "\" y=\"", y + 14, "\" text-anchor=\"end\">", label,
                 "</text>\n");
    } else {
      out += words(left + 6, y + 14, "white", label);
    }
    y += kRowHeight;
  }
  std::size_t refused = 0;
  for (const api::Event& event : events) {
    if (!is_refusal(event) || event.resource != resource || event.at < span.from) continue;
    ++refused;
    out += cat("<path d=\"M", span.x(event.at), " ", bottom + 2, " l4 8 h-8 z\" fill=\"", kBad,
               "\"><title>", escaped(event.kind), " #", event.token, " ", escaped(event.owner),
               "</title></path>\n");
  }
  out += axis(span, bottom + 12);
  if (refused > 0) {
    out += cat("<text x=\"", kPictureWidth / 2, "\" y=\"", bottom + 28,
               "\" text-anchor=\"middle\" fill=\"", kBad, "\">", refused,
               refused == 1 ? " late write" : " late writes", " refused</text>\n");
  }
  return out + "</svg>\n";
}

std::string slots_svg(const std::string& job, const std::vector<api::SlotView>& slots) {
  constexpr int kCell = 17;
  constexpr int kPerRow = (kPictureWidth - 2 * kEdge) / kCell;
  constexpr int kTop = 36;
  const int rows = static_cast<int>(slots.size() + kPerRow - 1) / kPerRow;
  std::map<core::SlotState, std::size_t> counts;
  for (const api::SlotView& slot : slots) ++counts[slot.state];
  const int legend = kTop + std::max(rows, 1) * kCell + 18;
  std::string out = opening(cat(escaped(job), ": ", slots.size(), " slots"),
                            legend + static_cast<int>(counts.size() + 2) / 3 * kRowHeight);
  if (slots.empty()) out += words(kEdge, kTop + 14, kQuiet, "nothing was due yet");
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const api::SlotView& slot = slots[i];
    const int at = static_cast<int>(i);
    out += box(kEdge + at % kPerRow * kCell, kTop + at / kPerRow * kCell, kCell - 3, kCell - 3,
               colour_of(slot.state),
               cat(format_utc(slot.slot.at), " ", core::word(slot.state),
                   slot.cause.empty() ? "" : ": ", escaped(slot.cause)));
  }
  int n = 0;
  for (const auto& [state, count] : counts) {
    constexpr int kColumn = (kPictureWidth - 2 * kEdge) / 3;
    const int x = kEdge + n % 3 * kColumn;
    const int y = legend + n / 3 * kRowHeight;
    out += box(x, y - 10, 12, 12, colour_of(state), std::string(core::word(state)));
    out += words(x + 18, y, "black", cat(core::word(state), " ", count));
    ++n;
  }
  return out + "</svg>\n";
}

}  // namespace stint::report
