// What the tests of the file guard share: one file, one store that issues tokens.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/guard/site_fixture.h"

namespace stint::test {

class GuardFile : public ::testing::Test {
 protected:
  Result<guard::WriteAnswer> write(std::uint64_t token, std::string_view body) {
    return guard::write_file({.path = path, .body = body}, pass_with(token), &fences);
  }
  Result<guard::SealAnswer> seal(std::uint64_t token) {
    return guard::seal_file(path, seal_with(pass_with(token)), &fences);
  }
  Result<guard::WriteAnswer> once(std::uint64_t token, std::string_view body, std::string key) {
    guard::Pass pass = pass_with(token);
    pass.mode = core::FenceMode::Once;
    pass.key = std::move(key);
    return guard::write_file({.path = path, .body = body}, pass, &fences);
  }
  std::string content() const { return read_text(path); }

  MemoryDir dir;
  std::string path = dir.file("page");
  IssuingFences fences;
};

}  // namespace stint::test
