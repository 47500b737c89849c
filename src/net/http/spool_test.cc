#include "net/http/spool.h"

#include <gtest/gtest.h>

namespace stint::net::http {
namespace {

std::string all_of(const Spool& spool) {
  std::string out;
  while (true) {
    const auto piece = spool.piece(out.size());
    EXPECT_TRUE(piece) << piece.error().message;
    if (!piece || piece->empty()) return out;
    out += *piece;
  }
}

TEST(Spool, GivesBackWhatItWasGivenInMemoryAndBeyond) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, Spool::kMostInMemory, Spool::kMostInMemory + 1,
        Spool::kMostInMemory * 3, Spool::kMostInMemory * 3 + 7}) {
    Spool spool;
    std::string given;
    for (std::size_t i = 0; given.size() < size; ++i) {
      const std::string piece(std::min<std::size_t>(size - given.size(), 10'000 + i),
                              static_cast<char>('a' + i % 26));
      ASSERT_TRUE(spool.add(piece));
      given += piece;
    }
    EXPECT_EQ(spool.size(), size);
    EXPECT_EQ(all_of(spool), given);
  }
}

}  // namespace
}  // namespace stint::net::http
