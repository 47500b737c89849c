// do://: replies that are lost, a server that is killed, its clock, its disk; on the real workerd.
#include <filesystem>
#include <map>
#include <set>

#include "service/lease_service.h"
#include "service/ledger.h"
#include "service/store_life.h"
#include "tests/fault/do_fixture.h"
#include "tests/support/mounts.h"
#include "tests/support/slice.h"

namespace stint::test {
namespace {

class DoFault : public ::testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_WORKERD();
    const auto started = server_.start();
    ASSERT_TRUE(started) << started.error().message;
    proxy_ = std::make_unique<TcpProxy>(server_.port());
  }
  std::unique_ptr<DoStore> direct() { return open_do(server_.port()); }
  std::unique_ptr<DoStore> proxied(Millis timeout = Millis(5'000)) {
    return open_do(proxy_->port(), timeout);
  }
  static std::uint64_t log_length(store::Store& store) { return store.appended("log/").value(); }
  // In every object of the server, which does not run.
  void in_the_object(const std::string& sql) {
    int found = 0;
    for (const auto& file : std::filesystem::recursive_directory_iterator(server_.folder())) {
      if (file.path().extension() != ".sqlite" || file.path().filename() == "metadata.sqlite")
        continue;
      const Finished done = run({.argv = {"sqlite3", file.path(), sql}});
      EXPECT_EQ(done.exit_code, 0) << done.err;
      ++found;
    }
    EXPECT_GT(found, 0);
  }

  WorkerdServer server_;
  std::unique_ptr<TcpProxy> proxy_;
};

Step line() { return a_step(Step::Kind::Append, "log/", "x"); }

TEST_F(DoFault, ACommitWhoseReplyIsCutIsUnknownAndHappenedOnce) {
  const auto store = proxied();
  ASSERT_EQ(word_of(store->commit({line()}, store::Sync::Durable)), "done");
  for (std::uint64_t i = 1; i <= 5; ++i) {
    proxy_->drop_replies(TcpProxy::Dropped::Cut);
    EXPECT_EQ(word_of(store->commit({line()}, store::Sync::Durable)), "unknown_outcome");
    proxy_->forward();
    EXPECT_EQ(log_length(*direct()), 1 + i);
  }
}

TEST_F(DoFault, ACommitThatIsCutOnItsWayClaimsNothing) {
  const auto store = proxied();
  ASSERT_EQ(word_of(store->commit({line()}, store::Sync::Durable)), "done");
  proxy_->cut_at_request_after(0);
  const std::string cut = word_of(store->commit({line()}, store::Sync::Durable));
  EXPECT_TRUE(cut == "unknown_outcome" || cut == "unavailable") << cut;
  proxy_->forward();
  EXPECT_EQ(log_length(*direct()), 1U);
  EXPECT_EQ(word_of(store->commit({line()}, store::Sync::Durable)), "done");
}

TEST_F(DoFault, ACommitWithoutAnAnswerIsUnknownWhenTheTimeIsUp) {
  const auto store = proxied(Millis(1'000));
  ASSERT_EQ(word_of(store->commit({line()}, store::Sync::Durable)), "done");
  proxy_->drop_replies(TcpProxy::Dropped::Silently);
  const MonoTime before = now();
  EXPECT_EQ(word_of(store->commit({line()}, store::Sync::Durable)), "unknown_outcome");
  EXPECT_LT(now() - before, Millis(1'900));
  EXPECT_EQ(log_length(*direct()), 2U);
  EXPECT_EQ(word_of(store->read({"k"})), "unavailable");
}

TEST_F(DoFault, AServerThatIsKilledBetweenCommitAndAnswerHasTheCommit) {
  const auto store = proxied();
  ASSERT_EQ(word_of(store->commit({line()}, store::Sync::Durable)), "done");
  proxy_->drop_replies(TcpProxy::Dropped::Silently);
  std::string became;
  std::thread writer([&] { became = word_of(store->commit({line()}, store::Sync::Durable)); });
  EXPECT_TRUE(wait_until([&] { return log_length(*direct()) == 2U; }));
  ASSERT_TRUE(server_.restart());
  proxy_->forward();
  proxy_->cut();
  writer.join();
  EXPECT_EQ(became, "unknown_outcome");
  EXPECT_EQ(log_length(*direct()), 2U);
}

TEST_F(DoFault, NobodyThereIsUnavailableAtOnce) {
  const auto store = direct();
  server_.kill9();
  const MonoTime before = now();
  EXPECT_EQ(word_of(store->commit({line()}, {})), "unavailable");
  EXPECT_LT(now() - before, Millis(1'000));
}

// EVIDENCE-OF: G11
TEST_F(DoFault, WhatWasAcknowledgedSurvivesKill9AndWatchesGoOn) {
  const auto store = direct();
  Step timed = a_step(Step::Kind::Set, "t", "v");
  timed.timer = Step::TimerOp::Start;
  timed.ttl = Millis(60'000);
  ASSERT_EQ(word_of(store->commit({a_step(Step::Kind::Set, "k", "1"), timed}, {})), "done");
  const auto watch = std::move(store->watch("k").value());
  ASSERT_TRUE(server_.restart());
  const auto entries = store->read({"k", "t"}).value().entries;
  EXPECT_EQ(entries[0].value, "1");
  EXPECT_EQ(entries[1].timer.state, TimerState::Running);
  EXPECT_TRUE(os::wait_readable({watch->fd()}, now() + Millis(10'000)).front())
      << "after a lost connection everybody looks again";
  // And once more when the new connection stands: what came in between is not known.
  watch->acknowledge();
  EXPECT_TRUE(os::wait_readable({watch->fd()}, now() + Millis(10'000)).front());
  watch->acknowledge();
  ASSERT_EQ(word_of(direct()->commit({a_step(Step::Kind::Set, "k", "2")}, {})), "done");
  EXPECT_TRUE(os::wait_readable({watch->fd()}, now() + Millis(10'000)).front());
}

// Sixteen writers count up, each its own record and one that they share, and write down what was
// acknowledged. STINT_KILLS: how often the server is killed.
// EVIDENCE-OF: G1 G11
TEST_F(DoFault, Kill9UnderSixteenWritersLosesNoAcknowledgedCommitAndTearsNone) {
  constexpr int kSixteen = 16;
  const int kills = asked("STINT_KILLS", 3);
  std::atomic<bool> stop = false;
  std::atomic<int> acknowledged = 0;
  std::vector<int> last(kSixteen, 0);
  std::vector<std::set<std::uint64_t>> versions(kSixteen);
  std::vector<std::thread> writers;
  for (int w = 0; w < kSixteen; ++w) {
    writers.emplace_back([&, w] {
      const auto store = open_do(server_.port(), Millis(2'000));
      const std::string mine = cat("w/", w);
      for (int i = 1; !stop; ++i) {
        const std::string n = std::to_string(i);
        const auto done = store->commit(
            {a_step(Step::Kind::Set, mine, n), a_step(Step::Kind::Set, cat(mine, "/twin"), n),
             a_step(Step::Kind::Append, "log/", cat(w, " ", n))},
            store::Sync::Durable);
        if (!done) continue;
        last[static_cast<std::size_t>(w)] = i;
        const auto& said = std::get<store::Committed>(*done);
        EXPECT_TRUE(versions[static_cast<std::size_t>(w)].insert(said.versions[0]).second);
        ++acknowledged;
      }
    });
  }
  for (int i = 0; i < kills; ++i) {
    const int before = acknowledged;
    EXPECT_TRUE(wait_until([&] { return acknowledged > before + 50; }));
    ASSERT_TRUE(server_.restart());
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
  const auto store = direct();
  for (int w = 0; w < kSixteen; ++w) {
    const auto entries = store->read({cat("w/", w), cat("w/", w, "/twin")}).value().entries;
    EXPECT_EQ(entries[0].value, entries[1].value) << "torn";
    ASSERT_FALSE(entries[0].value.empty());
    EXPECT_GE(std::stoi(entries[0].value), last[static_cast<std::size_t>(w)]) << "lost";
  }
  const auto all = store->scan({"log/", "", SIZE_MAX, false}).value().entries;
  EXPECT_GE(all.size(), static_cast<std::size_t>(acknowledged));
  std::set<std::string> lines;
  for (const auto& entry : all) EXPECT_TRUE(lines.insert(entry.value).second) << "written twice";
  std::cout << kills << " kills, " << acknowledged << " acknowledged commits, "
            << all.size() - static_cast<std::size_t>(acknowledged) << " unanswered that landed\n";
}

// The machine's clock cannot be set under workerd; the stored marks can be moved instead.
// EVIDENCE-OF: G4
TEST_F(DoFault, AClockThatIsSetBackGoesOnFromWhereItWasAlsoForReaders) {
  Step timed = a_step(Step::Kind::Set, "t", "v");
  timed.timer = Step::TimerOp::Start;
  timed.ttl = Millis(60'000);
  ASSERT_EQ(word_of(direct()->commit({timed}, {})), "done");
  const auto before = direct()->read({"t"}).value();
  server_.stop();
  // As if an hour had passed on a clock that then was set back by it.
  in_the_object("UPDATE head SET mark = mark + 3600000");
  ASSERT_TRUE(server_.start());
  const auto store = direct();
  const auto first = store->read({"t"}).value();
  // The mark is kept once a second.
  EXPECT_GE(*first.store_time - *before.store_time, Millis(3'599'000));
  EXPECT_EQ(first.entries[0].timer.state, TimerState::Fired);
  os::pause_for(Millis(50));
  EXPECT_GE(*store->read({"t"}).value().store_time - *first.store_time, Millis(40))
      << "time stands still for readers";
  const auto findings = store->examine().value();
  EXPECT_NE(findings.back().text.find("set back"), std::string::npos);
}

// Whoever was told by a read that a timer has fired may rely on it.
// EVIDENCE-OF: G3 G4
TEST_F(DoFault, ATimerThatAReadShowedAsFiredNeverRunsAgain) {
  Step timed = a_step(Step::Kind::Set, "t", "v");
  timed.timer = Step::TimerOp::Start;
  timed.ttl = Millis(100);
  ASSERT_EQ(word_of(direct()->commit({timed}, {})), "done");
  EXPECT_TRUE(wait_until(
      [&] { return direct()->read({"t"}).value().entries[0].timer.state == TimerState::Fired; }));
  server_.stop();
  // The clock is set back by ten seconds: all that was stored is ten seconds ahead of it.
  in_the_object(
      "UPDATE head SET mark = mark + 10000; UPDATE record SET fires_at = fires_at + 10000");
  ASSERT_TRUE(server_.start());
  EXPECT_EQ(direct()->read({"t"}).value().entries[0].timer.state, TimerState::Fired);
  Step renewal = a_step(Step::Kind::Touch, "t");
  renewal.demand = TimerState::Running;
  renewal.timer = Step::TimerOp::Extend;
  renewal.ttl = Millis(60'000);
  EXPECT_EQ(word_of(direct()->commit({renewal}, {})), "conflict");
}

TEST_F(DoFault, ASecretIsAskedForAndTwoAreAcceptedWhileItIsChanged) {
  EXPECT_EQ(word_of(open_do(server_.port(), Millis(5'000), "wrong")->read({"k"})), "denied");
  EXPECT_EQ(word_of(open_do(server_.port(), Millis(5'000), "")->commit({line()}, {})), "denied");
  server_.stop();
  server_.with_environment(
      {{"STINT_KEY", "the-new-one"}, {"STINT_KEY_NEXT", WorkerdServer::kSecret}});
  ASSERT_TRUE(server_.start());
  EXPECT_EQ(word_of(direct()->read({"k"})), "done");
  EXPECT_EQ(word_of(open_do(server_.port(), Millis(5'000), "the-new-one")->read({"k"})), "done");
  EXPECT_EQ(word_of(open_do(server_.port(), Millis(5'000), "wrong")->read({"k"})), "denied");
}

TEST_F(DoFault, WhoMayMakeNoStoreIsRefusedWhereThereIsNone) {
  const auto store = open_do(server_.port(), Millis(5'000), WorkerdServer::kSecret, false);
  EXPECT_EQ(word_of(store->read({"k"})), "unavailable");
  EXPECT_EQ(word_of(store->commit({line()}, {})), "unavailable");
  ASSERT_EQ(word_of(direct()->commit({line()}, {})), "done");
  EXPECT_EQ(word_of(store->read({"k"})), "done");
}

TEST_F(DoFault, AValueOfAnyBytesComesBackAsItWas) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i);
  const std::string escaped(4096, '\x02');
  for (const std::string& value : {bytes, escaped, std::string("\x01"), std::string(1, '\0')}) {
    ASSERT_EQ(word_of(direct()->commit({a_step(Step::Kind::Set, "k", value)}, {})), "done");
    EXPECT_EQ(direct()->read({"k"}).value().entries[0].value, value);
  }
  EXPECT_EQ(word_of(direct()->commit({a_step(Step::Kind::Set, "k\xFF", "v")}, {})), "invalid");
}

// A holder from before must not find its own version at another's record.
// EVIDENCE-OF: G3
TEST_F(DoFault, AFolderThatWasPutBackGivesNoVersionTwice) {
  const auto put = [&](const char* value) {
    const auto done = direct()->commit({a_step(Step::Kind::Set, "own/r", value)}, {});
    return done ? std::get<store::Committed>(*done).versions[0] : 0;
  };
  ASSERT_NE(put("1"), 0U);
  const std::string disk = server_.folder() + "/disk";
  server_.kill9();
  ASSERT_EQ(run({.argv = {"cp", "-a", disk, disk + ".kept"}}).exit_code, 0);
  ASSERT_TRUE(server_.start());
  const store::Version before = put("2");
  server_.kill9();
  ASSERT_EQ(run({.argv = {"rm", "-r", disk}}).exit_code, 0);
  ASSERT_EQ(run({.argv = {"mv", disk + ".kept", disk}}).exit_code, 0);
  ASSERT_TRUE(server_.start());
  EXPECT_EQ(direct()->read({"own/r"}).value().entries[0].value, "1");
  EXPECT_GT(put("another"), before);
}

// By the number of records, and by their length.
TEST_F(DoFault, AScanOfManyPagesIsWhole) {
  const auto store = direct();
  for (int i = 0; i < 20; ++i) {
    std::vector<Step> steps;
    for (int k = 0; k < 64; ++k) {
      steps.push_back(a_step(Step::Kind::Append, "log/", "x"));
      if (k < 16) steps.push_back(a_step(Step::Kind::Append, "long/", std::string(4096, 'x')));
      if (steps.size() >= 60 || k == 63) {
        ASSERT_EQ(word_of(store->commit(steps, {})), "done");
        steps.clear();
      }
    }
    ASSERT_EQ(log_length(*store), 64U * static_cast<unsigned>(i + 1));
  }
  ASSERT_EQ(
      word_of(store->commit(
          std::vector<Step>(64, a_step(Step::Kind::Append, "x/", std::string(4096, 'x'))), {})),
      "done");
  EXPECT_EQ(store->scan({"log/", "", SIZE_MAX, false}).value().entries.size(), 1280U);
  EXPECT_EQ(store->scan({"log/", "", SIZE_MAX, true}).value().entries.size(), 1280U);
  EXPECT_EQ(store->scan({"log/", "", 1001, false}).value().entries.size(), 1001U);
  EXPECT_EQ(store->scan({"long/", "", SIZE_MAX, false}).value().entries.size(), 320U);
  EXPECT_EQ(store->scan({"", "", SIZE_MAX, false}).value().entries.size(), 1664U);
}

// Two workerd on one folder: none of the two tears or loses what either acknowledged.
TEST_F(DoFault, TwoServersOnOneFolderLoseNothingThatEitherAcknowledged) {
  const std::uint16_t port = free_port();
  ASSERT_EQ(word_of(direct()->commit({line()}, {})), "done");
  Command second{.argv = {WorkerdServer::program(), std::to_string(port), server_.folder()},
                 .env = {{"STINT_KEY", WorkerdServer::kSecret}},
                 .die_with_parent = true};
  const Child other(second);
  wait_until([&] { return bool(connect_loopback(port)); });
  int acknowledged = 1;
  const auto here = direct();
  const auto there = open_do(port, Millis(2'000));
  for (int i = 0; i < 20; ++i) {
    for (store::Store* store :
         {static_cast<store::Store*>(here.get()), static_cast<store::Store*>(there.get())}) {
      acknowledged += word_of(store->commit({line()}, {})) == "done" ? 1 : 0;
    }
  }
  EXPECT_GE(acknowledged, 21) << "the first one goes on";
  EXPECT_GE(log_length(*direct()), static_cast<std::uint64_t>(acknowledged));
}

// What does not fit is refused, or unknown; what was acknowledged is there after a restart.
// EVIDENCE-OF: G11
TEST(DoSpace, AFullDiskLosesNothingThatWasAcknowledged) {
  SKIP_WITHOUT_WORKERD();
  if (const std::string why = Mount::missing(); !why.empty()) GTEST_SKIP() << why;
  WorkerdServer server;
  const std::string disk = server.folder() + "/disk";
  std::filesystem::create_directory(disk);
  const Mount small({.type = "tmpfs", .source = {}, .target = disk, .options = "size=2m"});
  ASSERT_TRUE(small.ok());
  ASSERT_TRUE(server.start());
  const auto store = open_do(server.port());
  std::uint64_t acknowledged = 0;
  std::map<std::string, int> others;
  for (int i = 0; i < 2000 && others.empty(); ++i) {
    const auto done =
        store->commit({a_step(Step::Kind::Append, "log/", std::string(4096, 'x'))}, {});
    if (word_of(done) == "done")
      ++acknowledged;
    else
      ++others[word_of(done)];
  }
  ASSERT_FALSE(others.empty()) << "the disk was never full";
  for (const auto& [word, times] : others) {
    EXPECT_TRUE(word == "unavailable" || word == "unknown_outcome") << word;
    std::cout << acknowledged << " acknowledged, then " << word << '\n';
  }
  ASSERT_TRUE(server.restart());
  const auto kept = open_do(server.port())->scan({"log/", "", SIZE_MAX, false});
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_GE(kept->entries.size(), acknowledged);
}

// What each verb costs. docs/guides/store-do.md has these numbers.
TEST_F(DoFault, TheVerbsAskAsOftenAsTheDocumentsSay) {
  const auto store = proxied();
  os::SystemRandom random;
  service::Ledger ledger(*store, do_clock(), 10'000);
  auto life = service::begin_life(*store, random, do_clock().wall(), nullptr, {});
  ASSERT_TRUE(life);
  service::LeaseService leases(*store, ledger, std::move(*life), do_clock(), random, nullptr);
  const auto name = ResourceName::parse("db/main").value();
  const auto ask = [&](const std::string& who, const Claim& claim) {
    return leases.acquire({.resource = name,
                           .owner = Owner::parse(who).value(),
                           .claim = claim,
                           .terms = {.ttl = Millis(60'000)},
                           .note = "",
                           .retake = std::nullopt,
                           .count_refusal = false});
  };
  const auto counted = [&](const std::function<void()>& verb) {
    const int before = proxy_->counts().requests;
    verb();
    return proxy_->counts().requests - before;
  };
  const Claim claim = Claim::make(random);
  std::optional<api::Granted> granted;
  const int acquire = counted([&] { granted = std::get<api::Granted>(ask("a", claim).value()); });
  const api::Grip grip{.resource = name,
                       .token = granted->lease.token,
                       .claim = claim,
                       .owner = {},
                       .hint = granted->hint};
  const int renew = counted([&] { EXPECT_TRUE(leases.renew(grip, Millis(60'000))); });
  const int refused = counted([&] { EXPECT_TRUE(ask("b", Claim::make(random))); });
  const int release = counted([&] { EXPECT_TRUE(leases.release(grip, false)); });
  const int again = counted([&] { EXPECT_TRUE(ask("a", Claim::make(random))); });
  std::cout << "first acquire " << acquire << ", acquire " << again << ", renew " << renew
            << ", refused " << refused << ", release " << release << "\n";
  EXPECT_LE(acquire, 2);
  EXPECT_LE(again, 2);
  EXPECT_EQ(renew, 1);
  EXPECT_EQ(refused, 1);
  EXPECT_LE(release, 2);
}

}  // namespace
}  // namespace stint::test
