#include "service/slot_records.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "store/seam.h"

namespace stint::service {
namespace {

core::Slot slot(std::int64_t at_ms) {
  core::Slot out{.at = wall_from_ms(at_ms)};
  out.nominal = std::chrono::local_seconds(std::chrono::seconds(at_ms / 1000 + 3600));
  return out;
}

core::Job full_job() {
  core::Job job;
  job.schedule = "30 2 * * *";
  job.tz = "Europe/Berlin";
  job.digest = "abc";
  job.loaded_at = wall_from_ms(1);
  job.cursor = wall_from_ms(2);
  job.decided_at = wall_from_ms(3);
  job.paused = true;
  job.due = {slot(5000), slot(6007)};
  job.due[0].attempt = 3;
  job.due[0].crashes = 1;
  job.due[0].backfill = true;
  job.due[0].not_before = wall_from_ms(9);
  job.due[1].manual = true;
  job.due_by = "host-1-abc";
  job.active = core::ActiveSlot{.slot = slot(4000),
                                .state = core::SlotState::Starting,
                                .owner = Owner::parse("me").value(),
                                .resource = "r",
                                .token = Token(7),
                                .started_at = wall_from_ms(4001)};
  job.last_resource = "r";
  job.last_token = Token(6);
  job.pause = core::SlotRange{.from = wall_from_ms(-5000),
                              .to = wall_from_ms(0),
                              .count = 6,
                              .reason = core::SlotState::SkippedPaused};
  job.policy = core::MissedPolicy{.max_backfill = 5,
                                  .start_deadline = Millis(60'000),
                                  .waits = true,
                                  .loaded_at = wall_from_ms(11)};
  job.rows = 12;
  job.forgotten = wall_from_ms(-7000);
  return job;
}

TEST(SlotRecords, AJobComesBackAsItWas) {
  for (const core::Job& job : {core::Job{}, full_job()}) {
    const std::string text = encode(job);
    const auto back = decode_job(text);
    ASSERT_TRUE(back.has_value()) << back.error().message;
    EXPECT_EQ(encode(*back), text);
  }
  const core::Job back = decode_job(encode(full_job())).value();
  EXPECT_EQ(back.due.size(), 2U);
  EXPECT_EQ(back.due[0].attempt, 3);
  EXPECT_EQ(back.active->token, Token(7));
  EXPECT_EQ(back.pause->count, 6U);
  EXPECT_EQ(back.policy->max_backfill, 5U);
  EXPECT_EQ(back.policy->start_deadline, Millis(60'000));
  // Written by a version that did not keep it.
  EXPECT_FALSE(decode_job(R"({"digest":"x","cursor_ms":1})")->policy.has_value());
}

// What is open must fit into one record, whatever the names.
TEST(SlotRecords, TheLargestJobFits) {
  core::Job job = full_job();
  job.schedule = std::string(200, '*');
  job.tz = std::string(40, 'z');
  job.digest = std::string(32, 'd');
  job.due_by = std::string(100, 's');
  job.active->owner = Owner::parse(std::string(256, 'o')).value();
  job.active->resource = std::string(512, 'r');
  job.last_resource = std::string(512, 'r');
  job.due.clear();
  for (int i = 0; i < 30; ++i) {
    job.due.push_back(slot(253'402'300'799'000 - i));
    job.due.back().backfill = true;
  }
  EXPECT_LE(encode(job).size(), store::Store::kMaxValueBytes);
}

// The rule for missed slots is for the eye: where all else fills the record, it goes without.
TEST(SlotRecords, AFullRecordGoesWithoutThePolicy) {
  constexpr std::int64_t kNow = 1'794'744'000'000;
  core::Job job = full_job();
  job.schedule = std::string(200, '*');
  job.tz = std::string(40, 'z');
  job.digest = std::string(32, 'd');
  job.loaded_at = job.cursor = job.decided_at = wall_from_ms(kNow);
  job.active->owner = Owner::parse(std::string(256, 'o')).value();
  job.active->resource = std::string(512, 'r');
  job.active->slot = slot(kNow);
  job.active->started_at = wall_from_ms(kNow);
  job.last_resource = std::string(512, 'r');
  job.pause->from = job.pause->to = job.forgotten = wall_from_ms(kNow);
  job.policy->loaded_at = wall_from_ms(kNow);
  job.due.clear();
  for (int i = 0; i < 30; ++i) {
    job.due.push_back(slot(kNow - i));
    job.due.back().backfill = true;
  }
  // Schedulers with names of any length: at each, it fits, and nothing but the policy is missing.
  bool with = false;
  bool without = false;
  for (std::size_t name = 1; name <= 256; ++name) {
    job.due_by = std::string(name, 's');
    const std::string text = encode(job);
    ASSERT_LE(text.size(), store::Store::kMaxValueBytes) << name;
    core::Job back = decode_job(text).value();
    (back.policy ? with : without) = true;
    if (back.policy) continue;
    core::Job bare = job;
    bare.policy.reset();
    EXPECT_EQ(encode(back), encode(bare)) << name;
  }
  EXPECT_TRUE(with);
  EXPECT_TRUE(without);
}

TEST(SlotRecords, RowsSortByTheirInstant) {
  const auto key = [](std::int64_t ms) { return slot_row_key("j", wall_from_ms(ms)); };
  EXPECT_LT(key(-62'135'596'800'000), key(-1));
  EXPECT_LT(key(-1), key(0));
  EXPECT_LT(key(0), key(1'794'744'000'000));
  EXPECT_LT(key(1'794'744'000'000), key(253'402'300'799'999));
  EXPECT_EQ(instant_of(key(-12'345)).value(), wall_from_ms(-12'345));
  EXPECT_FALSE(instant_of("slot/j").has_value());
}

TEST(SlotRecords, DamagedOnesAreNeverADefault) {
  for (const char* text :
       {"", "{}", "[]", "{\"digest\":\"x\"}", "{\"digest\":1,\"cursor_ms\":1}",
        "{\"digest\":\"x\",\"cursor_ms\":\"1\"}", "{\"digest\":\"x\",\"cursor_ms\":1,\"due\":3}",
        "{\"digest\":\"x\",\"cursor_ms\":1,\"due\":[3]}",
        "{\"digest\":\"x\",\"cursor_ms\":1,\"due\":[{\"attempt\":0}]}",
        "{\"digest\":\"x\",\"cursor_ms\":1,\"active\":{\"state\":\"asleep\"}}",
        "{\"digest\":\"x\",\"cursor_ms\":1,\"policy\":{\"max_backfill\":\"3\"}}",
        "{\"digest\":\"x\",\"cursor_ms\":1,\"pause\":{\"reason\":\"tired\"}}"}) {
    const auto job = decode_job(text);
    ASSERT_FALSE(job.has_value()) << text;
    EXPECT_EQ(job.error().code, Code::Unavailable);
  }
  EXPECT_FALSE(decode_slot({}, "{}").has_value());
  EXPECT_FALSE(decode_range({}, "{\"reason\":\"x\"}").has_value());
  EXPECT_FALSE(decode_once("{\"state\":\"maybe\"}").has_value());
}

TEST(SlotRecords, NamesAreChecked) {
  EXPECT_TRUE(check_job_name("nightly").has_value());
  EXPECT_FALSE(check_job_name("").has_value());
  EXPECT_FALSE(check_job_name("a@b").has_value());
  EXPECT_FALSE(check_job_name("a\nb").has_value());
  EXPECT_FALSE(check_job_name(std::string(201, 'x')).has_value());
  EXPECT_FALSE(check_once_key("").has_value());
  EXPECT_FALSE(check_once_key(std::string(501, 'x')).has_value());
}

}  // namespace
}  // namespace stint::service
