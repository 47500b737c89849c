// Every command once or more, in an order in which each comes as far as it can. In a folder with
// prepare_folder(), in a store with the lease "keep" held with token 1.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/stint.h"

namespace stint::test {

using Words = std::vector<std::string>;

inline void prepare_folder(const Stint& stint) {
  write_text(stint.dir().file("stint.toml"),
             "[job.j]\nschedule = \"0 0 1 1 *\"\ncommand = [\"true\"]\n");
  std::filesystem::create_directory(stint.dir().file("staged"));
}

inline const std::vector<Words> kEveryCommand = {
    {"acquire", "keep", "--json"},
    {"acquire", "a"},
    {"acquire", "b", "--json"},
    {"acquire", "c", "--env"},
    {"renew", "keep", "--token", "1", "--json"},
    {"check", "keep", "--token", "1", "--json"},
    {"check", "keep", "--token", "9", "--json"},
    {"progress", "half", "--json"},
    {"run", "r", "--json", "--", "true"},
    {"run", "keep", "--json", "--", "true"},
    {"once", "k", "--", "true"},
    {"once", "k", "--json", "--", "true"},
    {"transfer", "a", "--to", "you", "--why", "x", "--token", "1", "--json"},
    {"revoke", "b", "--why", "x", "--token", "1", "--json"},
    {"release", "c", "--token", "1", "--json"},
    {"forget", "c", "--json"},
    {"write", "file", "--resource", "keep", "--token", "1", "--json"},
    {"publish", "folder", "--from", "staged", "--resource", "keep", "--token", "1", "--json"},
    {"push", "--json"},
    {"seal", "file:sealed", "--resource", "keep", "--token", "1", "--json"},
    {"admit", "door", "--resource", "keep", "--token", "1", "--json", "--", "true"},
    {"queue", "put", "q", "x", "--create", "--json"},
    {"queue", "ls", "q", "--json"},
    {"queue", "claim", "q", "--json"},
    {"work", "q", "--until-empty", "--", "true"},
    {"guard", "check", "file:sealed", "--json"},
    {"slots", "j", "--json"},
    {"explain", "j", "--json"},
    {"tune", "keep", "--json"},
    {"cron", "next", "0 * * * *", "--json"},
    {"cron", "check", "--json"},
    {"cron", "pause", "j", "--json"},
    {"key", "create", "k", "--allow", "read", "--json"},
    {"key", "ls", "--json"},
    {"ls", "--json"},
    {"ls"},
    {"show", "keep"},
    {"history", "keep", "--json"},
    {"events", "--json"},
    {"top", "--json"},
    {"config", "show", "--json"},
    {"store", "copy", "--json"},
    {"torture", "--minutes", "x", "--json"},
    {"doctor", "--accept-restored", "--json"},
    {"doctor", "--here", "--json"},
    {"version"},
    {"completion", "bash"},
    {"help"},
    {"nonsense", "--json"},
};
}  // namespace stint::test
