// Every kind of command where no system call newer than Linux 4.18 is there (ENOSYS), or allowed
// (EPERM): none needs one.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/support/process.h"

namespace stint::test {
namespace {

class NewCalls : public ::testing::TestWithParam<const char*> {};

constexpr const char* kScript = R"sh(
set -e
cd "$1"
token=$("$0" acquire r --ttl 30s)
"$0" renew r --token "$token"
"$0" check r --token "$token"
"$0" release r --token "$token"
"$0" run w -- sh -c "echo one | '$0' write out.txt && mkdir new && echo two >new/file && '$0' publish live --from new"
[ "$(cat out.txt)" = one ]
[ "$(cat live/file)" = two ]
"$0" run r a b -- "$0" run r -- "$0" progress half
"$0" once key -- true
"$0" run gate -- "$0" admit name -- true
id=$("$0" queue put q payload --create)
"$0" work q --until-empty -- true
"$0" queue show "$id" >/dev/null
git init -q --bare there.git
git init -q here && cd here
git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one
git remote add origin ../there.git
"$0" run repo -- "$0" push origin HEAD:refs/heads/main
cd ..
"$0" transfer r --to somebody --why moving --token "$("$0" show r --json | sed 's/.*"token":\([0-9]*\).*/\1/')"
"$0" ls >/dev/null
"$0" history r >/dev/null
"$0" events >/dev/null
)sh";

TEST_P(NewCalls, AreNeededByNoCommand) {
  const TempDir dir;
  const std::string report = dir.file("report");
  const Finished done =
      run({.argv = {SANDBOX_PLAYER, "confine", "--no-cgroup", "--leave", "--refuse", GetParam(),
                    "--report", report, "--", "sh", "-ec", kScript, STINT_BINARY, dir.path()},
           .env = {{"XDG_STATE_HOME", dir.file("state")},
                   {"XDG_CONFIG_HOME", dir.file("config")},
                   {"NO_COLOR", "1"}}});
  constexpr int kCannot = 99;
  if (done.exit_code == kCannot) GTEST_SKIP() << trim(done.err);
  EXPECT_TRUE(read_text(report).starts_with("exit 0,")) << done.out << done.err;
}

INSTANTIATE_TEST_SUITE_P(Each, NewCalls,
                         ::testing::Values("pidfd=ENOSYS", "new=ENOSYS", "new=EPERM",
                                           "old-clone=EPERM"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::erase_if(name, [](char c) { return c == '=' || c == '-'; });
                           return name;
                         });

}  // namespace
}  // namespace stint::test
