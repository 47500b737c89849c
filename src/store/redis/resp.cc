#include "store/redis/resp.h"

#include <array>
#include <charconv>

#include "base/text.h"

namespace stint::store::redis {
namespace {

Error no_redis() { return unavailable("what answers there does not speak the Redis protocol"); }

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

bool Reply::error_is(std::string_view word) const {
  return kind == Kind::Error && text.starts_with(word) &&
         (text.size() == word.size() || text[word.size()] == ' ');
}

CommandWriter::CommandWriter(std::string& out, std::size_t count) : out_(out) {
  out_ += cat('*', count, "\r\n");
}

CommandWriter& CommandWriter::word(std::string_view word) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), word.size()).ptr;
  out_ += '$';
  out_.append(digits.data(), end);
  out_ += "\r\n";
  out_ += word;
  out_ += "\r\n";
  return *this;
}

void append_command(std::string& out, const std::vector<std::string_view>& words) {
  CommandWriter writer(out, words.size());
  for (const std::string_view word : words) writer.word(word);
}

Status ReplyReader::more(MonoTime until) {
  constexpr std::size_t kPiece = 64U << 10U;
  if (at_ == buffer_.size()) {
    buffer_.clear();
    at_ = 0;
  } else if (at_ > kPiece) {
    buffer_.erase(0, at_);
    at_ = 0;
  }
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kPiece);
  const auto got = stream_.read(buffer_.data() + before, kPiece, until);
  buffer_.resize(before + (got ? *got : 0));
  if (!got) return got.error();
  if (*got == 0) return unavailable("the server closed the connection");
  return {};
}

Result<std::string> ReplyReader::line(MonoTime until) {
  std::size_t looked = 0;
  while (true) {
    const std::size_t end = buffer_.find("\r\n", at_ + looked);
    if (end != buffer_.npos) {
      std::string out = buffer_.substr(at_, end - at_);
      at_ = end + 2;
      return out;
    }
    const std::size_t have = buffer_.size() - at_;
    if (have > kMostLine) return no_redis();
    looked = have == 0 ? 0 : have - 1;
    if (auto ok = more(until); !ok) return ok.error();
  }
}

Result<std::string> ReplyReader::bytes(std::size_t count, MonoTime until) {
  while (buffer_.size() - at_ < count + 2) {
    if (auto ok = more(until); !ok) return ok.error();
  }
  if (buffer_.compare(at_ + count, 2, "\r\n") != 0) return no_redis();
  std::string out = buffer_.substr(at_, count);
  at_ += count + 2;
  return out;
}

Result<Reply> ReplyReader::read_items(std::int64_t count, MonoTime until, int depth) {
  if (count > static_cast<std::int64_t>(kMostItems) || depth >= kMostDepth) return no_redis();
  Reply out{.kind = Reply::Kind::Array, .text = {}};
  for (std::int64_t i = 0; i < count; ++i) {
    auto item = read(until, depth + 1);
    if (!item) return item.error();
    out.items.push_back(std::move(*item));
  }
  return out;
}

Result<Reply> ReplyReader::read(MonoTime until, int depth) {
  auto head = line(until);
  if (!head) return head.error();
  if (head->empty()) return no_redis();
  const char type = head->front();
  std::string rest = head->substr(1);
  if (type == '+') return Reply{.kind = Reply::Kind::Simple, .text = std::move(rest)};
  if (type == '-') return Reply{.kind = Reply::Kind::Error, .text = std::move(rest)};
  if (type != ':' && type != '$' && type != '*') return no_redis();
  const auto number = parse_number(rest);
  if (!number) return no_redis();
  if (type == ':') return Reply{.kind = Reply::Kind::Integer, .text = {}, .number = *number};
  if (*number == -1) return Reply{};
  if (*number < 0) return no_redis();
  if (type == '*') return read_items(*number, until, depth);
  if (*number > static_cast<std::int64_t>(kMostBulk)) return no_redis();
  auto body = bytes(static_cast<std::size_t>(*number), until);
  if (!body) return body.error();
  return Reply{.kind = Reply::Kind::Bulk, .text = std::move(*body)};
}

}  // namespace stint::store::redis
