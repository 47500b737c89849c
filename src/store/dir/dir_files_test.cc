// The files of a dir: store: packing, tables, timers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>

#include "base/random.h"
#include "base/text.h"
#include "store/dir/log_file.h"
#include "store/dir/plan.h"
#include "store/dir/server_clock.h"
#include "store/dir/state.h"

namespace stint::store::dir {
namespace {

LogFile example() {
  LogFile file;
  file.number = 7;
  file.nonce = 0xFEDCBA9876543210U;
  file.previous = 3;
  file.previous_void = true;
  file.base_at = 5;
  file.durable = true;
  file.valid_before = Nanos(123'456'789);
  file.changes.push_back({"own/r", Record{"v", 458753, false, StoredTimer{}}, false});
  file.changes.push_back({"ev/1", std::nullopt, true});
  file.base.emplace();
  file.base->tables = {"one", "two"};
  file.base->appended["ev/"] = 9;
  file.base->nonces = {1, 2, 3};
  file.identity = Identity{11, 12};
  return file;
}

TEST(DirLogFile, SaysTheSameAfterPackingAndUnpacking) {
  const std::string bytes = encode(example());
  const auto file = decode(bytes, "x");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(encode(*file), bytes);
  EXPECT_EQ(file->changes.size(), 2U);
  EXPECT_EQ(file->base->appended.at("ev/"), 9U);
  EXPECT_TRUE(file->previous_void);
}

TEST(DirLogFile, NoCutAndNoChangedByteIsTakenForWhole) {
  const std::string bytes = encode(example());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(decode(bytes.substr(0, i), "x")) << i;
    for (const int bit : {0, 3, 7}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      EXPECT_FALSE(decode(changed, "x")) << i;
    }
  }
  EXPECT_FALSE(decode(bytes + '\0', "x"));
  EXPECT_FALSE(decode(std::string(bytes.size(), '\0'), "x"));
}

TEST(DirIdentity, IsInodeAndBirthWhereBothTellIt) {
  EXPECT_TRUE((Identity{1, 2}).matches({1, 2}));
  EXPECT_TRUE((Identity{1, 0}).matches({1, 2}));
  EXPECT_FALSE((Identity{1, 2}).matches({1, 3}));
  EXPECT_FALSE((Identity{1, 0}).matches({2, 0}));
}

class DirTables : public ::testing::Test {
 protected:
  DirTables() {
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
    EXPECT_EQ(os::Directory::open(path_, directory_), 0);
  }
  ~DirTables() override { std::filesystem::remove_all(path_); }
  std::shared_ptr<const Table> table(const std::string& name,
                                     const std::map<std::string, Slot>& slots) {
    os::Fd file;
    EXPECT_EQ(directory_.create(name, 0600, file), 0);
    TableWriter writer(file);
    for (const auto& [key, slot] : slots) EXPECT_EQ(writer.add(key, slot), 0);
    EXPECT_EQ(writer.finish(), 0);
    return Table::open(directory_, name).value();
  }
  static Record record(const std::string& value) { return {value, 1, false, std::nullopt}; }

  std::string path_ = "/dev/shm/stint-table-XXXXXX";
  os::Directory directory_;
};

TEST_F(DirTables, FindWhatWasPutInAtEverySize) {
  for (const int size : {0, 1, 2, 50, 700, 20'000}) {
    std::map<std::string, Slot> slots;
    for (int i = 0; i < size; ++i) slots[cat("k/", i * 2)] = record(cat("value ", i));
    const auto made = table(cat("t", size), slots);
    for (int i = 0; i < size; i += 1 + size / 100) {
      const auto found = made->look(cat("k/", i * 2)).value();
      ASSERT_TRUE(found && *found) << size << " " << i;
      EXPECT_EQ((*found)->value, cat("value ", i));
      EXPECT_FALSE(made->look(cat("k/", i * 2 + 1)).value());
    }
    EXPECT_FALSE(made->look("").value());
    EXPECT_FALSE(made->look("z").value());
  }
}

TEST_F(DirTables, AStateReadsOverTablesAndChangesAsOneMap) {
  SeededRandom random(1);
  std::map<std::string, Slot> old_slots;
  std::map<std::string, Slot> new_slots;
  std::vector<Change> changes;
  std::map<std::string, std::string> model;
  for (int i = 0; i < 3000; ++i) {
    const std::string key = cat("k/", random.below(2000));
    const bool removed = random.below(4) == 0;
    const Slot slot = removed ? Slot() : Slot(record(cat(i)));
    if (i < 1500)
      old_slots[key] = slot;
    else if (i < 2500)
      new_slots[key] = slot;
    else
      changes.push_back({key, slot, false});
    if (removed)
      model.erase(key);
    else
      model[key] = cat(i);
  }
  State state(Base{}, {table("new", new_slots), table("old", old_slots)});
  state.apply(changes, 1);
  for (int i = 0; i < 2000; ++i) {
    const auto found = state.look(cat("k/", i)).value();
    const auto wanted = model.find(cat("k/", i));
    ASSERT_EQ(found.has_value(), wanted != model.end()) << i;
    if (found) {
      EXPECT_EQ(found->value, wanted->second);
    }
  }
  for (const bool backwards : {false, true}) {
    std::vector<std::string> keys;
    std::string after;
    while (true) {
      const std::size_t before = keys.size();
      ASSERT_TRUE(state.scan({"k/", after, 77, backwards},
                             [&](std::string_view key, const Record&) { keys.emplace_back(key); }));
      if (keys.size() == before) break;
      after = keys.back();
    }
    std::vector<std::string> wanted;
    for (const auto& one : model) wanted.push_back(one.first);
    if (backwards) std::reverse(wanted.begin(), wanted.end());
    EXPECT_EQ(keys, wanted);
  }
}

TEST_F(DirTables, WhatWasAppliedCanBeTakenBack) {
  State state;
  state.apply({{"a", record("1"), false}, {"ev/0000000000000001", Record{"x", 1, true, {}}, false}},
              1);
  auto undo = state.apply({{"a", record("2"), false},
                           {"b", record("2"), false},
                           {"ev/0000000000000001", std::nullopt, true}},
                          2);
  EXPECT_EQ(state.appended().at("ev/"), 0U);
  state.take_back(std::move(undo));
  EXPECT_EQ(state.look("a").value()->value, "1");
  EXPECT_FALSE(state.look("b").value());
  EXPECT_EQ(state.appended().at("ev/"), 1U);
}

// EVIDENCE-OF: G4
TEST(DirTimers, AClockThatIsSetBackShowsNoMoreThanTheLength) {
  const Nanos set = std::chrono::hours(1000);
  const Record record{"v", 1, false, StoredTimer{set, set + Millis(30'010), Millis(30'000)}};
  const Entry entry = entry_of("k", record, set - std::chrono::hours(5));
  EXPECT_EQ(entry.timer.state, TimerState::Running);
  EXPECT_EQ(*entry.timer.remaining, Millis(30'000));
  EXPECT_EQ(entry_of("k", record, set + Millis(30'010)).timer.state, TimerState::Fired);
}

// The file server's clock steps: ends move as much, what was started before the step back shows at
// most its length, and a renewal after it counts from the clock as it is then.
// EVIDENCE-OF: G4
TEST(DirTimers, AStepOfTheClockMovesEndsAsMuchAndNoFurther) {
  const Nanos before = std::chrono::hours(1000);
  Step start;
  start.kind = Step::Kind::Set;
  start.key = "k";
  start.timer = Step::TimerOp::Start;
  start.ttl = Millis(30'000);
  Step extend = start;
  extend.kind = Step::Kind::Touch;
  extend.timer = Step::TimerOp::Extend;
  extend.demand = TimerState::Running;
  for (const Nanos step : {Nanos(std::chrono::hours(5)), Nanos(-std::chrono::hours(5))}) {
    State state;
    Plan first(state, 1, before);
    ASSERT_TRUE(std::holds_alternative<Committed>(first.add({start}).value()));
    state.apply(first.changes(), 1);
    const Nanos now = before + step;
    const auto shown = [&] { return entry_of("k", *state.look("k").value(), now).timer; };
    const bool ahead = step > Nanos(0);
    EXPECT_EQ(shown().state, ahead ? TimerState::Fired : TimerState::Running);
    if (!ahead) {
      EXPECT_EQ(*shown().remaining, Millis(30'000)) << "no more than its length";
    }
    Plan second(state, 2, now);
    const auto answer = second.add({extend}).value();
    EXPECT_EQ(std::holds_alternative<Conflict>(answer), ahead) << "what has ended is not revived";
    if (ahead) continue;
    state.apply(second.changes(), 2);
    EXPECT_EQ(*shown().remaining, Millis(30'000));
  }
}

TEST(DirTimers, AStartCountsAGrainMoreThanItsTtlAndAnExtensionIsBoundToTheOldEnd) {
  State state;
  const Nanos now = std::chrono::hours(1000) + Nanos(5);
  Step start;
  start.kind = Step::Kind::Set;
  start.key = "k";
  start.timer = Step::TimerOp::Start;
  start.ttl = Millis(1000);
  Plan first(state, 1, now);
  ASSERT_TRUE(std::holds_alternative<Committed>(first.add({start}).value()));
  EXPECT_FALSE(first.valid_before());
  const Nanos end = now + Millis(1010);
  EXPECT_EQ(first.changes()[0].slot->timer->fires_at, end);
  state.apply(first.changes(), 1);
  Step extend = start;
  extend.kind = Step::Kind::Touch;
  extend.timer = Step::TimerOp::Extend;
  extend.demand = TimerState::Running;
  Plan second(state, 2, now + Millis(500));
  ASSERT_TRUE(std::holds_alternative<Committed>(second.add({extend}).value()));
  EXPECT_EQ(*second.valid_before(), end);
  Plan late(state, 2, end);
  EXPECT_TRUE(std::holds_alternative<Conflict>(late.add({extend}).value()));
  // Whole seconds: the file system keeps no more, so a second is added.
  EXPECT_EQ(grain_of(std::chrono::seconds(5)), Nanos(std::chrono::seconds(1)));
}

// ---- The server's clock

class StillClock final : public Clock {
 public:
  MonoTime mono() const override { return MonoTime(std::chrono::hours(10)); }
  WallTime wall() const override { return WallTime(Millis(0)); }
};

// A holder that was superseded because the clock was set ahead learns of it by a commit of others,
// and of nothing after it: so that read must show the clock as it is.
// EVIDENCE-OF: G4
TEST(DirServerClock, IsMeasuredAnewWhenAFileIsAheadOfWhatIsCounted) {
  const os::Fd file(::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  os::FileFacts facts;
  ASSERT_EQ(os::facts_of(file.get(), facts), 0);
  const Nanos really = facts.changed;
  const Nanos before = really - std::chrono::hours(1);
  const StillClock clock;
  ServerClock server(clock, file);
  server.learn(before);
  EXPECT_EQ(server.now(Nanos(0)).value(), before - grain_of(before)) << "no file was seen";
  EXPECT_EQ(server.now(before).value(), before - grain_of(before)) << "as it is counted";
  EXPECT_GE(server.now(really).value(), really - grain_of(really)) << "it was set ahead";
  // Set back since: the file stays ahead, and is not a reason to ask at every read.
  server.learn(before);
  EXPECT_EQ(server.now(really).value(), before - grain_of(before));
}

}  // namespace
}  // namespace stint::store::dir
