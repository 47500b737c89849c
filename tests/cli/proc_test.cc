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

}  // namespace
}  // namespace stint::test
