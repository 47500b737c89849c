// A JSON document from outside, read strictly, and its fields.
//
// For what strangers send: no name twice in one object (two readers would take different ones), no
// number that is not a whole one of 64 bits, no lone surrogate, no byte that is not UTF-8, and
// limits on depth and count. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "base/time.h"

namespace stint {

struct JsonLimits {
  std::size_t depth = 8;
  std::size_t values = 100'000;
};

class JsonValue {
 public:
  using List = std::vector<JsonValue>;
  using Object = std::vector<std::pair<std::string, JsonValue>>;

  // Errors: Invalid, with the place.
  static Result<JsonValue> parse(std::string_view text, const JsonLimits& limits = {});

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
  const bool* if_bool() const { return std::get_if<bool>(&value_); }
  const std::int64_t* if_number() const { return std::get_if<std::int64_t>(&value_); }
  const std::string* if_text() const { return std::get_if<std::string>(&value_); }
  const List* if_list() const { return std::get_if<List>(&value_); }
  const Object* if_object() const { return std::get_if<Object>(&value_); }

 private:
  friend class JsonParser;
  static constexpr std::size_t kMostFields = 64;  // each is compared with all before it
  friend class JsonFields;
  std::variant<std::nullptr_t, bool, std::int64_t, std::string, List, Object> value_ = nullptr;
};

// Reads the fields of one object; the first thing that is wrong is remembered. A field that is
// absent or null has its default, unless require() names it.
class JsonFields {
 public:
  explicit JsonFields(const JsonValue& value);

  const JsonValue* find(std::string_view name);  // null: absent or null
  void require(std::string_view name);

  std::string text(std::string_view name);
  std::int64_t number(std::string_view name);
  std::optional<std::int64_t> maybe_number(std::string_view name);
  bool flag(std::string_view name, bool otherwise = false);
  std::vector<std::string> texts(std::string_view name);
  Millis millis(std::string_view name);  // never negative
  std::optional<Millis> maybe_millis(std::string_view name);
  Token token(std::string_view name);
  Owner owner(std::string_view name);            // empty: not given
  Generation generation(std::string_view name);  // empty: not given
  std::optional<WallTime> moment(std::string_view name);

  void fail(std::string why);
  // What was asked for is all that there may be.
  void refuse_others();
  Status done() const;

 private:
  const JsonValue::Object* object_ = nullptr;
  std::uint64_t asked_ = 0;  // a bit a field: an object has at most 64
  std::string problem_;
};

}  // namespace stint
