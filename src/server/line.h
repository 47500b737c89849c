// Those who wait for one thing, in the order in which they came. Only the first in line asks the
// store; the others wait for it to leave. Shared by waiters.* (leases) and queue_line.* (items),
// who say what is asked and what an answer means. The loop's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/http/server.h"
#include "server/wakes.h"

namespace stint::server {

template <class Waiter>
struct LineOf {
  std::string name;
  std::list<std::shared_ptr<Waiter>> waiting;
  std::unique_ptr<Wakes::Subscription> wakes;
  bool asking = false;
  bool again = false;  // woken while asking
  std::uint64_t alarm = 0;
};

template <class Line>
using LineMap = std::map<std::string, std::shared_ptr<Line>>;

template <class Line>
std::shared_ptr<Line> line_named(LineMap<Line>& lines, const std::string& name) {
  auto& line = lines[name];
  if (!line) {
    line = std::make_shared<Line>();
    line->name = name;
  }
  return line;
}

// False: somebody is asking already, and will ask again; or nobody is there.
template <class Line>
bool begin_asking(Line& line) {
  if (line.asking) line.again = true;
  if (line.asking || line.waiting.empty()) return false;
  line.asking = true;
  line.again = false;
  return true;
}

// Whether this is the one that is asked for just now: the answer decides what becomes of it.
template <class Line, class WaiterPtr>
bool asked_for(const Line& line, const WaiterPtr& waiter) {
  return line.asking && !line.waiting.empty() && line.waiting.front() == waiter;
}

// False: it was not there. The last one to leave takes the line away.
template <class Line, class WaiterPtr>
bool leave_line(LineMap<Line>& lines, const std::shared_ptr<Line>& line, const WaiterPtr& waiter) {
  const auto at = std::ranges::find(line->waiting, waiter);
  if (at == line->waiting.end()) return false;
  line->waiting.erase(at);
  if (!line->waiting.empty()) return true;
  line->wakes.reset();
  const auto known = lines.find(line->name);
  if (known != lines.end() && known->second == line) lines.erase(known);
  return true;
}

// A later one takes the place of this.
template <class Line, class Ask>
void alarm_in(net::http::Server& http, const std::shared_ptr<Line>& line, Millis time, Ask ask) {
  const std::uint64_t mine = ++line->alarm;
  http.later(time, [line, mine, ask] {
    if (line->alarm == mine) ask(line);
  });
}

// `act` may make them leave.
template <class Line, class Act>
void for_all_waiting(const LineMap<Line>& lines, Act act) {
  std::vector<std::shared_ptr<Line>> all;
  for (const auto& [name, line] : lines) all.push_back(line);
  for (const std::shared_ptr<Line>& line : all) {
    const auto waiting = line->waiting;
    for (const auto& one : waiting) act(line, one);
  }
}

// Lines may outlive their owner in the loop's queue; their wake-ups must not.
template <class Line>
void stop_waking(const LineMap<Line>& lines) {
  for (const auto& [name, line] : lines) line->wakes.reset();
}

}  // namespace stint::server
