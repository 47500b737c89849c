#include "store/etcd/rights.h"

#include <gtest/gtest.h>

namespace stint::store::etcd {
namespace {

using Level = Finding::Level;

const KeyRange kNeeded = beginning_with("stint/");
const Caller kAnn{.user = "ann"};

Level level(const std::vector<Permission>& permissions) {
  return judge_rights(kAnn, {"role"}, permissions, kNeeded).level;
}

TEST(EtcdRights, ReadAndWriteOnThePrefixAreEnough) {
  EXPECT_EQ(level({{true, true, kNeeded}}), Level::Ok);
  EXPECT_EQ(level({{true, true, beginning_with("s")}}), Level::Ok);
  EXPECT_EQ(level({{true, true, {"a", std::string("\0", 1)}}}), Level::Ok) << "to the end of keys";
  EXPECT_EQ(level({{true, false, kNeeded}, {false, true, kNeeded}}), Level::Ok) << "of two roles";
}

TEST(EtcdRights, WhatIsLackingFailsAndIsNamed) {
  EXPECT_EQ(level({}), Level::Fail);
  EXPECT_EQ(level({{true, true, {"stint/", ""}}}), Level::Fail) << "one key alone";
  EXPECT_EQ(level({{true, true, beginning_with("stint/a")}}), Level::Fail);
  EXPECT_EQ(level({{true, true, {"t", std::string("\0", 1)}}}), Level::Fail);
  const Finding found = judge_rights(kAnn, {"r"}, {{true, false, kNeeded}}, kNeeded);
  EXPECT_EQ(found.level, Level::Fail);
  EXPECT_NE(found.text.find("no role with write on all of 'stint/'"), std::string::npos)
      << found.text;
}

TEST(EtcdRights, MoreThanIsNeededIsWarnedOf) {
  EXPECT_EQ(judge_rights(kAnn, {"r", "root"}, {}, kNeeded).level, Level::Warn);
  EXPECT_EQ(judge_rights({}, {}, {}, kNeeded).level, Level::Warn) << "authentication is off";
  EXPECT_EQ(judge_rights({.user = "", .certificate = true}, {}, {}, kNeeded).level, Level::Ok);
}

}  // namespace
}  // namespace stint::store::etcd
