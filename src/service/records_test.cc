#include "service/records.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/text.h"
#include "service/fence_records.h"

namespace stint::service {
namespace {

// Every way to be wrong that does not depend on the kind of record.
std::vector<std::string> hostile() {
  return {"",
          "{",
          "null",
          "[]",
          "\"x\"",
          "7",
          "{}trailing",
          "{\"token\":",
          std::string("{\0}", 3),
          "{\"owner\":\"\xFF\"}",
          std::string(100'000, '['),
          "{\"token\":1e3}",
          "\xEF\xBB\xBF{}"};
}

core::Ownership ownership() {
  return {.token = Token(Token::kMax),
          .owner = Owner::parse("ann \"quoted\" \\ \xC3\xA9").value(),
          .claim = ClaimHash("abcd"),
          .reason = core::Reason::TakenUp,
          .by = "op",
          .why = "because \"so\"",
          .order = "id",
          .acquired_at = wall_from_ms(1'700'000'000'123),
          .terms = {Millis(1), Millis(2), Millis(3), Millis(4)}};
}

TEST(SealedRecord, KeepsWhatIsAboutToBeSealedApartAndAnOlderOneIsAllSealed) {
  const Remembered both{.sealed = {"file:/a", "file:/c"}, .sealing = {"file:/b"}};
  EXPECT_EQ(decode_sealed(encode_sealed(both)).value(), both);
  EXPECT_EQ(both.all(), (std::vector<std::string>{"file:/a", "file:/b", "file:/c"}));
  const Remembered older = decode_sealed("{\"targets\":[\"file:/a\"]}").value();
  EXPECT_EQ(older.sealed, std::vector<std::string>{"file:/a"});
  EXPECT_TRUE(older.sealing.empty());
  EXPECT_FALSE(decode_sealed("{\"sealing\":[\"file:/a\"]}"));
  EXPECT_FALSE(decode_sealed("{\"targets\":[],\"sealing\":[1]}"));
}

TEST(RecordKeys, KeepNamesApart) {
  EXPECT_EQ(own_key("a/b"), "own/a/b");
  EXPECT_EQ(history_key("a", Token(7)),
            "hist/a\x1F"
            "0000000000000007");
  EXPECT_FALSE(history_key("a/b", Token(1)).starts_with(history_prefix("a")));
  EXPECT_LT(history_key("a", Token(9)), history_key("a", Token(10)));
  EXPECT_LT(history_key("a", Token(10)), history_key("a", Token(Token::kMax)));
}

TEST(RecordOwnership, ComesBackAsItWas) {
  const core::Ownership before = ownership();
  const core::Ownership after = decode_own(encode(before)).value();
  EXPECT_EQ(after.token, before.token);
  EXPECT_EQ(after.owner, before.owner);
  EXPECT_EQ(after.claim.hex(), before.claim.hex());
  EXPECT_EQ(after.reason, before.reason);
  EXPECT_EQ(after.by, before.by);
  EXPECT_EQ(after.why, before.why);
  EXPECT_EQ(after.order, before.order);
  EXPECT_EQ(after.acquired_at, before.acquired_at);
  EXPECT_EQ(after.terms.ttl, before.terms.ttl);
  EXPECT_EQ(after.terms.max_hold, before.terms.max_hold);
  EXPECT_EQ(after.terms.at_least, before.terms.at_least);
  EXPECT_EQ(after.terms.cooldown, before.terms.cooldown);
}

TEST(RecordOwnership, OfNobodyHasNoOwnerAndNoClaim) {
  core::Ownership nobody = ownership();
  nobody.owner = {};
  nobody.claim = {};
  const auto after = decode_own(encode(nobody)).value();
  EXPECT_TRUE(after.owner.empty());
  EXPECT_TRUE(after.claim.empty());
}

TEST(RecordOwnership, FitsIntoARecordAtItsLargest) {
  core::Ownership own = ownership();
  own.owner = Owner::parse(std::string(256, 'o')).value();
  own.by = std::string(1024, 'b');
  own.why = std::string(1024, 'w');
  EXPECT_LE(encode(own).size(), 4096U);
}

TEST(RecordPulse, ComesBackAsItWas) {
  for (int i = 0; i <= static_cast<int>(core::Standing::Revoked); ++i) {
    const core::Pulse before{static_cast<core::Standing>(i), wall_from_ms(5)};
    const auto after = decode_pulse(encode(before)).value();
    EXPECT_EQ(after.standing, before.standing);
    EXPECT_EQ(after.ended_at, before.ended_at);
  }
  EXPECT_FALSE(decode_pulse(encode(core::Pulse{core::Standing::Granted, {}})).value().ended_at);
}

TEST(RecordWork, ComesBackAsItWas) {
  const core::Work before{
      .note = "n", .progress = "p", .progress_at = wall_from_ms(9), .progress_token = Token(4)};
  const auto after = decode_work(encode(before)).value();
  EXPECT_EQ(after.note, "n");
  EXPECT_EQ(after.progress, "p");
  EXPECT_EQ(after.progress_at, before.progress_at);
  EXPECT_EQ(after.progress_token, Token(4));
  EXPECT_FALSE(decode_work(encode(core::Work{})).value().progress_token.issued());
}

TEST(RecordMeta, ComesBackAsItWas) {
  SeededRandom random(1);
  Meta before;
  before.generation = Generation::make(random);
  before.ancestors = {Generation::make(random), Generation::make(random)};
  before.floor = Token(99);
  before.created_at = wall_from_ms(7);
  const Meta after = decode_meta(encode(before)).value();
  EXPECT_EQ(after.generation, before.generation);
  EXPECT_EQ(after.ancestors, before.ancestors);
  EXPECT_EQ(after.floor, before.floor);
  EXPECT_EQ(after.created_at, before.created_at);
}

TEST(RecordPast, KeepsNoClaim) {
  const core::Past past{ownership(), core::Reason::Expired, wall_from_ms(9)};
  EXPECT_EQ(encode(past).find("claim"), std::string::npos);
  const auto after = decode_past(encode(past)).value();
  EXPECT_EQ(after.token, past.own.token);
  EXPECT_EQ(after.ended, core::Reason::Expired);
  EXPECT_EQ(after.ended_at, past.ended_at);
}

TEST(RecordEvent, KeepsItsDetails) {
  api::Event before;
  before.at = wall_from_ms(1);
  before.kind = "granted";
  before.resource = "db";
  before.token = 7;
  before.owner = "ann";
  before.details = {{"why", "x"}, {"count", std::int64_t{3}}};
  const auto after = decode_event(encode(before)).value();
  EXPECT_EQ(after.kind, before.kind);
  EXPECT_EQ(after.resource, before.resource);
  EXPECT_EQ(after.token, before.token);
  EXPECT_EQ(after.owner, before.owner);
  EXPECT_EQ(after.details, before.details);
}

template <class Decoder>
void refuses(Decoder decode, const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    const auto decoded = decode(value);
    ASSERT_FALSE(decoded) << printable(value.substr(0, 80));
    EXPECT_EQ(decoded.error().code, Code::Unavailable);
  }
}

TEST(RecordDecoding, RefusesWhatIsNotARecordAtAll) {
  refuses(decode_meta, hostile());
  refuses(decode_own, hostile());
  refuses(decode_pulse, hostile());
  refuses(decode_past, hostile());
}

TEST(RecordDecoding, RefusesDamagedOwnershipAndNeverGuesses) {
  const std::string rest = R"(,"reason":"first","acquired_at_ms":1})";
  refuses(
      decode_own,
      {R"({"reason":"first"})", R"({"token":0)" + rest, R"({"token":-1)" + rest,
       R"({"token":"7")" + rest, R"({"token":9007199254740992)" + rest, R"({"token":1.5)" + rest,
       R"({"token":18446744073709551615)" + rest, R"({"token":7,"reason":"never"})",
       R"({"token":7})", R"({"token":7,"owner":7)" + rest, R"({"token":7,"owner":"a\nb")" + rest,
       R"({"token":7,"ttl_ms":-1)" + rest, R"({"token":7,"ttl_ms":9223372036854775807)" + rest,
       R"({"token":7,"cooldown_ms":"1")" + rest});
}

// EVIDENCE-OF: G1
TEST(RecordDecoding, RefusesAMetaRecordWithoutAFloorOrWithAStrangeAncestor) {
  const std::string g = R"({"generation":"00112233445566778899aabbccddeeff")";
  EXPECT_TRUE(decode_meta(g + R"(,"floor":0})"));
  refuses(decode_meta, {g + "}", g + R"(,"floor":-1})", g + R"(,"floor":"1"})",
                        g + R"(,"floor":1,"ancestors":"x"})", g + R"(,"floor":1,"ancestors":[7]})",
                        g + R"(,"floor":1,"ancestors":["x"]})", R"({"generation":"x","floor":1})"});
}

TEST(RecordDecoding, RefusesAnUnknownStanding) {
  refuses(decode_pulse, {"{}", R"({"standing":"held"})", R"({"standing":7})",
                         R"({"standing":"granted","ended_at_ms":"x"})"});
  refuses(decode_work, {R"({"note":7})", R"({"progress_token":-1})"});
  refuses(decode_past, {"{}", R"({"token":1,"reason":"first"})"});
}

}  // namespace
}  // namespace stint::service
