#include "base/json_text.h"

namespace stint {

void JsonText::quote(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out_ += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out_ += "\\u00";
      out_ += kHex[static_cast<unsigned char>(c) >> 4U];
      out_ += kHex[static_cast<unsigned char>(c) & 15U];
    } else {
      out_ += c;
    }
  }
  out_ += '"';
}

void JsonText::name(std::string_view name) {
  out_ += out_.empty() ? '{' : ',';
  quote(name);
  out_ += ':';
}

JsonText& JsonText::field(std::string_view key, std::string_view text) {
  name(key);
  quote(text);
  return *this;
}

JsonText& JsonText::field(std::string_view key, std::int64_t number) {
  name(key);
  out_ += std::to_string(number);
  return *this;
}

}  // namespace stint
