#include "net/http/message.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace stint::net::http {
namespace {

// Whatever pieces a body comes in, the same comes out.
std::string read_in_steps(Framing framing, const std::string& bytes, std::size_t step) {
  BodyReader body(framing);
  std::string out;
  std::string buffer;
  std::size_t given = 0;
  while (!body.done()) {
    auto piece = body.next(buffer);
    if (!piece) return "broken";
    out += piece->data;
    buffer.erase(0, piece->consumed);
    if (piece->consumed > 0) continue;
    if (given >= bytes.size()) return "short";
    buffer += bytes.substr(given, step);
    given += step;
  }
  return out;
}

TEST(HttpMessage, ChunksInAnyPieces) {
  const std::string bytes = "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: t\r\n\r\n";
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    EXPECT_EQ(read_in_steps({Framing::Kind::Chunked, 0}, bytes, step), "hello world") << step;
  }
  for (const char* bad : {"5\nhello\r\n0\r\n\r\n", "5\r\nhelloX\r\n0\r\n\r\n", "g\r\n", "-1\r\n",
                          "\r\n", "fffffffffffffffff\r\n", "1\r\na\r\n0\r\nX\n\r\n"}) {
    EXPECT_EQ(read_in_steps({Framing::Kind::Chunked, 0}, bad, 1), "broken") << printable(bad);
  }
  EXPECT_EQ(read_in_steps({Framing::Kind::Length, 3}, "abcdef", 2), "abc");
}

TEST(HttpMessage, HeadsEndAtTheEmptyLineAndNowhereElse) {
  EXPECT_EQ(find_head_end("GET / HTTP/1.1\r\nA: b\r\n").value(), 0U);
  EXPECT_EQ(find_head_end("GET / HTTP/1.1\r\n\r\nrest").value(), 18U);
  EXPECT_FALSE(find_head_end("GET / HTTP/1.1\n"));
  EXPECT_FALSE(find_head_end("\n"));
}

TEST(HttpMessage, WhatHoldsForOneConnectionIsNotPassedOn) {
  auto head = parse_request(
      "GET / HTTP/1.1\r\nHost: h\r\nConnection: close, X-Own, Fencing-Token\r\nX-Own: 1\r\n"
      "Fencing-Token: 7\r\nTE: trailers\r\nX-Kept: 2\r\n\r\n");
  ASSERT_TRUE(head);
  EXPECT_FALSE(keeps_alive(head->fields, false));
  remove_hop_by_hop(head->fields);
  EXPECT_FALSE(head->fields.first("X-Own"));
  EXPECT_FALSE(head->fields.first("te"));
  EXPECT_EQ(head->fields.first("x-kept"), "2");
  EXPECT_EQ(head->fields.first("Fencing-Token"), "7") << "nobody takes the fence's words away";
}

TEST(HttpMessage, AnswersWithoutABody) {
  const auto head = parse_response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").value();
  EXPECT_EQ(framing_of(head, true)->kind, Framing::Kind::None);
  EXPECT_EQ(framing_of(head, false)->length, 5U);
  const auto open = parse_response("HTTP/1.0 200\r\n\r\n").value();
  EXPECT_EQ(framing_of(open, false)->kind, Framing::Kind::UntilClose);
  EXPECT_FALSE(parse_response("HTTP/1.1 20 OK\r\n\r\n"));
  EXPECT_FALSE(parse_response("HTTP/1.1 2000 OK\r\n\r\n"));
}

}  // namespace
}  // namespace stint::net::http
