// `run --seal` killed between acquire, remember, seal and start: what is sealed is remembered, what
// ran was sealed before, and the next holder goes on at once.
#include <filesystem>

#include "tests/fault/lease_sweep.h"

namespace stint::test {
namespace {

constexpr std::size_t kSlice = 30;

std::string after_the_blow(const Stint& stint, const std::string& mark) {
  const bool ran = std::filesystem::exists(mark);
  const std::string token = stint.lease("r", "token");
  const bool fenced =
      stint({"guard", "check", "admit:x"}).out.find("stands at token 1") != std::string::npos;
  if (ran && !fenced) return "the command ran before its target was sealed";
  if (token == "0" || token.empty()) return fenced ? "a fence of a token that was lost" : "";
  const Finished revoked = stint({"revoke", "r", "--token", token, "--why", "test", "--json"});
  const bool known = revoked.out.find("\"sealed\":[{\"target\":\"admit:x\"}]") != std::string::npos;
  if (revoked.exit_code != 0) return cat("the revoke failed: ", revoked.err);
  if (fenced && !known) return "a target was sealed and not remembered";
  const Finished next = stint({"run", "r", "--", stint.binary(), "guard", "check", "admit:x"});
  if (next.exit_code != 0) return cat("the next holder cannot go on: ", next.err);
  if (known && next.out.find("token 3") == std::string::npos) return "not sealed again";
  return {};
}

// EVIDENCE-OF: G5 G11
TEST(SealSweep, KilledBetweenAcquireRememberSealAndStart) {
  SKIP_WITHOUT_STRACE();
  const Stint stint;
  const std::string mark = stint.dir().file("mark");
  SweepPlan plan{.command = stint.command({"run", "r", "--seal", "admit:x", "--", "touch", mark}),
                 .from = stint.dir().file("state")};
  plan.blows = {Blow::Kill};
  plan.most_points = full_sweep() ? 0 : kSlice;
  plan.prepare = [&] {
    std::filesystem::remove_all(stint.dir().file("state"));
    std::filesystem::remove(mark);
  };
  plan.check = [&](const Strike&) { return after_the_blow(stint, mark); };
  const auto report = sweep(plan);
  ASSERT_TRUE(report) << report.error().message;
  std::cout << report->text();
  EXPECT_TRUE(report->failures.empty()) << report->failures.front();
  EXPECT_GT(report->runs, 5);
}

std::string after_a_killed_write(const Stint& stint, const std::string& page,
                                 const std::string& body) {
  const auto write = [&](const char* token) {
    return stint({"write", page, "--from", body, "--resource", "r", "--token", token});
  };
  const Finished again = write("1");
  if (again.exit_code != 0) return cat("the holder cannot go on: ", again.err);
  const Finished revoked = stint({"revoke", "r", "--token", "1", "--why", "test", "--json"});
  if (revoked.exit_code != 0) return cat("the revoke failed: ", revoked.err);
  if (revoked.out.find("page\"}]") == std::string::npos) return "the revoke did not seal it";
  if (stint({"acquire", "r"}).out != "3\n") return "no next holder";
  const Finished next = write("3");
  return next.exit_code == 0 ? "" : cat("the next holder cannot go on: ", next.err);
}

// EVIDENCE-OF: G5 G11
TEST(SealSweep, AFirstWriteKilledAnywhereStopsNobody) {
  SKIP_WITHOUT_STRACE();
  const Stint stint;
  const std::string folder = stint.dir().file("www");
  const std::string body = stint.dir().file("body");
  write_text(body, "new");
  SweepPlan plan{.command = stint.command({"write", folder + "/page", "--from", body, "--resource",
                                           "r", "--token", "1"}),
                 .from = folder};
  plan.blows = {Blow::Kill};
  plan.most_points = full_sweep() ? 0 : kSlice;
  plan.prepare = [&] {
    std::filesystem::remove_all(stint.dir().file("state"));
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    ASSERT_EQ(stint({"acquire", "r"}).out, "1\n");
  };
  plan.check = [&](const Strike&) { return after_a_killed_write(stint, folder + "/page", body); };
  const auto report = sweep(plan);
  ASSERT_TRUE(report) << report.error().message;
  std::cout << report->text();
  EXPECT_TRUE(report->failures.empty()) << report->failures.front();
  EXPECT_GT(report->runs, 5);
}

}  // namespace
}  // namespace stint::test
