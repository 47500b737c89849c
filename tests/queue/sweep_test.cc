// `complete --then` killed between any two of its system calls: the completion and its follow-ups
// are there, or neither is. On the directory queue the completion comes first, and whoever comes
// next moves the follow-ups on.
#include <filesystem>
#include <iostream>

#include "tests/fault/lease_sweep.h"

namespace stint::test {
namespace {

constexpr std::size_t kSlice = 25;

struct Scene {
  Stint stint;
  std::string state = stint.dir().file("state");
  std::string store;  // empty: the default
  std::string id;

  Finished queue(std::vector<std::string> words) const {
    words.insert(words.begin(), "queue");
    return stint(std::move(words));
  }
};

std::vector<std::string> completion(const std::string& id) {
  return {"queue", "complete", id, "--epoch", "1", "--then", "jobs:one", "--then", "jobs:two"};
}

// The same item in a fresh scene each time: its files are kept aside.
void prepare(const std::string& kept, const std::string& live) {
  std::filesystem::remove_all(live);
  std::filesystem::copy(kept, live, std::filesystem::copy_options::recursive);
}

// A queue in a shared directory with one item in it; `keep()`: as it is now, before every blow.
struct DirectoryScene : Scene {
  DirectoryScene() {
    stint.use_store(cat("dir:", mount));
    EXPECT_EQ(queue({"put", "jobs", "x", "--create"}).exit_code, 0);
  }
  SweepPlan keep(const std::vector<std::string>& words) const {
    std::filesystem::copy(live, kept, std::filesystem::copy_options::recursive);
    SweepPlan plan{.command = stint.command(words), .from = live};
    plan.prepare = [this] { prepare(kept, live); };
    return plan;
  }
  std::string mount = stint.dir().file("mount");
  std::string live = mount + "/queues";
  std::string kept = stint.dir().file("kept");
};

// A look at the queue moves on what a completion has left on the way.
std::string after_the_blow(const Scene& scene) {
  const std::string state = json_field(scene.queue({"show", scene.id, "--json"}).out, "state");
  if (state == "claimed" &&
      scene.queue({"ls", "jobs", "--state", "waiting"}).out.find("jobs-") != std::string::npos) {
    return "a follow-up without its completion";
  }
  if (state != "done" && state != "claimed") return cat("the item is ", state);
  // The same again is answered "done", and now all of it is there.
  const Finished again = scene.stint(completion(scene.id));
  if (again.exit_code != 0) return cat("it cannot be repeated: ", again.err);
  if (json_field(scene.queue({"show", scene.id, "--json"}).out, "state") != "done")
    return "not done";
  const int waiting = count_lines(scene.queue({"ls", "jobs", "--state", "waiting"}).out, "jobs-");
  if (waiting != 2) return cat(waiting, " follow-ups instead of two");
  return {};
}

void sweep_completion(Scene& scene, const std::string& live) {
  ASSERT_EQ(scene.queue({"put", "jobs", "x", "--create"}).exit_code, 0);
  const Finished claim = scene.queue({"claim", "jobs", "--ttl", "1h", "--json"});
  ASSERT_EQ(claim.exit_code, 0);
  scene.id = json_field(claim.out, "id");
  const std::string kept = scene.stint.dir().file("kept");
  std::filesystem::copy(live, kept, std::filesystem::copy_options::recursive);
  SweepPlan plan{.command = scene.stint.command(completion(scene.id)), .from = live};
  plan.blows = {Blow::Kill};
  plan.most_points = full_sweep() ? 0 : kSlice;
  plan.prepare = [&] { prepare(kept, live); };
  plan.check = [&](const Strike&) { return after_the_blow(scene); };
  const auto report = sweep(plan);
  ASSERT_TRUE(report) << report.error().message;
  std::cout << report->text();
  EXPECT_TRUE(report->failures.empty()) << report->failures.front();
  EXPECT_GT(report->runs, 5);
}

// EVIDENCE-OF: G10
TEST(QueueSweep, ACompletionAndItsFollowUpsAreThereOrNeither) {
  SKIP_WITHOUT_STRACE();
  Scene scene;
  sweep_completion(scene, scene.state);
}

TEST(QueueSweep, OnADirectoryTheCompletionComesFirstAndTheRestRollsForward) {
  SKIP_WITHOUT_STRACE();
  Scene scene;
  const std::string mount = scene.stint.dir().file("mount");
  scene.stint.use_store(cat("dir:", mount));
  sweep_completion(scene, mount + "/queues");
}

// Who was killed does not come again: whoever claims next moves on what it has left.
// EVIDENCE-OF: G10
TEST(QueueSweep, OnADirectoryTheNextClaimMovesTheFollowUpsOn) {
  SKIP_WITHOUT_STRACE();
  DirectoryScene scene;
  scene.id = json_field(scene.queue({"claim", "jobs", "--ttl", "1h", "--json"}).out, "id");
  SweepPlan plan = scene.keep(completion(scene.id));
  plan.blows = {Blow::Kill};
  plan.most_points = full_sweep() ? 0 : kSlice;
  plan.check = [&](const Strike&) -> std::string {
    const bool completed =
        json_field(scene.queue({"show", scene.id, "--json"}).out, "state") == "done";
    const int code = scene.queue({"claim", "jobs"}).exit_code.value_or(-1);
    if (code != (completed ? 0 : 3)) return cat("the next claim is answered ", code);
    const int items = count_lines(scene.queue({"ls", "jobs"}).out, "jobs-");
    return items == (completed ? 3 : 1) ? "" : cat(items, " items");
  };
  const auto report = sweep(plan);
  ASSERT_TRUE(report) << report.error().message;
  std::cout << report->text();
  EXPECT_TRUE(report->failures.empty()) << report->failures.front();
  EXPECT_GT(report->runs, 5);
}

// An operator's verb takes an item out of done/ only with all that its completion brought.
// EVIDENCE-OF: G10
TEST(QueueSweep, OnADirectoryAReplayLosesNoFollowUpToAFailingCall) {
  SKIP_WITHOUT_STRACE();
  DirectoryScene scene;
  scene.id = json_field(scene.queue({"claim", "jobs", "--ttl", "1h", "--json"}).out, "id");
  ASSERT_EQ(scene.stint(completion(scene.id)).exit_code, 0);
  // As one leaves it who is killed right after the rename that counts.
  const std::string queue = scene.live + "/jobs";
  const std::string stem = cat(scene.id.substr(scene.id.rfind('-') + 1), ".e1");
  const std::string stage = cat(queue, "/staged/", stem);
  for (const auto& one : std::filesystem::directory_iterator(queue + "/queue")) {
    const std::string suffix = one.path().stem().string();
    std::filesystem::rename(one.path(), cat(stage, "/then.", suffix, ".jobs"));
  }
  std::filesystem::rename(stage, stage + ".5");
  write_text(cat(queue, "/rolling/", stem), "");
  SweepPlan plan = scene.keep({"queue", "replay", scene.id, "--why", "test"});
  plan.blows = {Blow::Eio};
  plan.most_points = full_sweep() ? 0 : 3 * kSlice;
  plan.check = [&](const Strike&) -> std::string {
    EXPECT_NE(scene.queue({"claim", "jobs"}).exit_code.value_or(-1), -1);
    const int items = count_lines(scene.queue({"ls", "jobs"}).out, "jobs-");
    return items == 3 ? "" : cat(items, " items");
  };
  const auto report = sweep(plan);
  ASSERT_TRUE(report) << report.error().message;
  std::cout << report->text();
  EXPECT_TRUE(report->failures.empty()) << report->failures.front();
  EXPECT_GT(report->runs, 5);
}

// What was told as done must survive a power cut, also if the one that did it was struck before its
// sync.
// EVIDENCE-OF: G10 G11
TEST(QueueSweep, OnADirectoryARepeatedCompletionIsSyncedBeforeItIsTold) {
  SKIP_WITHOUT_STRACE();
  DirectoryScene scene;
  scene.id = json_field(scene.queue({"claim", "jobs", "--ttl", "1h", "--json"}).out, "id");
  ASSERT_EQ(scene.stint(completion(scene.id)).exit_code, 0);
  const std::string trace = scene.stint.dir().file("trace");
  Command again = scene.stint.command(completion(scene.id));
  const std::vector<std::string> strace{"strace", "-f", "-y", "-e", "trace=fsync", "-o", trace};
  again.argv.insert(again.argv.begin(), strace.begin(), strace.end());
  ASSERT_EQ(run(again).exit_code, 0);
  EXPECT_NE(read_text(trace).find("/jobs/done>"), std::string::npos) << read_text(trace);
}

// What was staged and then struck is rubbish: the same epoch completes with another result, unless
// the first had been accepted. The one that was accepted is shown, with its own follow-up.
// EVIDENCE-OF: G10
TEST(QueueSweep, OnADirectoryACompletionThatWasStruckIsInNobodysWay) {
  SKIP_WITHOUT_STRACE();
  DirectoryScene scene;
  scene.id = json_field(scene.queue({"claim", "jobs", "--ttl", "1h", "--json"}).out, "id");
  const auto complete = [&](const std::string& word) -> std::vector<std::string> {
    const std::string file = scene.stint.dir().file(word);
    write_text(file, word);
    return {"queue",    "complete", scene.id, "--epoch",     "1",
            "--result", file,       "--then", "jobs:" + word};
  };
  SweepPlan plan = scene.keep(complete("first"));
  plan.blows = {Blow::Kill};
  plan.most_points = full_sweep() ? 0 : kSlice;
  plan.check = [&](const Strike&) -> std::string {
    const bool before =
        json_field(scene.queue({"show", scene.id, "--json"}).out, "state") == "done";
    const int code = scene.stint(complete("second")).exit_code.value_or(-1);
    if (code != (before ? 12 : 0)) return cat("another result is answered ", code);
    const std::string wanted = before ? "first" : "second";
    const std::string shown = json_field(scene.queue({"show", scene.id, "--json"}).out, "result");
    if (shown != wanted) return cat("the result is ", shown, " instead of ", wanted);
    const std::string next = scene.queue({"claim", "jobs"}).out;
    if (next != wanted + "\n") return cat("the follow-up is ", next);
    return scene.queue({"claim", "jobs"}).exit_code == 3 ? "" : "there is one more";
  };
  const auto report = sweep(plan);
  ASSERT_TRUE(report) << report.error().message;
  std::cout << report->text();
  EXPECT_TRUE(report->failures.empty()) << report->failures.front();
  EXPECT_GT(report->runs, 5);
}

// A name that could not be synced may be there, and may go again: whoever put it is not told that
// nothing was done.
// EVIDENCE-OF: G10 G11
TEST(QueueSweep, OnADirectoryAPutThatCouldNotBeSyncedIsNotSaidToBeNotDone) {
  SKIP_WITHOUT_STRACE();
  const DirectoryScene scene;
  SweepPlan plan = scene.keep({"queue", "put", "jobs", "y"});
  plan.syscalls = {"fsync", "fdatasync"};
  plan.blows = {Blow::Eio};
  int unknown = 0;
  plan.check = [&](const Strike& strike) -> std::string {
    const int there = count_lines(scene.queue({"ls", "jobs", "--state", "waiting"}).out, "jobs-");
    const int code = strike.result.exit_code.value_or(-1);
    unknown += code == 14 ? 1 : 0;
    if (code == 0 && there != 2) return "an acknowledged item is lost";
    if (code == 69 && there != 1) return "it was put: that is 14";
    return code == 0 || code == 14 || code == 69 ? "" : cat("it ended with ", code);
  };
  const auto report = sweep(plan);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->failures.empty()) << report->failures.front();
  EXPECT_GT(unknown, 0);
}

// A producer that is stopped anywhere in its put, while another puts the same unique item and it is
// worked off: it comes too late.
// EVIDENCE-OF: G10
TEST(QueueSweep, OnADirectoryAStoppedProducerBringsNoItemToLifeAgain) {
  SKIP_WITHOUT_STRACE();
  Scene scene;
  const std::string mount = scene.stint.dir().file("mount");
  scene.stint.use_store(cat("dir:", mount));
  ASSERT_EQ(scene.queue({"put", "jobs", "first", "--create"}).exit_code, 0);
  ASSERT_EQ(scene.queue({"claim", "jobs", "--ttl", "1h"}).exit_code, 0);
  const std::string live = mount + "/queues";
  const std::string kept = scene.stint.dir().file("kept");
  std::filesystem::copy(live, kept, std::filesystem::copy_options::recursive);
  const std::vector<std::string> put = {"put", "jobs", "pay", "--unique", "invoice-7"};
  std::vector<std::string> words = put;
  words.insert(words.begin(), "queue");
  SweepPlan plan{.command = scene.stint.command(words), .from = live};
  plan.blows = {Blow::Stop};
  plan.most_points = full_sweep() ? 0 : kSlice;
  plan.prepare = [&] { prepare(kept, live); };
  plan.while_stopped = [&](const Strike&) {
    scene.id = std::string(trim(scene.queue(put).out));
    scene.queue({"claim", "jobs", "--ttl", "1h", "--started"});
    scene.queue({"complete", scene.id, "--epoch", "1"});
  };
  plan.check = [&](const Strike&) -> std::string {
    const std::string state = json_field(scene.queue({"show", scene.id, "--json"}).out, "state");
    if (state != "done") return cat("the item is ", state);
    if (scene.queue({"claim", "jobs"}).exit_code != 3) return "it can be claimed again";
    return {};
  };
  const auto report = sweep(plan);
  ASSERT_TRUE(report) << report.error().message;
  std::cout << report->text();
  EXPECT_TRUE(report->failures.empty()) << report->failures.front();
  EXPECT_GT(report->runs, 5);
}

// An operator's drop that is stopped or killed anywhere: what a later put with the same key answers
// is there.
TEST(QueueSweep, OnADirectoryADropTakesNoLaterItemWithIt) {
  SKIP_WITHOUT_STRACE();
  Scene scene;
  const std::string mount = scene.stint.dir().file("mount");
  scene.stint.use_store(cat("dir:", mount));
  const std::vector<std::string> put = {"put", "jobs", "pay", "--unique", "invoice-7", "--create"};
  const std::string old(trim(scene.queue(put).out));
  ASSERT_EQ(scene.queue({"claim", "jobs", "--ttl", "1h", "--started"}).exit_code, 0);
  ASSERT_EQ(scene.queue({"complete", old, "--epoch", "1"}).exit_code, 0);
  const std::string live = mount + "/queues";
  const std::string kept = scene.stint.dir().file("kept");
  std::filesystem::copy(live, kept, std::filesystem::copy_options::recursive);
  SweepPlan plan{.command = scene.stint.command({"queue", "drop", old, "--why", "old"}),
                 .from = live};
  plan.blows = {Blow::Stop, Blow::Kill};
  plan.most_points = full_sweep() ? 0 : kSlice;
  plan.prepare = [&] { prepare(kept, live); };
  plan.while_stopped = [&](const Strike&) { scene.id = std::string(trim(scene.queue(put).out)); };
  plan.check = [&](const Strike& strike) -> std::string {
    if (strike.blow == Blow::Kill) scene.id = std::string(trim(scene.queue(put).out));
    if (scene.id.empty()) return "it cannot be put";
    // The old one was there still when it was asked for: dropped since, as ordered.
    if (scene.id == old && strike.blow == Blow::Stop) return {};
    const Finished shown = scene.queue({"show", scene.id, "--json"});
    if (shown.exit_code != 0) return cat("what was put is not there: ", shown.err);
    const std::string state = json_field(shown.out, "state");
    if (scene.id == old) return state == "done" ? "" : cat("the old one is ", state);
    const Finished claim = scene.queue({"claim", "jobs"});
    return claim.out == "pay\n" ? "" : cat("it cannot be claimed: ", claim.err);
  };
  const auto report = sweep(plan);
  ASSERT_TRUE(report) << report.error().message;
  std::cout << report->text();
  EXPECT_TRUE(report->failures.empty()) << report->failures.front();
  EXPECT_GT(report->runs, 5);
}

}  // namespace
}  // namespace stint::test
