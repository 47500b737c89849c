#include "report/top_panes.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "report/columns.h"
#include "report/top_screen.h"

namespace stint::report {
namespace {

void keep_last(std::vector<std::string>& lines, std::size_t most) {
  if (lines.size() > most) {
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(most));
  }
}

std::vector<std::string> event_lines(const TopFacts& facts, bool refusals) {
  std::vector<std::string> out;
  for (const api::Event& event : facts.events) {
    if (!refusals || tells_refusal(event)) out.push_back(cat(" ", event_line(event)));
  }
  return out;
}

std::vector<std::string> job_lines(const TopFacts& facts) {
  std::size_t longest = 0;
  std::size_t schedule = 0;
  for (const TopJob& job : facts.jobs) {
    longest = std::max(longest, columns_of(printable(job.name)));
    schedule = std::max(schedule, columns_of(printable(job.schedule)));
  }
  std::vector<std::string> out;
  for (const TopJob& job : facts.jobs) {
    const std::string next =
        job.paused     ? "paused"
        : job.next     ? cat("in ", rough_duration(std::max(Millis(0), *job.next - facts.now)))
        : job.readable ? "never"
                       : "?";
    out.push_back(cat(" ", fitted(printable(job.name), std::min<std::size_t>(longest, 28)), "  ",
                      fitted(printable(job.schedule), std::min<std::size_t>(schedule, 20)), "  ",
                      fitted(next, 16), " ", strip_of(job.slots)));
  }
  return out;
}

std::vector<std::string> queue_lines(const TopFacts& facts) {
  std::size_t longest = 0;
  for (const TopQueue& queue : facts.queues) longest = std::max(longest, columns_of(queue.name));
  std::vector<std::string> out;
  for (const TopQueue& queue : facts.queues) {
    const api::QueueCounts& n = queue.counts;
    out.push_back(
        cat(" ", fitted(printable(queue.name), std::min<std::size_t>(longest, 28)), "  waiting ",
            n.waiting, "  claimed ", n.claimed, "  parked ", n.parked, "  failed ", n.failed,
            "  done ", n.done,
            n.oldest ? cat("  oldest ", rough_duration(std::max(Millis(0), facts.now - *n.oldest)))
                     : ""));
  }
  return out;
}

std::string_view nothing_in(TopPane pane) {
  switch (pane) {
    case TopPane::Latest: return " nothing has happened yet";
    case TopPane::Refused: return " nothing was refused among the newest events";
    case TopPane::Jobs: return " no job yet: stint help cron";
    case TopPane::Queues: return " no queue yet: stint queue put mail 'hello' --create";
  }
  return "";
}

}  // namespace

TopPane next_pane(TopPane pane) {
  constexpr std::array kNext = {TopPane::Refused, TopPane::Jobs, TopPane::Queues, TopPane::Latest};
  return kNext[static_cast<std::size_t>(pane)];
}

std::string_view title_of(TopPane pane) {
  switch (pane) {
    case TopPane::Latest: return "LATEST";
    case TopPane::Refused: return "REFUSED";
    case TopPane::Jobs: return "JOBS";
    case TopPane::Queues: return "QUEUES";
  }
  return "";
}

std::vector<std::string> pane_lines(const TopFacts& facts, TopPane pane, std::size_t most) {
  std::vector<std::string> out;
  switch (pane) {
    case TopPane::Latest: out = event_lines(facts, false); break;
    case TopPane::Refused: out = event_lines(facts, true); break;
    case TopPane::Jobs: out = job_lines(facts); break;
    case TopPane::Queues: out = queue_lines(facts); break;
  }
  const bool dated = pane == TopPane::Latest || pane == TopPane::Refused;
  if (dated) keep_last(out, most);
  const std::size_t all = out.size() + (pane == TopPane::Jobs ? facts.more_jobs : 0);
  if (!dated && all > most && most > 0) out.resize(std::min(out.size(), most - 1));
  if (!dated && all > out.size() && most > 0) {
    out.push_back(cat(" and ", all - out.size(), " more"));
  }
  const std::string& trouble = pane == TopPane::Jobs ? facts.jobs_trouble : facts.queues_trouble;
  if (!trouble.empty() && !dated) out = {cat(" ! ", printable(trouble))};
  if (out.empty()) out.emplace_back(nothing_in(pane));
  return out;
}

std::vector<std::string> history_lines(const TopFacts& facts) {
  std::vector<std::string> out;
  for (const api::PastGrant& past : facts.history) {
    std::string line =
        cat(" #", past.token.number(), "  ", printable(past.owner.text()), "  ",
            core::word(past.reason), past.acquired_at ? "  from " : "",
            past.acquired_at ? format_utc(*past.acquired_at) : "", past.ended_at ? "  to " : "",
            past.ended_at ? format_utc(*past.ended_at) : "");
    if (past.ended) line += cat("  ", core::word(*past.ended));
    if (!past.by.empty()) line += cat("  by ", printable(past.by));
    if (!past.why.empty()) line += cat("  (", printable(past.why), ")");
    out.push_back(std::move(line));
  }
  return out;
}

bool tells_refusal(const api::Event& event) {
  constexpr std::array<std::string_view, 6> kKinds = {
      "write_refused", "write_would_be_refused", "item_refused_stale",
      "refused_held",  "skipped_held",           "skipped_overlap"};
  return std::ranges::find(kKinds, event.kind) != kKinds.end();
}

std::string event_line(const api::Event& event) {
  std::string out = cat(format_utc(event.at), "  ", printable(event.kind));
  if (!event.resource.empty()) out += cat("  ", printable(event.resource));
  if (event.token != 0) out += cat("  #", event.token);
  if (!event.owner.empty()) out += cat("  ", printable(event.owner));
  for (const auto& [name, value] : event.details) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      if (!text->empty()) out += cat("  ", printable(name), "=", printable(*text));
    } else {
      out += cat("  ", printable(name), "=", std::get<std::int64_t>(value));
    }
  }
  return out;
}

std::string strip_of(const std::vector<core::SlotState>& slots) {
  using State = core::SlotState;
  std::string out;
  for (const State state : slots) {
    const bool unknown = state == State::Lost || state == State::Quarantined;
    out += state == State::Ran      ? '#'
           : state == State::Failed ? 'x'
           : unknown                ? '?'
           : state == State::Due    ? 'o'
           : core::has_ended(state) ? '-'
                                    : '>';
  }
  return out;
}

}  // namespace stint::report
