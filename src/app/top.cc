#include "app/top.h"

#include <csignal>

#include "app/listing.h"
#include "base/text.h"
#include "os/pause.h"
#include "os/signals.h"
#include "os/terminal.h"

namespace stint::app {
namespace {

constexpr Millis kLookEvery{1000};
constexpr std::size_t kEvents = 12;
constexpr std::size_t kGrants = 12;

class Top {
 public:
  Top(Opened& opened, const Clock& clock, const TopRun& run, os::Terminal& terminal)
      : opened_(opened), clock_(clock), run_(run), terminal_(terminal) {}

  Status run(os::Signals& signals) {
    look();
    while (true) {
      draw();
      const auto ready = os::wait_readable({terminal_.fd(), signals.fd()}, next_look_);
      if (ready[1] && ended(signals)) return {};
      if (ready[0]) {
        const std::string keys = terminal_.keys();
        if (keys.empty()) return {};  // the terminal is gone
        const std::size_t page = report::top_page(terminal_.size().rows);
        if (state_.press(keys, facts_, page) == report::TopState::Wish::Quit) return {};
        look_back();
      }
      if (clock_.mono() >= next_look_) look();
    }
  }

 private:
  static bool ended(os::Signals& signals) {
    bool out = false;
    while (const auto received = signals.take()) {
      out = out || received->number == SIGINT || received->number == SIGTERM ||
            received->number == SIGHUP;
    }
    return out;
  }

  // What cannot be read now stays as it was, and the screen says so.
  void look() {
    auto facts = look_at(opened_, clock_, run_, kEvents);
    if (facts) {
      facts_ = std::move(*facts);
    } else {
      facts_.store = run_.store;
      facts_.now = clock_.wall();
      facts_.trouble = facts.error().message;
    }
    look_back();
    next_look_ = clock_.mono() + kLookEvery;
  }

  void look_back() {
    facts_.history.clear();
    if (!state_.looking()) return;
    const auto name = ResourceName::parse(state_.selected(facts_));
    if (!name) return;
    auto history = opened_.leases().history(*name, kGrants);
    if (history) facts_.history = std::move(*history);
  }

  void draw() {
    const os::TerminalSize size = terminal_.size();
    std::string out = "\033[H";
    bool first = true;
    for (const std::string& line :
         report::top_screen(facts_, state_, size.columns, size.rows, run_.look)) {
      if (!first) out += "\r\n";
      first = false;
      out += cat(line, "\033[K");
    }
    if (out != drawn_) (void)terminal_.write(out);
    drawn_ = std::move(out);
  }

  Opened& opened_;
  const Clock& clock_;
  const TopRun& run_;
  os::Terminal& terminal_;
  report::TopState state_;
  report::TopFacts facts_;
  MonoTime next_look_{};
  std::string drawn_;
};

}  // namespace

Result<report::TopFacts> look_at(Opened& opened, const Clock& clock, const TopRun& run,
                                 std::size_t events) {
  report::TopFacts out;
  out.store = run.store;
  auto leases = all_leases(opened.leases(), run.prefix);
  if (!leases) return leases.error();
  out.leases = std::move(*leases);
  auto lines =
      opened.events().list({.after = "", .prefix = run.prefix, .limit = events, .newest = true});
  if (!lines) return lines.error();
  out.events = std::move(*lines);
  out.now = clock.wall();
  return out;
}

Status fill_terminal(Opened& opened, const Clock& clock, const TopRun& run) {
  auto signals = os::Signals::make();
  if (!signals) return signals.error();
  auto terminal = os::Terminal::take();
  if (!terminal) return terminal.error();
  return Top(opened, clock, run, *terminal).run(*signals);
}

}  // namespace stint::app
