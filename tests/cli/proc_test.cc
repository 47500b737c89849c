// Where /proc cannot be read.
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/text.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

Command without_proc(Command command) {
  command.argv.insert(command.argv.begin(), {"unshare", "-m", "sh", "-c",
                                             "mount -t tmpfs none /proc && exec \"$@\"", "sh"});
  return command;
}

// Empty: it can be hidden here.
std::string cannot_hide_proc() {
  const Finished tried = run(without_proc({.argv = {"true"}}));
  return tried.exit_code == 0 ? "" : cat("/proc cannot be hidden here: ", tried.err);
}

// EVIDENCE-OF: G3
TEST(WithoutProc, NoLeaseIsProlongedUnasked) {
  if (const std::string why = cannot_hide_proc(); !why.empty()) GTEST_SKIP() << why;
  const Stint stint;
  for (const char* kind : {"sqlite", "log"}) {
    const std::string store = cat(kind, ":", stint.dir().file(kind));
    ASSERT_EQ(stint({"acquire", "r", "--ttl", "1h", "--store", store}).exit_code, 0);
    for (int i = 0; i < 2; ++i) {
      const Finished inside = run(without_proc(stint.command({"ls", "--store", store})));
      EXPECT_EQ(inside.exit_code, 0) << inside.err;
      EXPECT_NE(inside.out.find("r "), std::string::npos) << inside.out;
      EXPECT_EQ(stint({"ls", "--store", store}).exit_code, 0);
    }
    const std::string events = stint({"events", "--json", "--store", store}).out;
    EXPECT_EQ(events.find("prolonged"), std::string::npos) << events;
  }
}

TEST(DoctorHere, SaysWhatTheSandboxOffersAndOpensNoStore) {
  const Stint stint;
  const Finished plain = stint({"doctor", "--here", "--store", "postgres://nobody@127.0.0.1:1/x"});
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  for (const char* check : {"proc", "cgroup", "pidfd", "subreaper", "clock", "state", "folder"}) {
    EXPECT_EQ(count_lines(plain.out, cat(" ", check, " ")), 1) << check << " in\n" << plain.out;
  }
  EXPECT_EQ(count_lines(plain.out), 7) << plain.out;
  const std::string boot = read_text("/proc/sys/kernel/random/boot_id");
  EXPECT_NE(plain.out.find(boot.substr(0, 36)), std::string::npos) << plain.out;
  const Finished json = stint({"doctor", "--here", "--json"});
  EXPECT_NE(json.out.find("{\"check\":\"proc\",\"level\":\"ok\""), std::string::npos) << json.out;
  EXPECT_EQ(read_text(stint.database()), "") << "no store was made";
}

TEST(DoctorHere, TellsWhatIsMissingWithoutProc) {
  if (const std::string why = cannot_hide_proc(); !why.empty()) GTEST_SKIP() << why;
  const Stint stint;
  const Finished done = run(without_proc(stint.command({"doctor", "--here"})));
  EXPECT_EQ(count_lines(done.out, "proc "), 1) << done.out;
  EXPECT_EQ(count_lines(done.out, "/proc is missing"), 1) << done.out;
  EXPECT_EQ(count_lines(done.out, "the boot has no name here"), 1) << done.out;
  EXPECT_EQ(done.exit_code, 0) << "a run ends its tree here all the same: " << done.out;
}

}  // namespace
}  // namespace stint::test
