#include "base/json_text.h"

#include <algorithm>
#include <charconv>

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

// Run by run: hardly anything in a record needs an escape.
void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto* const stop = std::find_if(text.begin(), text.end(), needs_escape);
    const auto plain = static_cast<std::size_t>(stop - text.begin());
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
  char digits[24];
  out_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
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
