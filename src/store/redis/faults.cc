#include "store/redis/faults.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace stint::store::redis {
namespace {

struct Known {
  std::string_view word;
  Code code;
  std::string_view says;
};

// The words are the server's own, always first in the line. None of them comes after a write of the
// script: it writes last, and catches what fails then.
constexpr std::array kKnown = {
    Known{"WRONGPASS", Code::Denied, "refuses this user or password"},
    Known{"NOAUTH", Code::Denied, "wants a password, and the URL has none"},
    Known{"NOPERM", Code::Denied, "does not permit this user what stint needs"},
    Known{"READONLY", Code::Unavailable, "is a read-only replica: point stint at the master"},
    Known{"LOADING", Code::Unavailable, "is still loading its data"},
    Known{"BUSY", Code::Unavailable, "is busy with somebody's long script"},
    Known{"OOM", Code::Unavailable, "is out of memory (maxmemory)"},
    Known{"MISCONF", Code::Unavailable,
          "takes no writes because it cannot save to its disk (stop-writes-on-bgsave-error)"},
    Known{"MASTERDOWN", Code::Unavailable, "is a replica that has lost its master"},
    Known{"NOREPLICAS", Code::Unavailable, "takes no writes: too few replicas are connected"},
    Known{"CLUSTERDOWN", Code::Unavailable, "is a node of a cluster that is down"},
    Known{"DENIED", Code::Denied, "takes no connections from here (protected mode)"},
    Known{"NOSCRIPT", Code::Unavailable, "forgets scripts as soon as it has them"},
};

const Known* known(const Reply& reply) {
  const auto* const found =
      std::ranges::find_if(kKnown, [&](const Known& each) { return reply.error_is(each.word); });
  return found == kKnown.end() ? nullptr : found;
}

// "MOVED 1234 10.0.0.7:6379": the third word.
std::string moved_to(const std::string& text) {
  const auto words = split(text, ' ');
  return words.size() < 3 ? "another node" : printable(words[2]);
}

// "ERR unknown command 'EVAL', with args beginning with: ...": renamed, or taken away. Redis 6 has
// other quotes.
constexpr std::string_view kNoCommand = "ERR unknown command ";

std::string missing_command(std::string_view text) {
  const std::string_view quoted_name = text.substr(kNoCommand.size());
  const std::size_t end = quoted_name.find_first_of("'`", 1);
  return end == quoted_name.npos ? "a command" : printable(quoted_name.substr(1, end - 1));
}

}  // namespace

Error fault_of(const Reply& reply, std::string_view where) {
  if (const Known* found = known(reply)) {
    Error out{found->code, cat("the Redis at ", where, " ", found->says)};
    // Which command or key: that is worth knowing, and no secret.
    if (found->word == "NOPERM") out.message += cat(": ", printable(reply.text.substr(7)));
    return out;
  }
  if (reply.error_is("MOVED") || reply.error_is("ASK")) {
    return unavailable(cat("the Redis at ", where,
                           " is one node of a cluster; this store's keys are on ",
                           moved_to(reply.text), ": point stint there"));
  }
  if (reply.error_is("WRONGTYPE")) {
    return unavailable(cat("the Redis at ", where,
                           " has a key of somebody else under stint's name (see ?prefix=)"));
  }
  if (reply.text.starts_with(kNoCommand)) {
    return unavailable(cat("the Redis at ", where, " has no ", missing_command(reply.text),
                           ", which stint needs (rename-command?)"));
  }
  // Redis 6 has no word of its own for a missing permission inside a script.
  if (reply.text.find("can't run this command") != std::string::npos) {
    return {Code::Denied, cat("the Redis at ", where,
                              " does not permit this user a command that stint's script needs")};
  }
  constexpr std::size_t kMostShown = 200;
  return unavailable(
      cat("the Redis at ", where, " says: ", printable(reply.text.substr(0, kMostShown))));
}

bool surely_not_done(const Reply& reply) {
  return known(reply) != nullptr || reply.error_is("MOVED") || reply.error_is("ASK") ||
         reply.text.starts_with(kNoCommand);
}

Error damaged(std::string_view what) {
  return unavailable(cat("the Redis store is damaged: ", what));
}

}  // namespace stint::store::redis
