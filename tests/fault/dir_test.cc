// Faults of a shared directory: late writers, numbers that come free again, damage, copies.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "os/random.h"
#include "service/lease_service.h"
#include "store/dir/dir_store.h"
#include "tests/support/process.h"

namespace stint::test {
namespace {

namespace fs = std::filesystem;
using store::Committed;
using store::Conflict;
using store::DirOptions;
using store::DirStore;
using store::Step;
using store::Sync;

const os::SystemClock kClock;

Step step_of(Step::Kind kind, std::string key, std::string value = {}) {
  Step step;
  step.kind = kind;
  step.key = std::move(key);
  step.value = std::move(value);
  return step;
}

Step started(std::string key, Millis ttl) {
  Step step = step_of(Step::Kind::Set, std::move(key), "v");
  step.timer = Step::TimerOp::Start;
  step.ttl = ttl;
  return step;
}

Step extended(std::string key, Millis ttl) {
  Step step = step_of(Step::Kind::Touch, std::move(key));
  step.timer = Step::TimerOp::Extend;
  step.demand = TimerState::Running;
  step.ttl = ttl;
  return step;
}

class DirFaults : public ::testing::Test {
 protected:
  std::string path() const { return dir_.file("store"); }
  DirOptions options() const {
    DirOptions options;
    options.path = path();
    options.snapshot_every = 8;
    return options;
  }
  Result<std::unique_ptr<DirStore>> try_open() const { return DirStore::open(options(), kClock); }
  std::unique_ptr<DirStore> open() const {
    auto store = try_open();
    EXPECT_TRUE(store) << (store ? "" : store.error().message);
    return store ? std::move(*store) : nullptr;
  }
  static bool commit(store::Store& store, const std::vector<Step>& steps,
                     Sync sync = Sync::Durable) {
    auto answer = store.commit(steps, sync);
    EXPECT_TRUE(answer) << (answer ? "" : answer.error().message);
    return answer && std::holds_alternative<Committed>(*answer);
  }
  static store::Entry get(store::Store& store, const std::string& key) {
    auto reading = store.read({key});
    EXPECT_TRUE(reading) << (reading ? "" : reading.error().message);
    return reading ? reading->entries.front() : store::Entry{};
  }
  static void fill(store::Store& store, int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(commit(store, {step_of(Step::Kind::Append, "fill/", "x")}, Sync::Relaxed));
    }
  }
  std::string log_file(std::uint64_t number) const {
    return path() + "/log/" + store::dir::file_name(number);
  }
  static std::uint64_t last(store::Store& store) { return store.revision().value(); }

  TempDir dir_;
};

// A commit that was decided, and whose writer was frozen before the link.
struct Frozen {
  store::dir::Place place;
  store::dir::Staged staged;
  store::dir::LogFile file;
  os::FileFacts below;

  store::dir::Placed thaw() { return store::dir::put_in_place(place, staged, file, below); }
};

Frozen freeze(const std::string& path, const std::vector<Step>& steps) {
  os::SystemRandom random;
  Frozen frozen{store::dir::open_place(path, false, random).value(), {}, {}, {}};
  store::dir::Replica replica(frozen.place);
  EXPECT_TRUE(replica.refresh());
  auto& file = frozen.file;
  file.number = replica.last() + 1;
  file.nonce = random.next();
  file.previous = replica.nonce();
  file.base_at = replica.base_at();
  file.durable = true;
  frozen.staged = std::move(*store::dir::stage(frozen.place, file.number, file.nonce));
  store::dir::Plan plan(replica.state(), file.number, frozen.staged.changed);
  EXPECT_TRUE(std::holds_alternative<Committed>(plan.add(steps).value()));
  file.changes = plan.changes();
  file.valid_before = plan.valid_before();
  frozen.below = replica.last_facts();
  return frozen;
}

// EVIDENCE-OF: G3 G4
TEST_F(DirFaults, ARenewalThatIsLinkedAfterTheExpiryIsVoidForEverybody) {
  const auto store = open();
  ASSERT_TRUE(commit(*store, {started("k", Millis(3'000))}));
  Frozen late = freeze(path(), {extended("k", Millis(60'000))});
  ASSERT_TRUE(wait_until([&] { return get(*store, "k").timer.state == TimerState::Fired; }));
  EXPECT_EQ(late.thaw().kind, store::dir::Placed::Kind::Linked);
  EXPECT_EQ(get(*store, "k").timer.state, TimerState::Fired);
  EXPECT_EQ(get(*open(), "k").timer.state, TimerState::Fired);
  // The log goes on above it, and what was judged stays judged.
  ASSERT_TRUE(commit(*store, {step_of(Step::Kind::Set, "other", "v")}));
  EXPECT_EQ(get(*open(), "k").timer.state, TimerState::Fired);
  fill(*store, 40);
  EXPECT_EQ(get(*open(), "k").timer.state, TimerState::Fired);
}

TEST_F(DirFaults, ARenewalThatIsLinkedInTimeCountsAlsoIfItsWriterNeverLearnsOfIt) {
  const auto store = open();
  ASSERT_TRUE(commit(*store, {started("k", Millis(2'000))}));
  Frozen renewal = freeze(path(), {extended("k", Millis(60'000))});
  EXPECT_EQ(renewal.thaw().kind, store::dir::Placed::Kind::Linked);
  os::pause_for(Millis(2'100));
  EXPECT_EQ(get(*store, "k").timer.state, TimerState::Running);
  EXPECT_EQ(get(*open(), "k").timer.state, TimerState::Running);
}

// chmod, chown or another hard link move a ctime. What was judged before stays so.
TEST_F(DirFaults, TheNextCommitWritesDownHowTheLastOneWasJudged) {
  const auto store = open();
  ASSERT_TRUE(commit(*store, {started("k", Millis(2'000))}));
  ASSERT_TRUE(commit(*store, {extended("k", Millis(60'000))}));
  const std::uint64_t renewal = last(*store);
  ASSERT_TRUE(commit(*store, {step_of(Step::Kind::Set, "other", "v")}));
  os::pause_for(Millis(2'100));
  ASSERT_EQ(::chmod(log_file(renewal).c_str(), 0640), 0);
  EXPECT_EQ(get(*store, "k").timer.state, TimerState::Running);
  EXPECT_EQ(get(*open(), "k").timer.state, TimerState::Running);
}

// EVIDENCE-OF: G1 G2
TEST_F(DirFaults, ACommitInANumberThatCameFreeAgainIsNobodys) {
  const auto store = open();
  ASSERT_TRUE(commit(*store, {step_of(Step::Kind::Set, "k", "first")}));
  Frozen late = freeze(path(), {step_of(Step::Kind::Set, "k", "late")});
  const auto reader = open();  // it knows the number below, and looks again only afterwards
  fill(*store, 400);
  ASSERT_FALSE(fs::exists(log_file(late.file.number)));
  EXPECT_EQ(late.thaw().kind, store::dir::Placed::Kind::Stray) << "its staged file was removed";
  ASSERT_FALSE(fs::exists(log_file(late.file.number)));
  // The worst case: the staged file was still there.
  late.staged = std::move(*store::dir::stage(late.place, late.file.number, late.file.nonce));
  EXPECT_EQ(late.thaw().kind, store::dir::Placed::Kind::Stray);
  ASSERT_TRUE(fs::exists(log_file(late.file.number)));
  EXPECT_EQ(get(*reader, "k").value, "first");
  EXPECT_EQ(get(*store, "k").value, "first");
  EXPECT_EQ(get(*open(), "k").value, "first");
  EXPECT_EQ(reader->appended("fill/").value(), 400U);
  fill(*reader, 40);
  EXPECT_EQ(open()->appended("fill/").value(), 440U);
}

TEST_F(DirFaults, OfTwoWritersOfOneNumberTheLoserChangesNothing) {
  const auto store = open();
  Frozen late = freeze(path(), {step_of(Step::Kind::Set, "k", "late")});
  ASSERT_TRUE(commit(*store, {step_of(Step::Kind::Set, "k", "first")}));
  EXPECT_EQ(late.thaw().kind, store::dir::Placed::Kind::Beaten);
  EXPECT_EQ(get(*store, "k").value, "first");
}

// A lost reply to one's own link shows as EEXIST.
TEST_F(DirFaults, ALinkWhoseReplyWasLostIsRecognisedByItsNonce) {
  const auto store = open();
  Frozen mine = freeze(path(), {step_of(Step::Kind::Set, "k", "mine")});
  ASSERT_EQ(os::write_whole(mine.staged.file.get(), store::dir::encode(mine.file)), 0);
  ASSERT_EQ(mine.place.tmp.link(mine.staged.name, mine.place.log,
                                store::dir::file_name(mine.file.number)),
            0);
  ASSERT_EQ(::ftruncate(mine.staged.file.get(), 0), 0);
  ASSERT_EQ(::lseek(mine.staged.file.get(), 0, SEEK_SET), 0);
  EXPECT_EQ(mine.thaw().kind, store::dir::Placed::Kind::Linked);
  EXPECT_EQ(get(*store, "k").value, "mine");
}

TEST_F(DirFaults, ATornOrDamagedFileIsAnErrorAndNeverSkipped) {
  {
    const auto store = open();
    for (int i = 0; i < 3; ++i) commit(*store, {step_of(Step::Kind::Set, "k", cat(i))});
  }
  const std::string good = read_text(log_file(3));
  const auto refused = [&](std::string_view word) {
    auto store = try_open();
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, Code::Unavailable);
    EXPECT_NE(store.error().message.find("0000000000000003"), std::string::npos)
        << store.error().message;
    EXPECT_NE(store.error().message.find(word), std::string::npos) << store.error().message;
  };
  for (std::size_t i = 0; i < good.size(); i += 7) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    write_text(log_file(3), bad);
    EXPECT_FALSE(try_open()) << "byte " << i;
    write_text(log_file(3), good.substr(0, i));
    EXPECT_FALSE(try_open()) << "cut at " << i;
  }
  write_text(log_file(3), "");
  refused("empty");
  write_text(log_file(3), "stint log 2\n");
  refused("newer");
  write_text(log_file(3), good);
  EXPECT_EQ(get(*open(), "k").value, "2");
  // The last one too: it was synced before it had a name, so it may have been a grant.
  write_text(log_file(4), "");
  EXPECT_FALSE(try_open());
}

TEST_F(DirFaults, ADamagedTableIsAnError) {
  { fill(*open(), 100); }
  for (const auto& entry : fs::directory_iterator(path() + "/snap")) {
    std::string bytes = read_text(entry.path());
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
    write_text(entry.path(), bytes);
  }
  auto store = try_open();
  const bool refused =
      !store || !(*store)->scan({.prefix = "", .after = "", .limit = 1000, .backwards = false});
  EXPECT_TRUE(refused);
}

// EVIDENCE-OF: G12
TEST_F(DirFaults, ACopyIsRefusedUntilAnOperatorAcceptsIt) {
  { fill(*open(), 30); }
  fs::rename(path(), dir_.file("original"));
  fs::copy(dir_.file("original"), path(), fs::copy_options::recursive);
  auto refused = try_open();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("copied"), std::string::npos) << refused.error().message;
  DirOptions word = options();
  word.accept_copy = true;
  {
    auto accepted = DirStore::open(word, kClock);
    ASSERT_TRUE(accepted) << accepted.error().message;
    EXPECT_TRUE((*accepted)->opening().copied);
    EXPECT_FALSE(try_open());
    EXPECT_TRUE((*accepted)->accept());
  }
  const auto store = open();
  EXPECT_FALSE(store->opening().copied);
  fill(*store, 40);
  EXPECT_FALSE(open()->opening().copied) << "also after snapshots";
  // A directory that was only moved is itself.
  fs::rename(path(), dir_.file("copy"));
  fs::rename(dir_.file("original"), path());
  EXPECT_EQ(open()->appended("fill/").value(), 30U);
}

// EVIDENCE-OF: G12
TEST_F(DirFaults, AnOpenStoreNoticesThatItWentBackInTime) {
  const auto store = open();
  fill(*store, 5);
  fs::copy(path() + "/log", dir_.file("backup"));
  fill(*store, 5);
  // The files are put back in place: the directory is the same, and no anchor is asked.
  for (const auto& entry : fs::directory_iterator(path() + "/log")) fs::remove(entry.path());
  fs::copy(dir_.file("backup"), path() + "/log");
  const auto read = store->read({"k"});
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("went back in time"), std::string::npos)
      << read.error().message;
  EXPECT_FALSE(store->commit({step_of(Step::Kind::Set, "k", "v")}, Sync::Durable));
}

// And then went on, beyond what the open one has seen.
// EVIDENCE-OF: G12
TEST_F(DirFaults, AnOpenStoreNoticesThatItWentBackAndGotFurther) {
  const auto store = open();
  fill(*store, 5);
  fs::copy(path() + "/log", dir_.file("backup"));
  ASSERT_TRUE(commit(*store, {step_of(Step::Kind::Set, "k", "promised")}));
  for (const auto& entry : fs::directory_iterator(path() + "/log")) fs::remove(entry.path());
  fs::copy(dir_.file("backup"), path() + "/log");
  fill(*open(), 2);
  EXPECT_FALSE(store->read({"k"}));
  EXPECT_FALSE(store->commit({step_of(Step::Kind::Set, "k", "v")}, Sync::Durable));
}

// Each file is whole, but one is of another history.
// EVIDENCE-OF: G12
TEST_F(DirFaults, FilesThatDoNotFollowFromEachOtherAreDamage) {
  {
    const auto store = open();
    fill(*store, 2);
    fill(*store, 3);
  }
  const std::uint64_t third = last(*open()) - 2;
  Frozen stranger = freeze(path(), {step_of(Step::Kind::Append, "fill/", "y")});
  stranger.file.number = third;
  write_text(log_file(third), store::dir::encode(stranger.file));
  const auto damaged = try_open();
  const bool readable = damaged && (*damaged)->read({"k"});
  EXPECT_FALSE(readable);
}

TEST_F(DirFaults, AnOpenStoreNoticesThatItWasReplaced) {
  const auto store = open();
  fill(*store, 5);
  fs::rename(path(), dir_.file("moved"));
  EXPECT_FALSE(store->read({"k"}));
  open();
  EXPECT_FALSE(store->read({"k"}));
  EXPECT_FALSE(store->commit({step_of(Step::Kind::Set, "k", "v")}, Sync::Durable));
}

TEST_F(DirFaults, ASharedDirectoryStaysSharedAndAPrivateOnePrivate) {
  const auto modes = [&] {
    std::set<unsigned> files;
    std::set<unsigned> directories;
    for (const auto& entry : fs::recursive_directory_iterator(path())) {
      const auto mode = static_cast<unsigned>(entry.status().permissions());
      (entry.is_directory() ? directories : files).insert(mode & 0777U);
    }
    return std::pair(files, directories);
  };
  const mode_t before = ::umask(022);
  const auto use = [&] {
    const auto store = open();
    const auto watch = store->watch("k");
    fill(*store, 20);
    commit(*store, {step_of(Step::Kind::Set, "k/r", "v")});
  };
  use();
  EXPECT_EQ(modes(), std::pair(std::set<unsigned>{0600}, std::set<unsigned>{0700}));
  fs::remove_all(path());
  fs::create_directory(path());
  ::chmod(path().c_str(), 02770);
  use();
  EXPECT_EQ(modes(), std::pair(std::set<unsigned>{0660}, std::set<unsigned>{0770}));
  ::umask(before);
}

TEST_F(DirFaults, TheReadableCopyShowsEveryRecordAndIsNeverBelieved) {
  const auto store = open();
  ASSERT_TRUE(commit(
      *store, {started("own/db/main", Millis(60'000)), step_of(Step::Kind::Set, "plain", "p"),
               step_of(Step::Kind::Append, "ev/", "x")}));
  const std::string file = path() + "/records/own/db%2fmain";
  const std::string text = read_text(file);
  EXPECT_NE(text.find("record: own/db/main\n"), std::string::npos) << text;
  EXPECT_NE(text.find("commit: 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n\nv\n"), std::string::npos) << text;
  EXPECT_TRUE(fs::exists(path() + "/records/_/plain"));
  EXPECT_FALSE(fs::exists(path() + "/records/ev"));
  write_text(file, "nonsense");
  EXPECT_EQ(get(*open(), "own/db/main").value, "v");
  ASSERT_TRUE(commit(*store, {step_of(Step::Kind::Remove, "own/db/main")}));
  EXPECT_FALSE(fs::exists(file));
  // Names of every length and kind are told apart.
  std::vector<Step> steps;
  for (const char c : {'a', 'b'}) {
    steps.push_back(step_of(Step::Kind::Set, cat("own/", std::string(900, 'x'), c), "v"));
  }
  steps.push_back(step_of(Step::Kind::Set, "own/..", "v"));
  steps.push_back(step_of(Step::Kind::Set, "../own", "v"));
  ASSERT_TRUE(commit(*store, steps));
  EXPECT_EQ(std::distance(fs::directory_iterator(path() + "/records/own"), {}), 3);
}

TEST_F(DirFaults, TheLogStaysShortAndTheTablesFew) {
  {
    const auto store = open();
    for (int i = 0; i < 900; ++i) {
      ASSERT_TRUE(
          commit(*store, {step_of(Step::Kind::Set, cat("k/", i % 210), cat(i))}, Sync::Relaxed));
    }
  }
  EXPECT_LE(std::distance(fs::directory_iterator(path() + "/log"), {}), 300);
  EXPECT_LE(std::distance(fs::directory_iterator(path() + "/snap"), {}), 12);
  EXPECT_LE(std::distance(fs::directory_iterator(path() + "/tmp"), {}), 20);
  const auto store = open();
  const auto all = store->scan({.prefix = "k/", .after = "", .limit = 9999, .backwards = false});
  ASSERT_TRUE(all);
  ASSERT_EQ(all->entries.size(), 210U);
  for (int i = 690; i < 900; ++i) EXPECT_EQ(get(*store, cat("k/", i % 210)).value, cat(i));
}

}  // namespace
}  // namespace stint::test
