// Writes one flat JSON object, field by field, straight into text. For what is written often; what
// is read, or nested, goes through a JSON library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stint {

// One text as JSON, in its quotes. REQUIRES: UTF-8.
std::string json_quoted(std::string_view text);

class JsonText {
 public:
  JsonText() : out_(kUsual, '\0') {}

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
  std::string done();

 private:
  static constexpr std::size_t kUsual = 256;
  // Where the next `most` bytes go.
  char* room(std::size_t most) {
    if (out_.size() - end_ < most) grow(most);
    return out_.data() + end_;
  }
  void grow(std::size_t most);
  void raw(std::string_view text);
  void quoted(std::string_view text);
  void name(std::string_view name);

  // As long as its memory: letter by letter, a string that grows takes four times as long.
  std::string out_;
  std::size_t end_ = 0;  // of what is written
};

}  // namespace stint
