// sweep [--from TEXT] [--blows stop,kill,eio,enospc] [--calls a,b] [--most N]
//       [--prepare SHELL] [--while-stopped SHELL] [--check SHELL] -- COMMAND [ARG...]
//
// The check runs after each blow with $STRIKE, $STRUCK and $STATUS in its environment; a status
// other than 0 is a failure, its output the reason.
#include <iostream>
#include <map>

#include "base/text.h"
#include "tests/support/sweeper.h"

namespace {

using namespace stint;
using namespace stint::test;

using Options = std::map<std::string, std::string>;

int usage() {
  std::cerr << "usage: sweep [--from TEXT] [--blows stop,kill,eio,enospc] [--calls a,b]\n"
               "             [--most N] [--prepare SHELL] [--while-stopped SHELL]\n"
               "             [--check SHELL] -- COMMAND...\n";
  return 2;
}

std::string shell(const std::string& script, const Strike& strike) {
  const std::string status =
      strike.result.exit_code ? std::to_string(*strike.result.exit_code) : std::string("killed");
  const Finished done = run(
      {.argv = {"sh", "-c", script},
       .env = {
           {"STRIKE", strike.name()}, {"STRUCK", strike.struck ? "1" : "0"}, {"STATUS", status}}});
  if (done.exit_code == 0) return {};
  return cat(script, " failed: ", done.out, done.err);
}

SweepPlan plan_of(const Options& options, std::vector<std::string> command) {
  SweepPlan plan{.command = {.argv = std::move(command)}, .from = {}};
  const auto given = [&](const char* name) -> const std::string* {
    const auto found = options.find(name);
    return found == options.end() ? nullptr : &found->second;
  };
  if (const auto* from = given("--from")) plan.from = *from;
  if (const auto* calls = given("--calls")) {
    plan.syscalls.clear();
    for (const auto call : split(*calls, ',')) plan.syscalls.emplace_back(call);
  }
  if (const auto* blows = given("--blows")) {
    plan.blows.clear();
    for (const auto name : split(*blows, ',')) {
      if (const auto blow = parse_blow(name)) plan.blows.push_back(*blow);
    }
  }
  if (const auto* most = given("--most")) plan.most_points = parse_digits(*most).value_or(0);
  if (const auto* script = given("--prepare")) {
    plan.prepare = [script = *script] { shell(script, {}); };
  }
  if (const auto* script = given("--while-stopped")) {
    plan.while_stopped = [script = *script](const Strike& strike) { shell(script, strike); };
  }
  if (const auto* script = given("--check")) {
    plan.check = [script = *script](const Strike& strike) { return shell(script, strike); };
  }
  return plan;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  Options options;
  std::size_t at = 0;
  for (; at + 1 < words.size() && words[at] != "--"; at += 2) options[words[at]] = words[at + 1];
  if (at + 1 >= words.size() || words[at] != "--") return usage();
  const auto report =
      sweep(plan_of(options, {words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end()}));
  if (!report) {
    std::cerr << report.error().message << '\n';
    return 1;
  }
  std::cout << report->text();
  return report->failures.empty() ? 0 : 1;
}
