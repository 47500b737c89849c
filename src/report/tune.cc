#include "report/tune.h"

#include <algorithm>

#include "base/text.h"
#include "core/holder_policy.h"
#include "report/pictures.h"

namespace stint::report {
namespace {

constexpr std::size_t kFewest = 5;
constexpr Millis kDefaultHeartbeat{30'000};
constexpr std::size_t kMostBackfill = 3;

// The smallest length that at least so many in a hundred of the runs do not exceed. Whole numbers
// throughout: the program does without the mathematical library.
Millis quantile(const std::vector<Millis>& sorted, std::size_t percent) {
  const std::size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

// Up to a length that people would write: 90s, 2m, 12m, 1h30m.
Millis rounded_up(Millis length) {
  using std::chrono::hours;
  using std::chrono::minutes;
  using std::chrono::seconds;
  Millis grain = seconds(1);
  if (length > seconds(20)) grain = seconds(5);
  if (length > minutes(2)) grain = seconds(30);
  if (length > minutes(10)) grain = minutes(1);
  if (length > hours(1)) grain = minutes(5);
  return grain * ((length + grain - Millis(1)) / grain);
}

Replay replay(const TuneInput& input, Millis ttl) {
  Replay out{.ttl = ttl};
  for (const RunSample& run : input.runs) {
    if (run.length > ttl) ++out.lost;
    // A run that died holds its lease for the rest of the ttl.
    const Millis held = run.clean ? run.length : std::max(run.length, ttl);
    if (input.interval && held > *input.interval) ++out.waiting;
  }
  return out;
}

void add_flags(const TuneInput& input, TuneReport& out) {
  if (out.present.lost > 0) {
    out.flags.push_back(cat("with a ttl of ", format_duration(input.ttl), " and nobody renewing, ",
                            out.present.lost, " of ", out.count,
                            " runs would have lost their lease while they worked: each may run "
                            "twice or more"));
  }
  if (input.interval && out.worst > *input.interval) {
    out.flags.push_back(cat("the worst run (", rough_duration(out.worst),
                            ") is longer than the time between two slots (",
                            rough_duration(*input.interval), "): some slots will be skipped"));
  }
  if (out.least_slack && *out.least_slack < input.ttl / 10) {
    out.flags.push_back(cat("a renewal came only ", rough_duration(*out.least_slack),
                            " before the deadline: the ttl is short for this store"));
  }
  if (out.unclean > 0) {
    out.flags.push_back(cat(out.unclean,
                            " run(s) did not end by themselves; their lengths do not "
                            "count"));
  }
}

}  // namespace

TuneReport tune(const TuneInput& input) {
  TuneReport out;
  std::vector<Millis> lengths;
  for (const RunSample& run : input.runs) {
    if (run.clean) lengths.push_back(run.length);
  }
  out.count = input.runs.size();
  out.unclean = out.count - lengths.size();
  out.least_slack = input.least_slack;
  out.suspends = input.suspends;
  if (lengths.size() < kFewest) {
    out.flags.push_back(cat("only ", lengths.size(), " clean run(s) are recorded: ", kFewest,
                            " are the least for advice"));
    return out;
  }
  std::ranges::sort(lengths);
  out.p50 = quantile(lengths, 50);
  out.p95 = quantile(lengths, 95);
  out.p99 = quantile(lengths, 99);
  out.worst = lengths.back();
  out.present = replay(input, input.ttl);
  // 1.75 times the worst, so that rounding stays between 1.5 and 2.
  const Millis longest = std::max(core::kShortestRunTtl, rounded_up(out.worst * 7 / 4));
  out.advised = replay(input, std::max(core::kShortestRunTtl, std::min(longest, out.worst * 2)));
  const Millis beat = std::min(input.ttl / 3, kDefaultHeartbeat);
  out.renewed_ttl = std::max(core::kShortestRunTtl, rounded_up(out.p95 + beat * 2));
  out.renewed_ttl = std::min(out.renewed_ttl, std::max(core::kShortestRunTtl, out.advised.ttl));
  out.heartbeat = out.renewed_ttl / 3;
  if (input.interval) {
    const auto fit = out.p95.count() > 0 ? *input.interval / out.p95 : std::int64_t{kMostBackfill};
    out.backfill = std::clamp<std::size_t>(static_cast<std::size_t>(fit), 1, kMostBackfill);
  }
  add_flags(input, out);
  return out;
}

std::vector<Bin> histogram(const std::vector<RunSample>& runs, std::size_t bins) {
  std::vector<Bin> out;
  if (runs.empty() || bins == 0) return out;
  const auto [least, most] = std::ranges::minmax_element(runs, {}, &RunSample::length);
  const auto count = static_cast<std::int64_t>(bins);
  const Millis from = least->length;
  const Millis width = std::max(Millis(1), (most->length - from) / count + Millis(1));
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back({.from = from + width * i, .to = from + width * (i + 1)});
  }
  for (const RunSample& run : runs) {
    ++out[static_cast<std::size_t>((run.length - from) / width)].count;
  }
  return out;
}

std::vector<std::string> histogram_lines(const std::vector<Bin>& bins, std::size_t columns) {
  std::vector<std::string> out;
  std::size_t most = 1;
  for (const Bin& bin : bins) most = std::max(most, bin.count);
  constexpr std::size_t kLabel = 24;
  const std::size_t room = columns > kLabel + 18 ? columns - kLabel - 8 : 10;
  for (const Bin& bin : bins) {
    std::string label = cat(rough_duration(bin.from), " - ", rough_duration(bin.to));
    label.resize(std::max(label.size(), kLabel), ' ');
    const std::size_t width =
        bin.count == 0 ? 0 : std::max<std::size_t>(1, bin.count * room / most);
    out.push_back(cat(label, std::string(width, '#'), bin.count == 0 ? "" : " ",
                      bin.count == 0 ? "" : std::to_string(bin.count)));
  }
  return out;
}

namespace {

struct Drawing {
  static constexpr int kWidth = 720;
  static constexpr int kHeight = 320;
  static constexpr int kLeft = 40;
  static constexpr int kBottom = 280;
  static constexpr int kTop = 50;
  Millis longest{1};

  int x(Millis t) const {
    const std::int64_t room = kWidth - 2 * kLeft;
    return kLeft + static_cast<int>(std::clamp<std::int64_t>(t * room / longest, 0, room));
  }
  std::string mark(Millis t, std::string_view colour, std::string_view label, int y) const {
    const int at = x(t);
    // Where there is room for it.
    const bool before = at > kWidth / 2;
    return cat("<line x1=\"", at, "\" y1=\"", kTop, "\" x2=\"", at, "\" y2=\"", kBottom,
               "\" stroke=\"", colour,
               "\" stroke-width=\"2\" stroke-dasharray=\"4 3\"/>\n<text x=\"",
               before ? at - 4 : at + 4, before ? "\" text-anchor=\"end" : "", "\" y=\"", y,
               "\" fill=\"", colour, "\">", label, " ", format_duration(t), "</text>\n");
  }
};

}  // namespace

std::string histogram_svg(const std::string& title, const std::vector<Bin>& bins,
                          const TuneReport& report) {
  Drawing draw;
  std::size_t most = 1;
  for (const Bin& bin : bins) most = std::max(most, bin.count);
  if (!bins.empty()) {
    draw.longest = std::max({bins.back().to, report.present.ttl, report.advised.ttl});
  }
  std::string out =
      cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", Drawing::kWidth, " ",
          Drawing::kHeight, "\" width=\"", Drawing::kWidth, "\" height=\"", Drawing::kHeight,
          "\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>", escaped(title),
          "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"",
          Drawing::kLeft, "\" y=\"20\" font-size=\"14\">", escaped(title), ": ", report.count,
          " runs, worst ", rough_duration(report.worst),
          report.unclean > 0 ? cat(", ", report.unclean, " did not end by themselves") : "",
          "</text>\n");
  for (const Bin& bin : bins) {
    const int left = draw.x(bin.from);
    const int width = std::max(1, draw.x(bin.to) - left - 1);
    const int height = static_cast<int>(bin.count * (Drawing::kBottom - Drawing::kTop - 20) / most);
    if (height == 0) continue;
    out += cat("<rect x=\"", left, "\" y=\"", Drawing::kBottom - height, "\" width=\"", width,
               "\" height=\"", height, "\" fill=\"#4878a8\"><title>", rough_duration(bin.from),
               " - ", rough_duration(bin.to), ": ", bin.count, "</title></rect>\n");
  }
  if (report.advised.ttl.count() > 0) {
    out += draw.mark(report.present.ttl, "#b03030", "present", Drawing::kTop - 4);
    out += draw.mark(report.advised.ttl, "#2e7d32", "advised", Drawing::kTop + 12);
  }
  out += cat("<line x1=\"", Drawing::kLeft, "\" y1=\"", Drawing::kBottom, "\" x2=\"",
             Drawing::kWidth - Drawing::kLeft, "\" y2=\"", Drawing::kBottom,
             "\" stroke=\"black\"/>\n");
  out +=
      cat("<text x=\"", Drawing::kLeft, "\" y=\"", Drawing::kBottom + 18, "\">0</text>\n<text x=\"",
          Drawing::kWidth - Drawing::kLeft, "\" y=\"", Drawing::kBottom + 18,
          "\" text-anchor=\"end\">", rough_duration(draw.longest), "</text>\n");
  return out + "</svg>\n";
}

}  // namespace stint::report
