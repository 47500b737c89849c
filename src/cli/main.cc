#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "api/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/help.h"
#include "cli/session.h"
#include "os/begin.h"

namespace {

int bad_usage(const std::vector<std::string>& arguments, const stint::Error& error) {
  // The words could not be read, so --json is looked for by hand; only before the child's own
  // words.
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  if (std::find(arguments.begin(), end, "--json") != end) {
    std::fprintf(stderr, "%s\n", stint::api::to_json(error).c_str());
  } else {
    std::fprintf(stderr, "stint: %s\n", error.message.c_str());
  }
  return stint::cli::kUsage;
}

// A result that could not be written is no result: whoever asked for it does not have it.
bool written() {
  const bool flushed = std::fflush(stdout) == 0;
  return flushed && std::ferror(stdout) == 0;
}

int print_help(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  if (written()) return stint::cli::kDone;
  std::fputs("stint: the help could not be written to standard output\n", stderr);
  return stint::cli::kFailed;
}

int run(const std::vector<std::string>& arguments) {
  auto parsed = stint::cli::parse(arguments);
  if (!parsed) return bad_usage(arguments, parsed.error());
  if (parsed->command == nullptr && parsed->words.has("--json") && !parsed->help) {
    return bad_usage(arguments, stint::invalid("which command? stint help lists them"));
  }
  if (parsed->command == nullptr) {
    if (parsed->help) return print_help(stint::cli::help_all());
    std::fputs(stint::cli::help_all().c_str(), stderr);
    return stint::cli::kUsage;
  }
  if (parsed->help) return print_help(stint::cli::help_of(*parsed->command));
  stint::cli::Session session(stint::app::Environment::current(), std::move(parsed->words));
  const int code = parsed->command->run(session);
  return !written() && code == stint::cli::kDone ? session.unwritten() : code;
}

}  // namespace

int main(int argc, char** argv) {
  stint::os::begin_program();
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& bug) {
    std::fprintf(stderr, "stint: bug: %s\n", bug.what());
    return stint::cli::kFailed;
  }
}
