#include "report/torture_page.h"

#include <algorithm>

#include "base/rfc3339.h"
#include "base/text.h"
#include "report/pictures.h"

namespace stint::report {
namespace {

struct TorturePicture {
  static constexpr int kWidth = 1100;
  static constexpr int kLeft = 150;
  static constexpr int kLane = 46;
  static constexpr int kTop = 24;
  Millis until{1};

  int x(Millis t) const {
    constexpr std::int64_t kRoom = kWidth - kLeft - 10;
    return kLeft + static_cast<int>(std::clamp<std::int64_t>(t * kRoom / until, 0, kRoom));
  }
};

// A colour for each holder, the same wherever it is shown.
std::string colour_of(const std::string& holder) {
  unsigned sum = 7;
  for (const char c : holder) sum = sum * 31 + static_cast<unsigned char>(c);
  return cat("hsl(", sum % 360, ",55%,", 62 + sum / 360 % 3 * 6, "%)");
}

// The moment up to which every lane can be drawn with so many things.
Millis drawn_until(const TortureStory& story, std::size_t most) {
  Millis until = std::max(story.length, Millis(1));
  for (const TortureLane& lane : story.lanes) {
    if (lane.held.size() > most) until = std::min(until, lane.held[most].from);
    if (lane.writes.size() > most) until = std::min(until, lane.writes[most].at);
  }
  return std::max(until, Millis(1));
}

std::string lane_picture(const TorturePicture& draw, const TortureLane& lane, int y) {
  std::string out = cat("<text x=\"4\" y=\"", y + 15, "\">", escaped(lane.name), "</text>\n");
  for (const auto& one : lane.held) {
    if (one.from >= draw.until) continue;
    const int left = draw.x(one.from);
    out += cat("<rect x=\"", left, "\" y=\"", y, "\" width=\"", std::max(1, draw.x(one.to) - left),
               "\" height=\"20\" fill=\"", colour_of(one.holder), "\"><title>token ", one.token,
               ", ", escaped(one.holder), ", ", one.from.count(), " to ", one.to.count(),
               " ms</title></rect>\n");
  }
  for (const auto& one : lane.writes) {
    if (one.at >= draw.until) continue;
    out += cat("<circle cx=\"", draw.x(one.at), "\" cy=\"", y + (one.accepted ? 27 : 35),
               "\" r=\"2.5\" fill=\"", one.accepted ? "#2e7d32" : "#c62828", "\"><title>",
               escaped(one.text), "</title></circle>\n");
  }
  return out;
}

std::string picture(const TortureStory& story, std::size_t most) {
  TorturePicture draw;
  draw.until = drawn_until(story, most);
  const int height =
      TorturePicture::kTop + TorturePicture::kLane * static_cast<int>(story.lanes.size()) + 24;
  std::string out = cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ",
                        TorturePicture::kWidth, " ", height,
                        "\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n"
                        "<title>Who held each resource, and which writes were accepted</title>\n"
                        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
  int y = TorturePicture::kTop;
  for (const TortureLane& lane : story.lanes) {
    out += lane_picture(draw, lane, y);
    y += TorturePicture::kLane;
  }
  out += cat("<line x1=\"", TorturePicture::kLeft, "\" y1=\"", y, "\" x2=\"",
             TorturePicture::kWidth - 10, "\" y2=\"", y, "\" stroke=\"black\"/>\n<text x=\"",
             TorturePicture::kLeft, "\" y=\"", y + 16, "\">0</text>\n<text x=\"",
             TorturePicture::kWidth - 10, "\" y=\"", y + 16, "\" text-anchor=\"end\">",
             format_duration(draw.until), "</text>\n</svg>\n");
  if (draw.until < story.length) {
    out += cat("<p class=\"note\">The picture shows the first ", format_duration(draw.until),
               " of ", format_duration(story.length), ".</p>\n");
  }
  return out;
}

std::string number_table(std::string_view title,
                         const std::vector<std::pair<std::string, std::uint64_t>>& rows) {
  std::string out = cat("<table><caption>", title, "</caption>\n");
  for (const auto& [name, count] : rows) {
    out += cat("<tr><th scope=\"row\">", escaped(name), "</th><td>", count, "</td></tr>\n");
  }
  return out + "</table>\n";
}

constexpr std::string_view kTortureStyle =
    "body{font-family:sans-serif;max-width:75rem;margin:1.5rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin:0 2rem 1rem 0;display:inline-table;vertical-align:top}"
    "caption{text-align:left;font-weight:bold;padding:.3rem 0}"
    "th{text-align:left;font-weight:normal;padding:.15rem 1rem .15rem 0}"
    "td{text-align:right}th,td{border-top:1px solid #ddd}"
    ".clean{color:#2e7d32}.broken{color:#c62828}.note{color:#666}"
    "pre{background:#f6f6f6;padding:.5rem;overflow-x:auto}svg{width:100%;height:auto}";

}  // namespace

std::string torture_page(const TortureStory& story, std::size_t most) {
  const bool clean = story.violations.empty();
  std::string out = cat(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<title>stint torture: ",
      escaped(story.store), "</title>\n<style>", kTortureStyle,
      "</style></head><body>\n<h1>stint torture</h1>\n<p>", escaped(story.store), ", ",
      format_rfc3339(std::chrono::sys_seconds(std::chrono::duration_cast<std::chrono::seconds>(
                         story.at.time_since_epoch())),
                     std::chrono::seconds(0)),
      ", ", format_duration(story.length), "</p>\n<h2 class=\"", clean ? "clean" : "broken", "\">",
      clean ? std::string("No promise was broken")
            : cat(story.violations.size(),
                  story.violations.size() == 1 ? " violation" : " violations"),
      "</h2>\n");
  for (const auto& one : story.violations) {
    out += cat("<h3 class=\"broken\">", escaped(one.what), "</h3>\n<pre>");
    for (const std::string& line : one.operations) out += cat(escaped(line), "\n");
    out += "</pre>\n";
  }
  out += number_table("What was done", story.counts);
  out += number_table("What was done to it", story.faults);
  out +=
      cat("<h2>Timeline</h2>\n<p class=\"note\">A bar: from a grant to its end, as its holder "
          "was told. <span class=\"clean\">Green</span>: a write that was accepted. <span "
          "class=\"broken\">Red</span>: one that was refused.</p>\n",
          picture(story, most), "</body></html>\n");
  return out;
}

}  // namespace stint::report
