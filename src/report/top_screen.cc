#include "report/top_screen.h"

#include <algorithm>

#include "base/text.h"
#include "report/columns.h"

namespace stint::report {
namespace {

constexpr std::string_view kUp = "\033[A";
constexpr std::string_view kDown = "\033[B";
constexpr std::string_view kHome = "\033[H";
constexpr std::string_view kEnd = "\033[F";
constexpr std::string_view kPageUp = "\033[5~";
constexpr std::string_view kPageDown = "\033[6~";
constexpr std::size_t kMostFilter = 200;

// Takes one key off the front: an escape sequence, a UTF-8 character, or a byte.
std::string_view next_key(std::string_view& keys) {
  std::size_t length = 1;
  if (keys.starts_with("\033[") || keys.starts_with("\033O")) {
    length = 2;
    while (length < keys.size() && (keys[length] < '@' || keys[length] > '~')) ++length;
    length = std::min(length + 1, keys.size());
  } else {
    while (length < keys.size() && (static_cast<unsigned char>(keys[length]) & 0xC0U) == 0x80U) {
      ++length;
    }
  }
  const std::string_view key = keys.substr(0, length);
  keys.remove_prefix(length);
  return key;
}

// Of a screen's lines: title, filter, header; then leases; then a rule, events, keys.
struct Layout {
  std::size_t leases = 0;
  std::size_t events = 0;

  explicit Layout(std::size_t rows) {
    constexpr std::size_t kFixed = 5;
    const std::size_t room = rows > kFixed ? rows - kFixed : 0;
    events = std::min<std::size_t>(room / 3, 12);
    leases = room - events;
  }
};

enum class Paint { Plain, Strong, Reversed, Alarm, Late, Faint };

std::string painted(const std::string& text, Paint paint, Look look) {
  if (look == Look::Text || paint == Paint::Plain) return text;
  // No colour: without it nobody would see the cursor.
  if (paint == Paint::Reversed) return cat("\033[7m", text, "\033[0m");
  if (look == Look::Plain) return text;
  switch (paint) {
    case Paint::Strong: return cat("\033[1m", text, "\033[0m");
    case Paint::Alarm: return cat("\033[31m", text, "\033[0m");
    case Paint::Late: return cat("\033[33m", text, "\033[0m");
    case Paint::Faint: return cat("\033[2m", text, "\033[0m");
    case Paint::Plain:
    case Paint::Reversed: break;
  }
  return text;
}

// Shrinks to the expiry, grows with a renewal.
std::string bar(const api::Lease& lease, std::size_t columns) {
  if (!lease.held || !lease.remaining || lease.ttl.count() <= 0) return std::string(columns, ' ');
  const auto share = std::clamp<std::int64_t>(
      lease.remaining->count() * static_cast<std::int64_t>(columns) / lease.ttl.count(), 0,
      static_cast<std::int64_t>(columns));
  const auto full = static_cast<std::size_t>(share);
  return std::string(full, '#') + std::string(columns - full, '.');
}

std::string age(const std::optional<WallTime>& since, WallTime now) {
  return since ? rough_duration(std::max(Millis(0), now - *since)) : "";
}

// How the cells of a line share its width.
struct Widths {
  std::size_t resource = 0;
  std::size_t state = 9;
  std::size_t token = 7;
  std::size_t owner = 0;
  std::size_t left = 7;
  std::size_t bar = 8;
  std::size_t progress = 0;

  explicit Widths(std::size_t columns) {
    constexpr std::size_t kGaps = 7;  // the sign in front, and one between two cells
    const std::size_t fixed = state + token + left + bar + kGaps;
    const std::size_t room = columns > fixed ? columns - fixed : 0;
    resource = room * 2 / 5;
    owner = room * 3 / 10;
    progress = room - resource - owner;
  }
};

std::string lease_line(const api::Lease& lease, WallTime now, std::size_t columns) {
  const Widths width(columns);
  std::string doing = printable(lease.progress);
  if (!doing.empty()) doing += cat(" (", age(lease.progress_at, now), ")");
  if (doing.empty()) doing = printable(lease.note);
  return cat(looks_stuck(lease, now) ? "!" : " ", fitted(printable(lease.resource), width.resource),
             " ", fitted(core::word(lease.state), width.state), " ",
             fitted(lease.token.issued() ? cat("#", lease.token.number()) : "", width.token), " ",
             fitted(lease.held ? printable(lease.owner.text()) : "", width.owner), " ",
             fitted(lease.remaining ? rough_duration(std::max(Millis(0), *lease.remaining)) : "",
                    width.left),
             " ", bar(lease, width.bar), " ", fitted(lease.held ? doing : "", width.progress));
}

std::string header_line(std::size_t columns) {
  const Widths width(columns);
  return cat(" ", fitted("RESOURCE", width.resource), " ", fitted("STATE", width.state), " ",
             fitted("TOKEN", width.token), " ", fitted("OWNER", width.owner), " ",
             fitted("LEFT", width.left), " ", fitted("", width.bar), " ",
             fitted("PROGRESS", width.progress));
}

Paint paint_of(const api::Lease& lease, WallTime now) {
  if (looks_stuck(lease, now)) return Paint::Alarm;
  if (!lease.held) return Paint::Faint;
  // It should have been renewed when a third was gone.
  if (lease.remaining && *lease.remaining < lease.ttl / 3) return Paint::Late;
  return Paint::Plain;
}

std::string title_line(const TopFacts& facts, std::size_t columns) {
  const auto held = std::ranges::count_if(facts.leases, &api::Lease::held);
  const std::string clock = format_utc(facts.now).substr(11, 8);
  const std::string left =
      cat(" stint  ", held, " held of ", facts.leases.size(), "  ", printable(facts.store));
  if (columns < clock.size() + 2) return fitted(left, columns);
  return cat(fitted(left, columns - clock.size() - 2), " ", clock, " ");
}

std::string filter_line(const TopFacts& facts, const TopState& state) {
  if (!facts.trouble.empty()) return cat(" ! ", printable(facts.trouble));
  if (state.typing()) return cat(" /", printable(state.filter()), "_");
  if (!state.filter().empty()) return cat(" /", printable(state.filter()), "  (Esc: all)");
  return "";
}

void teach(std::vector<std::string>& lines, const TopState& state) {
  if (!state.filter().empty()) {
    lines.emplace_back(" nothing matches");
    return;
  }
  lines.emplace_back(" no leases yet. The first one:");
  lines.emplace_back("   stint run my-job -- sleep 60");
}

}  // namespace

bool looks_stuck(const api::Lease& lease, WallTime now) {
  // As page/src/live.ts says it.
  constexpr Millis kLeast{30'000};
  return lease.held && lease.progress_at &&
         now - *lease.progress_at > std::max(3 * lease.ttl, kLeast);
}

std::vector<const api::Lease*> shown_leases(const TopFacts& facts, const std::string& filter) {
  std::vector<const api::Lease*> out;
  for (const api::Lease& lease : facts.leases) {
    const bool fits = lease.resource.find(filter) != std::string::npos ||
                      lease.owner.text().find(filter) != std::string::npos ||
                      lease.note.find(filter) != std::string::npos;
    if (fits) out.push_back(&lease);
  }
  std::stable_partition(out.begin(), out.end(),
                        [](const api::Lease* lease) { return lease->held; });
  return out;
}

std::size_t top_page(std::size_t rows) { return std::max<std::size_t>(Layout(rows).leases, 1); }

std::size_t rows_for(std::size_t leases) {
  std::size_t rows = 24;
  while (Layout(rows).leases < leases) ++rows;
  return rows;
}

std::size_t TopState::line_of(const std::vector<const api::Lease*>& shown) const {
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (shown[i]->resource == cursor_) return i;
  }
  return 0;
}

std::string TopState::selected(const TopFacts& facts) const {
  const auto shown = shown_leases(facts, filter_);
  return shown.empty() ? std::string() : shown[line_of(shown)]->resource;
}

void TopState::move(const TopFacts& facts, std::ptrdiff_t by) {
  const auto shown = shown_leases(facts, filter_);
  if (shown.empty()) return;
  const auto last = static_cast<std::ptrdiff_t>(shown.size()) - 1;
  const auto at =
      std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(line_of(shown)) + by, 0, last);
  cursor_ = shown[static_cast<std::size_t>(at)]->resource;
}

void TopState::type(std::string_view key) {
  if (key == "\r" || key == "\n") {
    typing_ = false;
  } else if (key == "\033") {
    typing_ = false;
    filter_.clear();
  } else if (key == "\x7F" || key == "\b") {
    while (!filter_.empty() && (static_cast<unsigned char>(filter_.back()) & 0xC0U) == 0x80U) {
      filter_.pop_back();
    }
    if (!filter_.empty()) filter_.pop_back();
  } else if (!has_control(key) && is_utf8(key) && filter_.size() + key.size() <= kMostFilter) {
    filter_ += key;
  }
}

TopState::Wish TopState::command(std::string_view key, const TopFacts& facts, std::size_t page) {
  const auto whole = static_cast<std::ptrdiff_t>(facts.leases.size());
  const auto some = static_cast<std::ptrdiff_t>(page);
  if (key == "q") return Wish::Quit;
  if (key == kUp || key == "\033OA" || key == "k") move(facts, -1);
  if (key == kDown || key == "\033OB" || key == "j") move(facts, 1);
  if (key == kPageUp) move(facts, -some);
  if (key == kPageDown || key == " ") move(facts, some);
  if (key == kHome || key == "g") move(facts, -whole);
  if (key == kEnd || key == "G") move(facts, whole);
  if (key == "/") typing_ = true;
  if (key == "\t") {
    if (!looking_) pane_ = next_pane(pane_);
    looking_ = false;
  }
  if (key == "\r" || key == "\n") {
    cursor_ = selected(facts);
    looking_ = !looking_ && !cursor_.empty();
  }
  if (key == "\033") {
    if (!looking_) filter_.clear();
    looking_ = false;
  }
  return Wish::Nothing;
}

TopState::Wish TopState::press(std::string_view keys, const TopFacts& facts, std::size_t page) {
  while (!keys.empty()) {
    const std::string_view key = next_key(keys);
    if (key == "\x03" || key == "\x04") return Wish::Quit;
    if (typing_) {
      type(key);
    } else if (command(key, facts, page) == Wish::Quit) {
      return Wish::Quit;
    }
  }
  return Wish::Nothing;
}

std::vector<std::string> top_screen(const TopFacts& facts, const TopState& state,
                                    std::size_t columns, std::size_t rows, Look look) {
  const Layout layout(rows);
  std::vector<std::string> out;
  out.push_back(painted(title_line(facts, columns), Paint::Reversed, look));
  out.push_back(painted(fitted(filter_line(facts, state), columns),
                        facts.trouble.empty() ? Paint::Plain : Paint::Alarm, look));
  out.push_back(painted(fitted(header_line(columns), columns), Paint::Strong, look));

  const auto shown = shown_leases(facts, state.filter());
  const std::size_t cursor = state.line_of(shown);
  const std::size_t first = cursor < layout.leases ? 0 : cursor - layout.leases + 1;
  std::vector<std::string> body;
  if (shown.empty()) teach(body, state);
  for (std::string& line : body) line = fitted(line, columns);
  for (std::size_t i = first; i < shown.size() && body.size() < layout.leases; ++i) {
    const std::string line = fitted(lease_line(*shown[i], facts.now, columns), columns);
    body.push_back(
        painted(line, i == cursor ? Paint::Reversed : paint_of(*shown[i], facts.now), look));
  }
  body.resize(layout.leases, std::string());
  out.insert(out.end(), body.begin(), body.end());

  const std::string what = state.looking() ? cat(" HISTORY of ", printable(state.selected(facts)))
                                           : cat(" ", title_of(state.pane()));
  out.push_back(painted(fitted(what, columns), Paint::Strong, look));
  auto below =
      state.looking() ? history_lines(facts) : pane_lines(facts, state.pane(), layout.events);
  below.resize(layout.events, std::string());
  for (const std::string& line : below) out.push_back(fitted(line, columns));
  const std::string keys =
      " arrows move  Enter history  Tab refused/jobs/queues  / filter  Esc back  q quit";
  out.push_back(painted(fitted(look == Look::Text ? "" : keys, columns), Paint::Faint, look));
  out.resize(rows, std::string());
  return out;
}

}  // namespace stint::report
