// The protocol of Redis (RESP 2): commands out, replies in. What a server says is not trusted:
// sizes, depth and digits are checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/redis/stream.h"

namespace stint::store::redis {

struct Reply {
  enum class Kind { Simple, Error, Integer, Bulk, Nil, Array };
  Kind kind = Kind::Nil;
  std::string text;         // Simple, Error, Bulk
  std::int64_t number = 0;  // Integer
  std::vector<Reply> items = {};

  bool is(Kind other) const { return kind == other; }
  // "NOSCRIPT ...": the first word of an error.
  bool error_is(std::string_view word) const;
};

// Appends one command. `count` of its words are to follow by word().
class CommandWriter {
 public:
  CommandWriter(std::string& out, std::size_t count);
  CommandWriter& word(std::string_view word);

 private:
  std::string& out_;
};
void append_command(std::string& out, const std::vector<std::string_view>& words);

// Pulls replies out of a stream.
class ReplyReader {
 public:
  static constexpr std::size_t kMostBulk = 64U << 20U;
  static constexpr std::size_t kMostItems = 1U << 20U;
  static constexpr std::size_t kMostLine = 64U << 10U;
  static constexpr int kMostDepth = 4;

  explicit ReplyReader(Stream& stream) : stream_(stream) {}
  // Unavailable: the stream ended, the deadline passed, or this is not RESP.
  Result<Reply> read(MonoTime until) { return read(until, 0); }
  bool pending() const { return at_ < buffer_.size() || stream_.pending(); }

 private:
  Result<Reply> read(MonoTime until, int depth);
  Result<Reply> read_items(std::int64_t count, MonoTime until, int depth);
  Result<std::string> line(MonoTime until);
  Result<std::string> bytes(std::size_t count, MonoTime until);
  Status more(MonoTime until);

  Stream& stream_;
  std::string buffer_;
  std::size_t at_ = 0;
};

}  // namespace stint::store::redis
