#include "base/json_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace stint {

namespace {

constexpr std::size_t kLongestEscape = 6;

// The short one where there is one: what has many lines must not become six times as long. Returns
// how many bytes it has.
std::size_t put_escape(char* out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out[0] = '\\';
  switch (c) {
    case '"':
    case '\\': out[1] = c; return 2;
    case '\n': out[1] = 'n'; return 2;
    case '\r': out[1] = 'r'; return 2;
    case '\t': out[1] = 't'; return 2;
    default: break;
  }
  out[1] = 'u';
  out[2] = '0';
  out[3] = '0';
  out[4] = kHex[static_cast<unsigned char>(c) >> 4U];
  out[5] = kHex[static_cast<unsigned char>(c) & 15U];
  return kLongestEscape;
}

bool needs_escape(char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20; }

constexpr std::uint64_t each_byte(unsigned char c) { return 0x0101'0101'0101'0101U * c; }

// The high bit of every byte that is zero, exact up to the first of them.
constexpr std::uint64_t zero_bytes(std::uint64_t word) {
  return (word - each_byte(0x01)) & ~word & each_byte(0x80);
}

bool all_plain(std::uint64_t word) {
  const std::uint64_t control = (word - each_byte(0x20)) & ~word & each_byte(0x80);
  return (control | zero_bytes(word ^ each_byte('"')) | zero_bytes(word ^ each_byte('\\'))) == 0;
}

template <class Word>
Word copy_word(char* out, const char* from) {
  Word word = 0;
  std::memcpy(&word, from, sizeof word);
  std::memcpy(out, &word, sizeof word);
  return word;
}

// Copies what needs no escape, many letters at a time: that is nearly all there is. False:
// something does. REQUIRES: room for all of it.
bool copy_plain(char* out, std::string_view text) {
  constexpr std::size_t kEight = 8;
  constexpr std::size_t kFour = 4;
  const char* const from = text.data();
  const std::size_t size = text.size();
  if (size >= kEight) {
    // The last word begins within the one before it.
    for (std::size_t at = 0; at + kEight < size; at += kEight) {
      if (!all_plain(copy_word<std::uint64_t>(out + at, from + at))) return false;
    }
    const std::size_t last = size - kEight;
    return all_plain(copy_word<std::uint64_t>(out + last, from + last));
  }
  if (size >= kFour) {
    const std::size_t last = size - kFour;
    const std::uint64_t low = copy_word<std::uint32_t>(out, from);
    const std::uint64_t high = copy_word<std::uint32_t>(out + last, from + last);
    return all_plain(high << 32U | low);
  }
  bool plain = true;
  for (std::size_t at = 0; at < size; ++at) {
    out[at] = from[at];
    plain &= !needs_escape(from[at]);
  }
  return plain;
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (!needs_escape(c)) {
      out += c;
      continue;
    }
    std::array<char, kLongestEscape> escape{};
    out.append(escape.data(), put_escape(escape.data(), c));
  }
  out += '"';
}

}  // namespace

std::string json_quoted(std::string_view text) {
  std::string out(text.size() + 2, '"');
  if (copy_plain(out.data() + 1, text)) return out;
  out.clear();
  append_quoted(out, text);
  return out;
}

void JsonText::grow(std::size_t most) { out_.resize(std::max(out_.size() * 2, end_ + most)); }

void JsonText::raw(std::string_view text) {
  std::copy(text.begin(), text.end(), room(text.size()));
  end_ += text.size();
}

void JsonText::quoted(std::string_view text) {
  char* const out = room(text.size() + 2);
  if (!copy_plain(out + 1, text)) return raw(json_quoted(text));
  out[0] = '"';
  out[text.size() + 1] = '"';
  end_ += text.size() + 2;
}

void JsonText::name(std::string_view name) {
  *room(1) = end_ == 0 ? '{' : ',';
  ++end_;
  quoted(name);
  *room(1) = ':';
  ++end_;
}

std::string JsonText::done() {
  raw(end_ == 0 ? "{}" : "}");
  out_.resize(end_);
  return std::move(out_);
}

JsonText& JsonText::field(std::string_view key, std::string_view text) {
  name(key);
  quoted(text);
  return *this;
}

JsonText& JsonText::field(std::string_view key, std::int64_t number) {
  name(key);
  constexpr std::size_t kMostDigits = 24;
  char* const out = room(kMostDigits);
  end_ += static_cast<std::size_t>(std::to_chars(out, out + kMostDigits, number).ptr - out);
  return *this;
}

JsonText& JsonText::truth(std::string_view key, bool value) {
  return json(key, value ? "true" : "false");
}

JsonText& JsonText::nothing(std::string_view key) { return json(key, "null"); }

JsonText& JsonText::json(std::string_view key, std::string_view value) {
  name(key);
  raw(value);
  return *this;
}

}  // namespace stint
