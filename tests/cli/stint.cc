#include "tests/cli/stint.h"

#include <signal.h>

#include "base/text.h"

namespace stint::test {

Stint::Stint() = default;

Command Stint::command(std::vector<std::string> words) const {
  Command command;
  command.argv = {STINT_BINARY};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  command.env = {{"XDG_STATE_HOME", dir_.file("state")},
                 {"XDG_CONFIG_HOME", dir_.file("config")},
                 {"NO_COLOR", "1"}};
  for (const char* name : {"STINT_STORE", "STINT_STORE_FILE", "STINT_OWNER", "RUN_ID", "STINT_HELD",
                           "STINT_HELD_CLAIMS", "STINT_RESOURCE", "STINT_TOKEN", "STINT_CLAIM"}) {
    command.env.emplace_back(name, std::nullopt);
  }
  if (store_) command.env.emplace_back("STINT_STORE", *store_);
  return command;
}

Finished Stint::operator()(std::vector<std::string> words, Millis deadline) const {
  return run(command(std::move(words)), deadline);
}

std::string Stint::patient_store() const { return cat("sqlite:", database(), "?timeout=60s"); }

std::string Stint::lease(const std::string& resource, const std::string& field) const {
  return json_field((*this)({"show", resource, "--json"}).out, field);
}

int Stint::events(const std::vector<std::string>& texts) const {
  int found = 0;
  const std::string all = (*this)({"events", "--json", "--limit", "100000"}).out;
  for (const std::string_view line : split(all, '\n')) {
    bool matches = !line.empty();
    for (const std::string& text : texts) matches &= line.find(text) != line.npos;
    found += matches ? 1 : 0;
  }
  return found;
}

std::string json_field(const std::string& json, const std::string& name) {
  const std::string key = cat('"', name, "\":");
  const std::size_t at = json.find(key);
  if (at == std::string::npos) return {};
  std::size_t from = at + key.size();
  if (json[from] != '"') {
    const std::string value = json.substr(from, json.find_first_of(",}]", from) - from);
    return value == "null" ? "" : value;
  }
  std::string out;
  for (++from; from < json.size() && json[from] != '"'; ++from) {
    if (json[from] == '\\') ++from;
    out += json[from];
  }
  return out;
}

namespace {

// Lines of finished or new calls; the call that it sleeps in is shown as unfinished or resumed.
int calls_in(const std::string& trace) {
  int calls = 0;
  for (const std::string_view line : split(trace, '\n')) {
    if (!line.empty() && line.find("unfinished") == line.npos) ++calls;
  }
  return calls;
}

}  // namespace

pid_t stopped_by(const std::string& trace, pid_t strace) {
  if (read_text(trace).find("stopped by") == std::string::npos) return 0;
  for (const pid_t pid : descendants(strace)) {
    const char state = state_of(pid);
    if (state == 't' || state == 'T') return pid;
  }
  return 0;
}

Quiet makes_no_call(pid_t pid, const std::string& trace) {
  constexpr Millis kStretch{5000};
  if (find_program("strace").empty())
    return {.kept = false, .trace = {}, .untraceable = "strace is not installed"};
  Child strace({.argv = {"strace", "-f", "-tt", "-o", trace, "-p", cat(pid)}});
  if (!wait_until([&] { return strace.err().find("attached") != std::string::npos; })) {
    return {.kept = false, .trace = {}, .untraceable = cat("strace may not trace: ", strace.err())};
  }
  Quiet out;
  if (!wait_until([&] { return !read_text(trace).empty(); })) return out;
  // The stretch may begin after a call that was under way; it is at most one look.
  std::string before = read_text(trace);
  MonoTime quiet_since = now();
  out.kept = wait_until(
      [&] {
        std::string present = read_text(trace);
        if (calls_in(present) != calls_in(before)) quiet_since = now();
        before = std::move(present);
        return now() - quiet_since >= kStretch;
      },
      kStretch + Millis(900));
  out.trace = read_text(trace);
  strace.signal(SIGINT);
  strace.wait(kStretch);
  return out;
}

int count_lines(const std::string& text, const std::string& containing) {
  int lines = 0;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.empty() && line.find(containing) != line.npos) ++lines;
  }
  return lines;
}

}  // namespace stint::test
