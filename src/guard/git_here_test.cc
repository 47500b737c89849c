#include "guard/git_here.h"

#include <gtest/gtest.h>

#include "base/sha1.h"
#include "base/text.h"

namespace stint::guard {
namespace {

TEST(Sha1, OfTheStandardsExamples) {
  EXPECT_EQ(to_hex(sha1("")), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(to_hex(sha1("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(to_hex(sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(to_hex(sha1(std::string(1'000'000, 'a'))), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST(BlobName, IsWhatGitSays) {
  const std::string sha1_like(40, '0');
  EXPECT_EQ(blob_name("", sha1_like), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(blob_name("hello\n", sha1_like), "ce013625030ba8dba906f756967f9e9ca394464a");
  // git init --object-format=sha256; printf 'hello\n' | git hash-object --stdin
  EXPECT_EQ(blob_name("hello\n", std::string(64, '0')),
            "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4");
}

TEST(LooseBlob, IsAStoredZlibStream) {
  const std::string file = loose_blob("hello\n");
  EXPECT_EQ(to_hex(file.substr(0, 7)), "7801010d00f2ff");
  EXPECT_EQ(file.substr(7, 13), std::string("blob 6\0hello\n", 13));
  EXPECT_EQ(to_hex(file.substr(20)), "1dc50414");  // Adler-32, most significant byte first
}

TEST(PlainRepository, IsNotLookedForWhereTheEnvironmentSpeaks) {
  EXPECT_FALSE(find_plain_repository(false));
}

}  // namespace
}  // namespace stint::guard
