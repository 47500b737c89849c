// stint torture: many processes on a store, stopped and killed, and what they were told, checked.
#include "app/torture.h"

#include <array>

#include "api/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/session.h"
#include "os/files.h"

namespace stint::cli {
namespace {

constexpr int kMostTortureClients = 256;
constexpr std::int64_t kMostTortureMinutes = 10'080;  // a week

Result<std::int64_t> whole_number(Session& session, const char* option, std::int64_t otherwise,
                                  std::int64_t most) {
  const auto text = session.words().value(option);
  if (!text) return otherwise;
  const auto number = parse_digits(*text);
  if (!number || *number == 0 || *number > static_cast<std::uint64_t>(most)) {
    return invalid(cat(option, " ", quoted(*text), ": a whole number from 1 to ", most));
  }
  return static_cast<std::int64_t>(*number);
}

std::string field_name(std::string name) {
  std::erase(name, ',');
  for (char& c : name) {
    if (c == ' ') c = '_';
  }
  return name;
}

void tell_story(Session& session, const report::TortureStory& story) {
  if (session.json()) {
    std::vector<api::JsonField> fields = {
        {"store", story.store}, {"length_ms", static_cast<std::int64_t>(story.length.count())}};
    for (const auto* rows : {&story.counts, &story.faults}) {
      for (const auto& [name, count] : *rows) {
        fields.emplace_back(field_name(name), static_cast<std::int64_t>(count));
      }
    }
    if (!story.violations.empty()) {
      fields.emplace_back("first_violation", story.violations.front().what);
    }
    session.print(api::to_json(fields));
    return;
  }
  for (const auto* rows : {&story.counts, &story.faults}) {
    for (const auto& [name, count] : *rows) {
      const std::string number = std::to_string(count);
      session.print(
          cat(std::string(9 - std::min<std::size_t>(8, number.size()), ' '), number, "  ", name));
    }
  }
  for (const auto& one : story.violations) {
    session.print(session.strong(printable(one.what)));
    for (const std::string& line : one.operations) session.print(cat("    ", printable(line)));
  }
}

int torture_command(Session& session) {
  auto settings = session.settings();
  if (!settings) return session.fail(settings.error());
  app::OpenOptions options{.url = (*settings)->store_url,
                           .state_directory = (*settings)->state_directory,
                           .may_create = true,
                           .key = (*settings)->key};
  if (const auto words = session.environment().get(app::kTortureVariable)) {
    options.state_directory.clear();  // the proxy's port is another store's tomorrow
    auto done = app::torture_here(options, *words, session.clock(), session.random());
    return done ? kDone : session.fail(done.error());
  }
  const auto minutes = whole_number(session, "--minutes", 1, kMostTortureMinutes);
  if (!minutes) return session.fail(minutes.error());
  const auto clients = whole_number(session, "--clients", 8, kMostTortureClients);
  if (!clients) return session.fail(clients.error());
  auto seconds = session.duration("--for", std::nullopt);
  if (session.words().has("--for") && !seconds) return session.fail(seconds.error());
  auto signals = os::Signals::make();
  if (!signals) return session.fail(signals.error());
  const app::TortureRequest request{
      .length = session.words().has("--for") ? *seconds : Millis(*minutes * 60'000),
      .clients = static_cast<int>(*clients),
      .say = [&](const std::string& line) { session.report(line); }};
  const auto story = app::torture_store(options, session.environment(), session.clock(),
                                        session.random(), *signals, request);
  if (!story) return session.fail(story.error());
  tell_story(session, *story);
  if (const auto path = session.words().value("--report")) {
    auto written =
        os::write_file(*path, report::torture_page(*story), os::Durability::Unsynced, 0644);
    if (!written) return session.fail(written.error());
    session.say(cat("report: ", *path));
  }
  if (story->violations.empty()) {
    session.say("no promise was broken");
    return kDone;
  }
  session.warn("a promise was BROKEN: see the lines above");
  return kFailed;
}

constexpr std::array<Option, 4> kTortureOptions = {{
    {"--minutes", "N", "how long (default 1)"},
    {"--for", "DURATION", "the same, finer"},
    {"--clients", "M", "how many processes (default 8)"},
    {"--report", "FILE.html", "a page with the numbers and a picture of who held what"},
}};
constexpr std::array<std::string_view, 2> kTortureExamples = {
    "stint torture --store dir:/mnt/shared/stint --minutes 10 --report torture.html",
    "stint torture --clients 32 --json"};

}  // namespace

const Command kTorture = {
    .name = "torture",
    .operands = "",
    .summary =
        "try to break the promises on a store: processes stopped and killed, answers checked",
    .details =
        "Starts processes of its own that take leases, seal, read and write guarded files under "
        "them and after them, and stops and kills these processes at random. A server is reached "
        "through a proxy of its own that loses answers and requests and cuts connections (not "
        "over TLS or a Unix socket). Every answer that they got is written down and checked "
        "afterwards: tokens grow, grants do not overlap, "
        "nothing stale was accepted, nothing that was acknowledged is lost, and the answers fit "
        "into one order. The exit code is 0 only if no promise was broken.\n\n"
        "On the store it uses resources of its own, named torture-..., and removes their records "
        "at the end; lines in the ledger stay as long as others do. The guarded files are in a "
        "temporary folder. No other record and no other process is touched.",
    .examples = kTortureExamples,
    .options = kTortureOptions,
    .least_operands = 0,
    .most_operands = 0,
    .runs_command = false,
    .run = torture_command,
};

}  // namespace stint::cli
