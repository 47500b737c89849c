// stint store copy: moving the leases of one store into another.
#include <array>

#include "api/json.h"
#include "app/store_copy.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/session.h"
#include "os/files.h"
#include "os/host.h"

namespace stint::cli {
namespace {

// A URL, or @FILE: a file that holds it, for one with a password.
Result<app::OpenOptions> store_of(const std::string& word, const app::Settings& settings) {
  std::string text = word;
  if (word.starts_with('@')) {
    auto read = os::read_file(word.substr(1));
    if (!read) return read.error();
    text = trim(*read);
  }
  auto url = app::parse_store_url(text);
  if (!url) return url.error();
  if (url->has_password && !word.starts_with('@')) {
    return invalid(
        "a password on the command line is seen by everybody who lists processes: write the URL "
        "into a file and say @FILE");
  }
  return app::OpenOptions{.url = *url,
                          .state_directory = settings.state_directory,
                          .may_create = true,
                          .key = settings.key};
}

int store_command(Session& session) {
  const auto& operands = session.words().operands();
  if (operands.front() != "copy" || operands.size() != 3) {
    return session.fail(invalid("what about the store? stint store copy FROM TO"));
  }
  const bool revoke = session.words().has("--revoke-held");
  const auto why = session.words().value("--why");
  if (revoke && (!why || why->empty())) {
    return session.fail(invalid("--revoke-held needs --why TEXT: the reason is kept on record"));
  }
  auto settings = session.settings();
  if (!settings) return session.fail(settings.error());
  auto from = store_of(operands[1], **settings);
  if (!from) return session.fail(from.error());
  auto to = store_of(operands[2], **settings);
  if (!to) return session.fail(to.error());
  app::StoreCopy copy{.from = *from,
                      .to = *to,
                      .revoke_why = std::nullopt,
                      .by = session.words().value("--by").value_or(os::user_name())};
  if (revoke) copy.revoke_why = why;
  const auto moved = app::copy_store(copy, session.clock(), session.random());
  if (!moved) return session.fail(moved.error());
  if (session.json()) {
    session.print(api::to_json(
        std::vector<api::JsonField>{{"leases", static_cast<std::int64_t>(moved->leases)},
                                    {"grants", static_cast<std::int64_t>(moved->grants)},
                                    {"fences", static_cast<std::int64_t>(moved->fences)},
                                    {"items", static_cast<std::int64_t>(moved->items)},
                                    {"generation", moved->generation.hex()},
                                    {"floor", static_cast<std::int64_t>(moved->floor.number())}}));
  } else {
    session.say(cat("moved ", moved->leases, " lease(s), ", moved->grants,
                    " line(s) of history and ", moved->items, " item(s) to ", to->url.printable,
                    "; generation ", moved->generation.hex(),
                    ". Point every client there: ", from->url.printable, " gives no more grants"));
  }
  return kDone;
}

constexpr std::array<Option, 3> kStoreOptions = {{
    {"--revoke-held", "", "revoke first what is held; needs --why"},
    {"--why", "TEXT", "the reason, for the record"},
    {"--by", "WHO", "who says so (default: the user's name)"},
}};
constexpr std::array<std::string_view, 2> kStoreExamples = {
    "stint store copy sqlite:/var/lib/stint.db postgres://agents@db.example/stint",
    "stint store copy sqlite:/var/lib/stint.db @/etc/stint/new-store-url"};

}  // namespace

const Command kStore = {
    .name = "store",
    .operands = "copy FROM TO",
    .summary = "move all leases to another store; tokens go on growing there",
    .details =
        "Closes the store FROM, copies its leases, history, jobs, queues, floor and line of "
        "generations into the empty store TO, and opens that. Refused while anything is held or "
        "claimed, unless --revoke-held says otherwise (claimed items are parked). Cut short, "
        "neither store gives grants until the same command has been run "
        "again. FROM and TO are store URLs; @FILE names a file that holds one.",
    .examples = kStoreExamples,
    .options = kStoreOptions,
    .least_operands = 1,
    .most_operands = 3,
    .runs_command = false,
    .run = store_command,
    .verbs = "copy",
};

}  // namespace stint::cli
