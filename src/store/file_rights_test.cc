#include "store/file_rights.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "tests/support/process.h"

namespace stint::store {
namespace {

using Level = Finding::Level;

class FileRights : public ::testing::Test {
 protected:
  FileRights() {
    test::write_text(file_, "x");
    mode(file_, 0640);
    mode(dir_.path(), 0750);
  }
  static void mode(const std::string& path, unsigned bits) {
    ASSERT_EQ(::chmod(path.c_str(), bits), 0);
  }
  Finding look() const {
    return file_rights({.own = {file_, file_ + "-none"}, .around = dir_.path()});
  }
  test::TempDir dir_;
  const std::string file_ = dir_.file("store.db");
};

TEST_F(FileRights, OwnerAndModeAreTold) {
  const Finding found = look();
  EXPECT_EQ(found.level, Level::Ok) << found.text;
  EXPECT_EQ(found.check, "permissions");
  EXPECT_NE(found.text.find(cat("owner ", ::getuid())), std::string::npos) << found.text;
  EXPECT_NE(found.text.find("mode 0640"), std::string::npos) << found.text;
}

TEST_F(FileRights, WhatOthersMayWriteIsWarnedOf) {
  mode(file_, 0666);
  EXPECT_EQ(look().level, Level::Warn);
  EXPECT_NE(look().text.find("mode 0666"), std::string::npos) << look().text;
  mode(file_, 0660);
  EXPECT_EQ(look().level, Level::Ok) << "a group shares it on purpose";
}

TEST_F(FileRights, AFolderInWhichOthersMayRenameIsWarnedOf) {
  mode(dir_.path(), 0777);
  EXPECT_EQ(look().level, Level::Warn) << look().text;
  mode(dir_.path(), 01777);
  EXPECT_EQ(look().level, Level::Ok) << "as /tmp: each his own";
}

TEST_F(FileRights, WhatThisUserMayNotWriteFails) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everything";
  mode(file_, 0440);
  EXPECT_EQ(look().level, Level::Fail) << look().text;
}

}  // namespace
}  // namespace stint::store
