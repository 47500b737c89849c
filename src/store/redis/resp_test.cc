#include "store/redis/resp.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"

namespace stint::store::redis {
namespace {

// Gives out a text in pieces, then closes.
class TextStream final : public Stream {
 public:
  TextStream(std::string text, std::size_t piece) : text_(std::move(text)), piece_(piece) {}
  Status write(std::string_view /*bytes*/, MonoTime /*until*/, bool& sent) override {
    sent = true;
    return {};
  }
  Result<std::size_t> read(char* into, std::size_t size, MonoTime /*until*/) override {
    const std::size_t count = std::min({size, piece_, text_.size() - at_});
    std::copy_n(text_.data() + at_, count, into);
    at_ += count;
    return count;
  }
  bool quiet() override { return true; }
  int fd() const override { return -1; }

 private:
  std::string text_;
  std::size_t piece_;
  std::size_t at_ = 0;
};

Result<Reply> parse(const std::string& text, std::size_t piece = SIZE_MAX) {
  TextStream stream(text, piece);
  ReplyReader reader(stream);
  return reader.read(MonoTime{});
}

TEST(RedisReply, IsReadInWhateverPiecesItComes) {
  const std::string text = "*5\r\n+OK\r\n-ERR no\r\n:-7\r\n$4\r\na\r\nb\r\n*2\r\n$-1\r\n$0\r\n\r\n";
  for (std::size_t piece = 1; piece < text.size(); ++piece) {
    const auto reply = parse(text, piece);
    ASSERT_TRUE(reply) << piece;
    ASSERT_EQ(reply->items.size(), 5U);
    EXPECT_EQ(reply->items[0].text, "OK");
    EXPECT_TRUE(reply->items[1].error_is("ERR"));
    EXPECT_FALSE(reply->items[1].error_is("ER"));
    EXPECT_EQ(reply->items[2].number, -7);
    EXPECT_EQ(reply->items[3].text, "a\r\nb");
    ASSERT_EQ(reply->items[4].items.size(), 2U);
    EXPECT_TRUE(reply->items[4].items[0].is(Reply::Kind::Nil));
    EXPECT_TRUE(reply->items[4].items[1].is(Reply::Kind::Bulk));
  }
}

TEST(RedisReply, OfAHostileServerIsAnErrorNotADefault) {
  for (const std::string text :
       {"", "\r\n", "HTTP/1.1 400 Bad Request\r\n", ":\r\n", ":1x\r\n", ": 1\r\n",
        ":99999999999999999999\r\n", "$-2\r\n", "$5\r\nabc\r\n", "$3\r\nabcde\r\n", "$3\r\nabc",
        "$99999999999\r\n", "*-2\r\n", "*2\r\n:1\r\n", "*99999999\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"}) {
    const auto reply = parse(text);
    ASSERT_FALSE(reply) << text;
    EXPECT_EQ(reply.error().code, Code::Unavailable);
  }
  EXPECT_FALSE(parse("+" + std::string(1U << 20U, 'x'))) << "a line without an end";
}

TEST(RedisCommand, CountsBytesNotCharacters) {
  std::string out;
  append_command(out, {"SET", "k\r\n", "\xC3\xA9"});
  EXPECT_EQ(out, "*3\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$2\r\n\xC3\xA9\r\n");
}

}  // namespace
}  // namespace stint::store::redis
