// What a power cut would leave cannot be had here: a kill keeps the page cache. So the order of the
// calls is looked at: what is told was synced before, and what has a name was synced before it got
// it.
// EVIDENCE-OF: G11
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/text.h"
#include "os/clock.h"
#include "store/dir/dir_store.h"
#include "store/log/log_store.h"
#include "tests/cli/stint.h"
#include "tests/fault/lease_sweep.h"

namespace stint::test {
namespace {

constexpr const char* kLooked = "trace=fsync,fdatasync,write,pwrite64,link,linkat,rename,renameat";

// The calls of one command that write, sync and name files, with their paths, in their order.
class OrderOfCalls {
 public:
  OrderOfCalls(const Stint& stint, std::vector<std::string> words,
               const std::string& inject = kLooked) {
    Command command = stint.command(std::move(words));
    const std::string trace = stint.dir().file("order");
    const std::vector<std::string> before = {"strace", "-f",    "-y", "-o",   trace,
                                             "-e",     kLooked, "-e", inject, "--"};
    command.argv.insert(command.argv.begin(), before.begin(), before.end());
    result = run(command);
    text_ = read_text(trace);
    for (const std::string_view line : split(text_, '\n')) lines_.emplace_back(line);
  }

  // The next call from there on with all of these texts; count(): there is none.
  std::size_t find(std::size_t from, const std::vector<std::string>& texts) const {
    const auto has_all = [&](const std::string& line) {
      return std::ranges::all_of(
          texts, [&](const std::string& text) { return line.find(text) != std::string::npos; });
    };
    const auto begin = lines_.begin() + static_cast<std::ptrdiff_t>(std::min(from, count()));
    return static_cast<std::size_t>(std::find_if(begin, lines_.end(), has_all) - lines_.begin());
  }
  std::size_t count() const { return lines_.size(); }
  std::size_t answer() const { return find(0, {" write(1<"}); }
  const std::string& line(std::size_t at) const { return lines_.at(at); }
  std::string text() const { return cat(text_, result.err); }

  // Whether that file is synced after its last write, and before the answer.
  bool written_and_synced(const std::string& path) const {
    std::size_t last = count();
    for (std::size_t at = 0; (at = find(at, {"write", path})) < answer(); ++at) last = at;
    return last < answer() && find(last, {"sync(", path}) < answer();
  }
  // Whether the call at that place names a file that was synced, and the name is synced, too.
  bool named_in_order(std::size_t at, const std::string& file, const std::string& folder) const {
    return at < answer() && find(0, {"sync(", cat(file, ">)")}) < at &&
           find(at, {"fsync(", cat(folder, ">)")}) < answer();
  }

  Finished result;

 private:
  std::string text_;
  std::vector<std::string> lines_;
};

// A world in which something was acquired already.
class SyncOrder : public ::testing::Test {
 protected:
  void use(const std::string& url) {
    stint_.use_store(url);
    ASSERT_EQ(stint_({"acquire", "before", "--ttl", "1h"}).exit_code, 0);
  }
  // Commits of a process that has gone.
  static void fill(store::Store& store, const std::function<bool()>& enough) {
    store::Step filler;
    filler.kind = store::Step::Kind::Set;
    filler.key = "filler";
    filler.value = std::string(1000, 'x');
    while (!enough()) ASSERT_TRUE(store.commit({filler}, store::Sync::Relaxed));
  }
  std::string store() const { return stint_.dir().file("store"); }
  Stint stint_;
};

#define EXPECT_GRANTED(calls)                               \
  ASSERT_EQ((calls).result.exit_code, 0) << (calls).text(); \
  ASSERT_LT((calls).answer(), (calls).count()) << (calls).text()

TEST_F(SyncOrder, OfSqliteTheCommitIsSyncedBeforeTheAnswer) {
  SKIP_WITHOUT_STRACE();
  use(cat("sqlite:", store()));
  const OrderOfCalls calls(stint_, {"acquire", "r"});
  EXPECT_GRANTED(calls);
  EXPECT_TRUE(calls.written_and_synced(store() + "-wal>")) << calls.text();
}

TEST_F(SyncOrder, OfADirectoryTheCommitIsSyncedBeforeItsNameAndItsNameBeforeTheAnswer) {
  SKIP_WITHOUT_STRACE();
  use(cat("dir:", store()));
  const OrderOfCalls calls(stint_, {"acquire", "r"});
  EXPECT_GRANTED(calls);
  const std::size_t link = calls.find(0, {"link", store() + "/log>"});
  ASSERT_LT(link, calls.count()) << calls.text();
  const std::string staged = calls.line(link).substr(calls.line(link).find('"') + 1);
  EXPECT_TRUE(calls.named_in_order(link, cat(store(), "/tmp/", staged.substr(0, staged.find('"'))),
                                   store() + "/log"))
      << calls.text();
}

TEST_F(SyncOrder, OfALogTheCommitIsSyncedBeforeTheAnswer) {
  SKIP_WITHOUT_STRACE();
  use(cat("log:", store(), "?segment_kb=1024"));
  const OrderOfCalls calls(stint_, {"acquire", "r"});
  EXPECT_GRANTED(calls);
  const std::string log = store() + "/log.0000000000000001>";
  EXPECT_TRUE(calls.written_and_synced(log)) << calls.text();
  // The last entry of the process before: nobody can say any more that it was synced.
  const std::size_t again = calls.find(0, {"pwrite64(", log});
  const std::size_t synced = calls.find(again, {"fdatasync(", log});
  const std::size_t own = calls.find(synced, {"pwrite64(", log});
  EXPECT_LT(own, calls.find(own, {"fdatasync(", log})) << calls.text();
  EXPECT_LT(own, calls.answer()) << calls.text();
}

TEST_F(SyncOrder, OfALogEveryFileIsSyncedBeforeItsNameAndItsNameBeforeTheAnswer) {
  SKIP_WITHOUT_STRACE();
  stint_.use_store(cat("log:", store(), "?segment_kb=1024"));
  const OrderOfCalls calls(stint_, {"acquire", "r"});
  EXPECT_GRANTED(calls);
  const std::size_t segment = calls.find(0, {"rename", "spare", "log.0000000000000001"});
  EXPECT_TRUE(calls.named_in_order(segment, store() + "/spare", store())) << calls.text();
  const std::size_t snapshot = calls.find(0, {"rename", "snapshot.new", "\"snapshot\""});
  EXPECT_TRUE(calls.named_in_order(snapshot, store() + "/snapshot.new", store())) << calls.text();
  EXPECT_LT(segment, snapshot) << "a snapshot names the log that it begins with";
}

// Else a power cut takes what the snapshot shows out of the log, and the store is refused.
TEST_F(SyncOrder, OfALogWhatASnapshotShowsIsSynced) {
  SKIP_WITHOUT_STRACE();
  const std::string url = cat("log:", store(), "?segment_kb=1024");
  use(url);
  {
    store::LogOptions options;
    options.path = store();
    options.clock_name = os::clock_name();
    const os::SystemClock clock;
    const auto opened = store::LogStore::open(options, clock);
    ASSERT_TRUE(opened);
    int left = 100;
    fill(**opened, [&] { return left-- == 0; });
  }
  const OrderOfCalls calls(
      stint_, {"release", "before", "--token", "1", "--store", cat(url, "&snapshot_kb=1")});
  EXPECT_EQ(calls.result.exit_code, 0) << calls.text();
  const std::size_t named = calls.find(0, {"rename", "snapshot.new", "\"snapshot\""});
  ASSERT_LT(named, calls.count()) << calls.text();
  const std::string log = store() + "/log.";
  std::size_t last = calls.count();
  for (std::size_t at = 0; (at = calls.find(at, {"pwrite64(", log})) < named; ++at) last = at;
  ASSERT_LT(last, named) << calls.text();
  EXPECT_LT(calls.find(last, {"fdatasync(", log}), named) << calls.text();
}

// A commit names them: whoever reads it must find them.
TEST_F(SyncOrder, OfADirectoryTheTablesAreSyncedBeforeTheCommitThatNamesThem) {
  SKIP_WITHOUT_STRACE();
  use(cat("dir:", store()));
  {
    store::DirOptions options;
    options.path = store();
    options.snapshot_every = 1'000'000;
    const os::SystemClock clock;
    const auto opened = store::DirStore::open(options, clock);
    ASSERT_TRUE(opened);
    fill(**opened, [&] { return (*opened)->revision().value() == 127; });
  }
  const OrderOfCalls calls(stint_, {"acquire", "r"});
  EXPECT_GRANTED(calls);
  const std::size_t named = calls.find(0, {"link", store() + "/log>", "0000000000000129"});
  ASSERT_LT(named, calls.count()) << calls.text();
  const std::size_t table = calls.find(0, {"fsync(", store() + "/snap/"});
  EXPECT_LT(table, named) << calls.text();
  EXPECT_LT(calls.find(table, {"fsync(", store() + "/snap>)"}), named) << calls.text();
}

// The pages in the cache look written; whoever writes to them again is told that all is well.
TEST_F(SyncOrder, AfterAFailedSyncOfALogItIsNotWrittenToAgain) {
  SKIP_WITHOUT_STRACE();
  use(cat("log:", store(), "?segment_kb=1024"));
  // The first one is of what was found at the end.
  const OrderOfCalls calls(stint_, {"acquire", "r"}, "inject=fdatasync:error=EIO:when=2");
  EXPECT_EQ(calls.result.exit_code, 14) << calls.text();
  EXPECT_EQ(calls.result.out, "");
  const std::size_t failed = calls.find(0, {"EIO", store() + "/log."});
  ASSERT_LT(failed, calls.count()) << calls.text();
  EXPECT_EQ(calls.find(failed + 1, {"write", store() + "/log."}), calls.count()) << calls.text();
}

// The log is copied into the file from what was written, not from what looks written.
TEST_F(SyncOrder, AfterAFailedSyncOfSqliteItsLogIsCopiedBeforeItIsWrittenToAgain) {
  SKIP_WITHOUT_STRACE();
  use(cat("sqlite:", store()));
  const OrderOfCalls calls(stint_, {"acquire", "r"}, "inject=fdatasync:error=EIO:when=1");
  const std::size_t failed = calls.find(0, {"EIO", store() + "-wal>"});
  ASSERT_LT(failed, calls.count()) << calls.text();
  const std::size_t copied = calls.find(failed, {"pwrite64(", store() + ">"});
  ASSERT_LT(copied, calls.count()) << calls.text();
  EXPECT_LT(copied, calls.find(failed, {"pwrite64(", store() + "-wal>"})) << calls.text();
}

// It landed in a store that may or may not come back.
// EVIDENCE-OF: G12
void expect_unknown_when_moved(const Stint& stint, const std::string& store, int nth_sync) {
  Command command = stint.command({"acquire", "r"});
  const std::string trace = stint.dir().file("trace");
  const std::vector<std::string> before = {
      "strace", "-f",
      "-o",     trace,
      "-e",     "trace=fdatasync",
      "-e",     cat("inject=fdatasync:signal=STOP:when=", nth_sync),
      "--"};
  command.argv.insert(command.argv.begin(), before.begin(), before.end());
  Child child(command);
  pid_t stopped = 0;
  ASSERT_TRUE(wait_until([&] { return (stopped = stopped_by(trace, child.pid())) != 0; }))
      << child.err();
  std::filesystem::rename(store, store + ".moved");
  ::kill(stopped, SIGCONT);
  const auto exit = child.wait(Millis(20'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 14) << child.out() << child.err();
  EXPECT_EQ(child.out(), "");
}

TEST_F(SyncOrder, ACommitToASqliteFileThatIsMovedMeanwhileIsUnknown) {
  SKIP_WITHOUT_STRACE();
  use(cat("sqlite:", store()));
  expect_unknown_when_moved(stint_, store(), 1);
}

TEST_F(SyncOrder, ACommitToALogThatIsMovedMeanwhileIsUnknown) {
  SKIP_WITHOUT_STRACE();
  use(cat("log:", store(), "?segment_kb=1024"));
  expect_unknown_when_moved(stint_, store(), 2);
}

}  // namespace
}  // namespace stint::test
