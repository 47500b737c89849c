#include "base/names.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/random.h"

namespace stint {
namespace {

TEST(ResourceName, IsAnyPrintableUtf8UpToItsLimit) {
  EXPECT_EQ(ResourceName::parse("db/main").value().text(), "db/main");
  EXPECT_TRUE(ResourceName::parse("caf\xC3\xA9 with spaces"));
  EXPECT_TRUE(ResourceName::parse(std::string(512, 'a')));
  for (const std::string& bad :
       {std::string(), std::string(513, 'a'), std::string("a\nb"), std::string("a\xFF"),
        std::string("a\0b", 3), std::string("\x1F")}) {
    const auto parsed = ResourceName::parse(bad);
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().code, Code::Invalid);
  }
}

TEST(ResourceName, ErrorsAreSafeToPrint) {
  const auto parsed = ResourceName::parse("\x1B]0;x\x07");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message.find('\x1B'), std::string::npos);
}

TEST(Owner, IsCheckedLikeANameAndMayBeNobody) {
  EXPECT_TRUE(Owner().empty());
  EXPECT_TRUE(Owner::parse(std::string(256, 'a')));
  EXPECT_FALSE(Owner::parse(std::string(257, 'a')));
  EXPECT_FALSE(Owner::parse(""));
  EXPECT_FALSE(Owner::parse("a\tb"));
}

TEST(Token, ParsesFromOneToTheLargestThatADoubleHolds) {
  EXPECT_EQ(Token::parse("1").value(), Token(1));
  EXPECT_EQ(Token::parse("9007199254740991").value(), Token(Token::kMax));
  for (const char* bad :
       {"", "0", "-1", "+1", "1.0", "9007199254740992", "18446744073709551617", "x"}) {
    EXPECT_FALSE(Token::parse(bad)) << bad;
  }
}

TEST(Token, CountsUpFromNone) {
  EXPECT_FALSE(Token().issued());
  EXPECT_TRUE(Token().next().issued());
  EXPECT_LT(Token(9), Token(10));
}

TEST(ClaimHash, MatchesOnlyItselfAndNobodysMatchesNothing) {
  SeededRandom random(1);
  const Claim a = Claim::make(random);
  const Claim b = Claim::make(random);
  EXPECT_TRUE(a.hash().matches(a.hash()));
  EXPECT_FALSE(a.hash().matches(b.hash()));
  EXPECT_FALSE(ClaimHash().matches(ClaimHash()));
  EXPECT_FALSE(a.hash().matches(ClaimHash()));
  EXPECT_FALSE(ClaimHash().matches(a.hash()));
  EXPECT_FALSE(a.hash().matches(ClaimHash(a.hash().hex().substr(1))));
  EXPECT_NE(a.hash().hex(), a.hex());
}

TEST(Claim, IsThirtyTwoHexDigits) {
  EXPECT_TRUE(Claim::parse("00112233445566778899aabbccddeeff"));
  EXPECT_FALSE(Claim::parse("00112233445566778899AABBCCDDEEFF"));
  EXPECT_FALSE(Claim::parse("00112233445566778899aabbccddeef"));
  EXPECT_FALSE(Claim::parse("00112233445566778899aabbccddeefg"));
  const auto bad = Claim::parse("secret-secret");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message.find("secret"), std::string::npos) << "a claim is never shown";
}

TEST(Generation, MakesADifferentOneEachTime) {
  SeededRandom random(7);
  const Generation a = Generation::make(random);
  EXPECT_NE(a, Generation::make(random));
  EXPECT_EQ(Generation::parse(a.hex()).value(), a);
  EXPECT_TRUE(Generation().empty());
}

TEST(SeededRandom, RepeatsForASeedAndStaysBelowItsBound) {
  SeededRandom a(42);
  SeededRandom b(42);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t n = a.below(7);
    EXPECT_EQ(n, b.below(7));
    EXPECT_LT(n, 7U);
    seen.insert(n);
  }
  EXPECT_EQ(seen.size(), 7U);
  EXPECT_EQ(a.below(1), 0U);
}

TEST(Code, HasAWordOfItsOwnForEachKind) {
  std::set<std::string_view> words;
  constexpr int kLast = static_cast<int>(Code::Failed);
  for (int i = 0; i <= kLast; ++i) words.insert(word(static_cast<Code>(i)));
  EXPECT_EQ(words.size(), static_cast<std::size_t>(kLast) + 1);
}

TEST(ErrorDuring, SaysWhatWasGoingOnAndKeepsTheCode) {
  const Error error = Error{Code::UnknownOutcome, "no answer"}.during("renewing 'x'");
  EXPECT_EQ(error.code, Code::UnknownOutcome);
  EXPECT_EQ(error.message, "while renewing 'x': no answer");
}

}  // namespace
}  // namespace stint
