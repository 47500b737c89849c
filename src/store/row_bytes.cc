#include "store/row_bytes.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace stint::store {
namespace {

enum RowFlags : unsigned char { kRowRemoved = 1, kRowTimer = 2 };

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 30U) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27U) * 0x94d049bb133111ebU;
  return x ^ x >> 31U;
}

// Little-endian, as all that this program runs on.
std::uint64_t load_word(const char* at) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

void pack_number(std::string& out, std::uint64_t number) {
  while (number >= 0x80) {
    out.push_back(static_cast<char>((number & 0x7FU) | 0x80U));
    number >>= 7U;
  }
  out.push_back(static_cast<char>(number));
}

void pack_text(std::string& out, std::string_view text) {
  pack_number(out, text.size());
  out.append(text);
}

unsigned char RowReader::byte() {
  const std::string_view one = take(1);
  return one.empty() ? 0 : static_cast<unsigned char>(one.front());
}

std::uint64_t RowReader::number() {
  std::uint64_t out = 0;
  const std::size_t most = std::min<std::size_t>(rest_.size(), 10);
  for (std::size_t i = 0; ok_ && i < most; ++i) {
    const auto next = static_cast<unsigned char>(rest_[i]);
    out |= static_cast<std::uint64_t>(next & 0x7FU) << 7 * i;
    if ((next & 0x80U) != 0) continue;
    rest_.remove_prefix(i + 1);
    return out;
  }
  ok_ = false;
  return 0;
}

std::string_view RowReader::take(std::uint64_t size) {
  ok_ = ok_ && size <= rest_.size();
  if (!ok_) return {};
  const std::string_view out = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return out;
}

void pack_row(std::string& out, std::string_view key, const Row& row) {
  pack_text(out, key);
  unsigned flags = 0;
  if (row.version == 0) {
    flags = kRowRemoved;
  } else if (row.timer) {
    flags = kRowTimer;
  }
  out.push_back(static_cast<char>(flags));
  if (row.version == 0) return;
  pack_number(out, row.version);
  pack_text(out, row.value);
  if (!row.timer) return;
  pack_number(out, row.timer->boot);
  pack_number(out, static_cast<std::uint64_t>(row.timer->fires_at.count()));
  pack_number(out, static_cast<std::uint64_t>(row.timer->ttl.count()));
}

Row take_row(RowReader& reader) {
  Row row;
  const unsigned flags = reader.byte();
  if ((flags & kRowRemoved) != 0) return row;
  row.version = reader.number();
  row.value = reader.text();
  if ((flags & kRowTimer) == 0) return row;
  StoredTimer timer;
  timer.boot = reader.number();
  timer.fires_at = Nanos(static_cast<std::int64_t>(reader.number()));
  timer.ttl = Millis(static_cast<std::int64_t>(reader.number()));
  row.timer = timer;
  return row;
}

std::uint64_t checksum(std::string_view bytes) {
  constexpr std::size_t kWord = 8;
  std::uint64_t hash = mixed(bytes.size() + 0x9e3779b97f4a7c15U);
  std::size_t at = 0;
  for (; at + kWord <= bytes.size(); at += kWord) {
    hash = mixed(hash ^ load_word(bytes.data() + at)) + 0x9e3779b97f4a7c15U;
  }
  char rest[kWord] = {};
  if (at < bytes.size()) std::memcpy(rest, bytes.data() + at, bytes.size() - at);
  return mixed(hash ^ load_word(rest));
}

}  // namespace stint::store
