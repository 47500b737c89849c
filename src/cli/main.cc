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

int run(const std::vector<std::string>& arguments) {
  auto parsed = stint::cli::parse(arguments);
  if (!parsed) return bad_usage(arguments, parsed.error());
  if (parsed->command == nullptr && parsed->words.has("--json") && !parsed->help) {
    return bad_usage(arguments, stint::invalid("which command? stint help lists them"));
  }
  if (parsed->command == nullptr) {
    std::fputs(stint::cli::help_all().c_str(), parsed->help ? stdout : stderr);
    return parsed->help ? stint::cli::kDone : stint::cli::kUsage;
  }
  if (parsed->help) {
    std::fputs(stint::cli::help_of(*parsed->command).c_str(), stdout);
    return stint::cli::kDone;
  }
  stint::cli::Session session(stint::app::Environment::current(), std::move(parsed->words));
  const int code = parsed->command->run(session);
  // A result that could not be written is no result.
  if (std::fflush(stdout) != 0 && code == stint::cli::kDone) {
    return session.fail(
        {stint::Code::Failed, "the result could not be written to standard output"});
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& bug) {
    std::fprintf(stderr, "stint: bug: %s\n", bug.what());
    return stint::cli::kFailed;
  }
}
