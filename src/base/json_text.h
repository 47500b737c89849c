// Writes one flat JSON object, field by field, straight into text. For what is written often; what
// is read, or nested, goes through a JSON library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stint {

// One text as JSON, in its quotes. REQUIRES: UTF-8.
std::string json_quoted(std::string_view text);

class JsonText {
 public:
  JsonText() { out_.reserve(256); }

  JsonText& field(std::string_view name, std::string_view text);
  JsonText& field(std::string_view name, std::int64_t number);
  JsonText& truth(std::string_view name, bool value);
  JsonText& nothing(std::string_view name);  // null
  // What is JSON already.
  JsonText& json(std::string_view name, std::string_view value);
  // Nothing at all for an empty text.
  JsonText& field_if(std::string_view name, std::string_view text) {
    return text.empty() ? *this : field(name, text);
  }

  // The text; call it once.
  std::string done() {
    out_ += out_.empty() ? "{}" : "}";
    return std::move(out_);
  }

 private:
  void name(std::string_view name);
  std::string out_;
};

}  // namespace stint
