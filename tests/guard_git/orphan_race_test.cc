// Two that clear at once, and what changes between a look and what is done by it (ADR 0026).
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "base/text.h"
#include "tests/guard_git/orphan_world.h"

namespace stint::test {
namespace {

namespace fs = std::filesystem;

// A folder is called by its inode's number, and numbers come again. Who judged the look at one file
// took the right of the look at the next one of that number, and removed a lock of a live git.
// EVIDENCE-OF: G5
TEST_F(GitOrphans, AreClearedOnlyByTheLookThatWasJudged) {
  const Barrier taking(world.dir().file("taking"));
  const Command other = world.git_command(a, {"push", "origin", "HEAD:refs/tags/u"});
  const auto anew = [&] { fs::remove(file("refs/tags/u")); };  // else nothing is pushed
  for (const bool sweeping : {false, true}) {
    SCOPED_TRACE(sweeping ? "sweeping" : "clearing");
    leave_lock();
    if (sweeping) {
      ASSERT_TRUE(gets_in());
      fs::remove(file("refs/tags/t"));
    }
    anew();
    // The process that removes, before it has begun.
    const auto slow = held_at(
        taking, held_in("sh", "*stint*orphans/[0-9]*", taking, sweeping ? other : push_command()));
    ASSERT_TRUE(taking.arrived());
    ASSERT_EQ(looks().size(), 1U);
    const std::string judged = looks().front();
    // Another clears it, and one after that sweeps its look away.
    if (!sweeping) {
      ASSERT_TRUE(gets_in());
    }
    ASSERT_TRUE(wait_until([&] {
      anew();
      return run(other).exit_code == 0 && looks().empty();
    }));
    anew();
    const auto alive = git_called("gc");
    fs::remove(file("refs/tags/t"));
    const ino_t of_alive = leave_lock();
    EXPECT_NE(push().exit_code, 0);
    ASSERT_EQ(looks().size(), 1U);
    if (looks().front() != judged) fs::rename(looks().front(), judged);  // the number came again
    taking.let_go();
    ASSERT_TRUE(slow->wait(Millis(60'000)));
    EXPECT_EQ(inode(lock()), of_alive) << "it is held by a live one: " << slow->err();
    alive->signal(SIGKILL);
    EXPECT_TRUE(gets_in());
    fs::remove(file("refs/tags/t"));
    fs::remove_all(file("stint/orphans"));
  }
}

// A record that gets its other name just when the records are listed stands under neither: it was
// not seen, and two removed one lock. Its link is seen whatever it is called.
// EVIDENCE-OF: G5
TEST_F(GitOrphans, ThatAreLinkedUnderAnyNameAreLeftToThatLink) {
  const Barrier taking(world.dir().file("taking"));
  const ino_t before = leave_lock();
  const auto slow = held_at(taking, held_in("mv", "*right.*by.*", taking, push_command()));
  ASSERT_TRUE(taking.arrived());
  fs::create_hard_link(lock(), file("stint/on-its-way"));
  taking.let_go();
  const auto end = slow->wait(Millis(60'000));
  EXPECT_TRUE(end && end->code != 0) << slow->err();
  EXPECT_EQ(inode(lock()), before);
  fs::remove(file("stint/on-its-way"));
  EXPECT_TRUE(gets_in());
}

// A power cut left a look without its list, which proves nothing, and the lock stayed for ever.
TEST_F(GitOrphans, AreLookedAtInFilesThatAreOnTheDiskBeforeTheyCount) {
  const Barrier syncing(world.dir().file("syncing"));
  leave_lock();
  const auto slow =
      held_at(syncing, held_in("sync", "*/gits*/where*/path*", syncing, push_command()));
  ASSERT_TRUE(syncing.arrived());
  ASSERT_EQ(looks().size(), 1U);
  const std::string made = looks().front();
  EXPECT_TRUE(fs::path(made).filename().string().starts_with("new."));
  EXPECT_TRUE(read_text(cat(made, "/gits")).ends_with("end\n"));
  EXPECT_EQ(read_text(cat(made, "/path")), cat(kLock, "\n"));
  EXPECT_NE(read_text(cat(made, "/where")), "");
  syncing.let_go();
  EXPECT_TRUE(slow->wait(Millis(60'000)));
  EXPECT_TRUE(gets_in());
}

// Where git's program is called otherwise (a package that wraps it: .git-wrapped) the list of gits
// was empty, and the lock of a live one was removed.
// EVIDENCE-OF: G5
TEST_F(GitOrphans, StayWhereGitIsCalledOtherwise) {
  fs::create_directories(world.dir().file("wrapped"));
  const std::string program = world.dir().file("wrapped/.git-wrapped");
  fs::copy_file(find_program("git"), program);
  const std::string script = world.dir().file("receive-pack");
  write_text(script, cat("#!/bin/bash\nexec -a git-receive-pack ", program, " \"$@\"\n"));
  fs::permissions(script, fs::perms::owner_all);
  const ino_t before = leave_lock();
  world.git(a, {"config", "remote.origin.receivepack", script});
  const Finished pushed = push();
  EXPECT_NE(pushed.exit_code, 0);
  EXPECT_NE(pushed.err.find("not every process can be seen here"), std::string::npos) << pushed.err;
  EXPECT_EQ(inode(lock()), before);
  world.git(a, {"config", "--unset", "remote.origin.receivepack"});
  EXPECT_TRUE(gets_in());
}

// A folder whose refs are links to ours, as git-new-workdir makes it, and one with a 'commondir':
// whoever receives there locks our refs, though it stands elsewhere.
// EVIDENCE-OF: G5
TEST_F(GitOrphans, StayWhileAGitLivesThatReceivesIntoAFolderWithOurRefs) {
  for (const char* shared : {"refs", "refs/tags", "commondir"}) {
    SCOPED_TRACE(shared);
    const std::string folder = world.dir().file("elsewhere.git");
    fs::create_directories(folder);
    if (std::string_view(shared) == "commondir") {
      write_text(cat(folder, "/commondir"), cat(world.repository(), "\n"));
    } else {
      fs::create_directories(fs::path(cat(folder, "/", shared)).parent_path());
      fs::create_directory_symlink(file(shared), cat(folder, "/", shared));
    }
    leave_lock();
    const auto child = git_called("receive-pack", folder);
    EXPECT_TRUE(stays_because_of(child->pid()));
    child->signal(SIGKILL);
    EXPECT_TRUE(gets_in());
    fs::remove(file("refs/tags/t"));
    fs::remove_all(folder);
  }
}

}  // namespace
}  // namespace stint::test
