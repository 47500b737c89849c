#include "base/text.h"

#include <gtest/gtest.h>

#include "base/sha256.h"

namespace stint {
namespace {

using std::string_view_literals::operator""sv;

TEST(Utf8, AcceptsEveryWellFormedLength) {
  for (const std::string_view good :
       {"", "abc", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "a\xC3\xA9z"}) {
    EXPECT_TRUE(is_utf8(good)) << to_hex(good);
  }
  EXPECT_TRUE(is_utf8("a\0b"sv));
}

TEST(Utf8, RefusesOverlongSurrogateCutAndForeignBytes) {
  for (const std::string_view bad :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x41", "\xE0\x80\x80", "\xE0\x9F\xBF",
        "\xE1\x80", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF",
        "\xF1\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE", "\xFF", "ok\xC3"}) {
    EXPECT_FALSE(is_utf8(bad)) << to_hex(bad);
  }
}

TEST(HasControl, SeesC0DelC1AndTheLineSeparators) {
  EXPECT_TRUE(has_control("\0"sv));
  for (const std::string_view bad :
       {"a\nb", "\x1B[2J", "\x7F", "\xC2\x80", "\xC2\x9F", "x\xE2\x80\xA8", "\xE2\x80\xA9y"}) {
    EXPECT_TRUE(has_control(bad)) << to_hex(bad);
  }
  for (const std::string_view good : {"", " ", "~", "\xC2\xA0", "\xE2\x80\xA7", "\xC3\x80"}) {
    EXPECT_FALSE(has_control(good)) << to_hex(good);
  }
}

TEST(Printable, ShowsHarmfulBytesAsHexAndKeepsTheRest) {
  EXPECT_EQ(printable("a\x1B[1m\xFFz"), "a\\x1b[1m\\xffz");
  EXPECT_EQ(printable("\xC3\xA9"), "\xC3\xA9");
  EXPECT_EQ(printable("\xC2\x85"), "\\xc2\\x85");
  EXPECT_EQ(quoted("a"), "'a'");
}

TEST(Cat, JoinsTextCharactersAndNumbers) {
  EXPECT_EQ(cat("a", 'b', std::string("c"), -7, std::uint64_t{18446744073709551615U}),
            "abc-718446744073709551615");
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string_view>{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), std::vector<std::string_view>{""});
}

TEST(Trim, TakesSpaceOffBothEnds) {
  EXPECT_EQ(trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(ParseDigits, TakesDigitsOnly) {
  EXPECT_EQ(parse_digits("0"), 0U);
  EXPECT_EQ(parse_digits("18446744073709551615"), 18446744073709551615U);
  for (const char* bad : {"", "+1", "-1", " 1", "1 ", "0x1", "1.0", "18446744073709551616", "a"}) {
    EXPECT_FALSE(parse_digits(bad)) << bad;
  }
}

TEST(Hex, GoesThereAndBackInLowerCaseOnly) {
  const std::string bytes("\x00\x7F\xFF\x10", 4);
  EXPECT_EQ(to_hex(bytes), "007fff10");
  EXPECT_EQ(from_hex("007fff10"), bytes);
  EXPECT_FALSE(from_hex("007"));
  EXPECT_FALSE(from_hex("0G"));
  EXPECT_FALSE(from_hex("FF"));
}

// A processor without instructions of its own for it comes to the same.
TEST(Sha256, IsTheSameByHand) {
  std::string text;
  for (int i = 0; i < 200; ++i) {
    Sha256 by_hand(true);
    by_hand.add(text);
    EXPECT_EQ(to_hex(by_hand.done()), to_hex(sha256(text))) << text.size();
    text += static_cast<char>(i * 7);
  }
}

// FIPS 180-4 and NIST CAVP vectors.
TEST(Sha256, GivesTheKnownDigests) {
  EXPECT_EQ(to_hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(to_hex(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(to_hex(sha256("\xBD")),
            "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b");
}

TEST(Sha256, HandlesEveryLengthAroundABlock) {
  // The padding changes its number of blocks at 56 and 64 bytes.
  EXPECT_EQ(to_hex(sha256(std::string(55, 'a'))),
            "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(to_hex(sha256(std::string(56, 'a'))),
            "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  EXPECT_EQ(to_hex(sha256(std::string(63, 'a'))),
            "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
  EXPECT_EQ(to_hex(sha256(std::string(64, 'a'))),
            "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

}  // namespace
}  // namespace stint
