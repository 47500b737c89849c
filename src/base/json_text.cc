#include "base/json_text.h"

#include <array>
#include <charconv>
#include <cstring>

namespace stint {

namespace {

// The short one where there is one: what has many lines must not become six times as long.
void append_escaped(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '\\';
  switch (c) {
    case '"':
    case '\\': out += c; return;
    case '\n': out += 'n'; return;
    case '\r': out += 'r'; return;
    case '\t': out += 't'; return;
    default: break;
  }
  out += "u00";
  out += kHex[static_cast<unsigned char>(c) >> 4U];
  out += kHex[static_cast<unsigned char>(c) & 15U];
}

bool needs_escape(char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20; }

constexpr std::uint64_t each_byte(unsigned char c) { return 0x0101'0101'0101'0101U * c; }

// The high bit of every byte that is zero, exact up to the first of them.
constexpr std::uint64_t zero_bytes(std::uint64_t word) {
  return (word - each_byte(0x01)) & ~word & each_byte(0x80);
}

// How many letters need no escape; eight at a time, for that is nearly all of them.
std::size_t plain_letters(std::string_view text) {
  std::size_t at = 0;
  for (std::uint64_t word = 0; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    const std::uint64_t control = (word - each_byte(0x20)) & ~word & each_byte(0x80);
    if ((control | zero_bytes(word ^ each_byte('"')) | zero_bytes(word ^ each_byte('\\'))) != 0) {
      break;
    }
  }
  while (at < text.size() && !needs_escape(text[at])) ++at;
  return at;
}

// Run by run: hardly anything in a record needs an escape.
void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t plain = plain_letters(text);
    out.append(text.data(), plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    append_escaped(out, text.front());
    text.remove_prefix(1);
  }
  out += '"';
}

}  // namespace

std::string json_quoted(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  append_quoted(out, text);
  return out;
}

void JsonText::name(std::string_view name) {
  out_ += out_.empty() ? '{' : ',';
  append_quoted(out_, name);
  out_ += ':';
}

JsonText& JsonText::field(std::string_view key, std::string_view text) {
  name(key);
  append_quoted(out_, text);
  return *this;
}

JsonText& JsonText::field(std::string_view key, std::int64_t number) {
  name(key);
  std::array<char, 24> digits{};
  out_.append(digits.data(), std::to_chars(digits.data(), digits.end(), number).ptr);
  return *this;
}

JsonText& JsonText::truth(std::string_view key, bool value) {
  return json(key, value ? "true" : "false");
}

JsonText& JsonText::nothing(std::string_view key) { return json(key, "null"); }

JsonText& JsonText::json(std::string_view key, std::string_view value) {
  name(key);
  out_ += value;
  return *this;
}

}  // namespace stint
