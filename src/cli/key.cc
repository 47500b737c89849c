// stint key create, ls, revoke
#include <array>

#include "api/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/session.h"
#include "cli/table.h"
#include "os/host.h"

namespace stint::cli {
namespace {

constexpr std::array<Option, 3> kKeyOptions = {{
    {"--allow", "WHAT", "read, acquire, admit, queue, schedule, operate, admin; with commas"},
    {"--prefix", "P", "only resources that begin so (may be repeated; default: all)", true},
    {"--expires", "D", "in force for so long (default: until it is revoked)"},
}};
constexpr std::array<std::string_view, 4> kKeyExamples = {
    "stint key create ci --allow acquire,read --prefix team-a/ --expires 90d",
    "stint key create guard --allow admit,read > guard.key",
    "stint key ls",
    "stint key revoke ci",
};

int create(Session& session, const std::string& name) {
  const Words& words = session.words();
  const auto allow = words.value("--allow");
  if (!allow) return session.fail(invalid("--allow is missing: what may the key do?"));
  auto rights = api::parse_rights(*allow);
  if (!rights) return session.fail(std::move(rights.error()).during("reading --allow"));
  api::NewKey wanted{
      .name = name, .rights = *rights, .prefixes = words.values("--prefix"), .lasts = {}};
  if (words.value("--expires")) {
    auto lasts = session.duration("--expires", std::nullopt);
    if (!lasts) return session.fail(lasts.error());
    wanted.lasts = *lasts;
  }
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  auto made = (*opened)->keys().create(wanted, os::user_name());
  if (!made) return session.fail(made.error());
  session.did(cat("the key ", quoted(made->key.name), " (", made->key.id,
                  ") is made, and nobody knows its secret: revoke it"));
  if (session.json()) {
    std::string out = api::to_json(made->key);
    out.pop_back();
    session.print(cat(out, ",\"secret\":\"", made->secret, "\"}"));
    return kDone;
  }
  session.print(made->secret);
  session.say(cat("the key ", quoted(made->key.name), " (", made->key.id,
                  ") is made. It is shown this once: keep it in STINT_KEY or in a file named by "
                  "STINT_KEY_FILE"));
  return kDone;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += cat(out.empty() ? "" : ",", printable(word));
  return out.empty() ? "-" : out;
}

int ls(Session& session) {
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  auto keys = (*opened)->keys().list();
  if (!keys) return session.fail(keys.error());
  if (session.json()) {
    std::string out = "[";
    for (const api::Key& key : *keys) out += cat(out.size() > 1 ? "," : "", api::to_json(key));
    session.print(out + "]");
    return kDone;
  }
  Table table({"NAME", "ID", "ALLOW", "PREFIXES", "EXPIRES", "USED", "STATE"});
  const WallTime now = session.clock().wall();
  for (const api::Key& key : *keys) {
    const bool expired = key.expires_at && *key.expires_at <= now;
    table.add({key.name, key.id, joined(api::words(key.rights)), joined(key.prefixes),
               when(key.expires_at), when(key.used_at),
               key.revoked_at ? "revoked"
               : expired      ? "expired"
                              : "in force"});
  }
  for (const std::string& line : table.lines()) session.print(line);
  return kDone;
}

int revoke(Session& session, const std::string& which) {
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  auto key = (*opened)->keys().revoke(which, os::user_name());
  if (!key) return session.fail(key.error());
  if (session.json()) session.print(api::to_json(*key));
  session.say(cat("the key ", quoted(key->name), " (", key->id,
                  ") is revoked; servers refuse it within a few seconds"));
  return kDone;
}

int key_command(Session& session) {
  const auto& operands = session.words().operands();
  const std::string& verb = operands.front();
  const bool named = operands.size() == 2;
  if (verb == "ls" && !named) return ls(session);
  if (verb == "create" && named) return create(session, operands[1]);
  if (verb == "revoke" && named) return revoke(session, operands[1]);
  return session.fail(
      invalid("stint key create NAME --allow ..., stint key ls, stint key revoke NAME"));
}

}  // namespace

const Command kKey = {
    .name = "key",
    .operands = "create NAME | ls | revoke NAME|ID",
    .summary = "keys of a server: make, list, revoke",
    .details =
        "A key is kept hashed in the store and shown once, alone on stdout. What it may do: read "
        "(look, list, events, /metrics), acquire (and renew, release, report progress of its own), "
        "admit (fences), queue, schedule, operate (transfer, revoke, forget), admin (keys).\n"
        "Whoever has a key is NAME: leases show the owner NAME/label. To replace a key make a "
        "second one of the same name, hand it out, and revoke the first by its id.\n"
        "With --store http(s)://... it asks the server, with a key that allows admin.",
    .examples = kKeyExamples,
    .options = kKeyOptions,
    .least_operands = 1,
    .most_operands = 2,
    .runs_command = false,
    .run = key_command,
    .verbs = "create ls revoke",
};

}  // namespace stint::cli
