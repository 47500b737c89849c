#include "base/json_value.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace stint {

class JsonParser {
 public:
  JsonParser(std::string_view text, const JsonLimits& limits) : text_(text), limits_(limits) {}

  Result<JsonValue> document() {
    JsonValue out;
    if (!value(out, 0)) return wrong();
    blanks();
    if (at_ != text_.size()) {
      say("something follows the document");
      return wrong();
    }
    return out;
  }

 private:
  Error wrong() const {
    return invalid(cat("not the JSON that is read here: ", why_, " (byte ", at_, ")"));
  }
  bool say(std::string_view why) {
    if (why_.empty()) why_ = why;
    return false;
  }
  void blanks() {
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
    while (at_ < text_.size() && blank(text_[at_])) ++at_;
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return say("not a value");
    at_ += expected.size();
    return true;
  }

  bool value(JsonValue& out, std::size_t depth) {
    if (depth > limits_.depth) return say("nested too deeply");
    if (++values_ > limits_.values) return say("too many values");
    blanks();
    if (at_ >= text_.size()) return say("it ends too early");
    switch (text_[at_]) {
      case '{': return object(out, depth);
      case '[': return list(out, depth);
      case '"': return string(out.value_.emplace<std::string>());
      case 't': out.value_ = true; return word("true");
      case 'f': out.value_ = false; return word("false");
      case 'n': out.value_ = nullptr; return word("null");
      default: return number(out);
    }
  }

  bool object(JsonValue& out, std::size_t depth) {
    auto& fields = out.value_.emplace<JsonValue::Object>();
    ++at_;
    blanks();
    if (take('}')) return true;
    constexpr std::size_t kUsual = 8;
    fields.reserve(kUsual);
    do {
      blanks();
      if (at_ >= text_.size() || text_[at_] != '"') return say("a name is missing");
      auto& field = fields.emplace_back(std::string(), JsonValue());
      if (!string(field.first)) return false;
      const bool twice = std::any_of(fields.begin(), fields.end() - 1,
                                     [&](const auto& other) { return other.first == field.first; });
      if (twice) return say("a name stands twice in one object");
      if (fields.size() > JsonValue::kMostFields) return say("too many fields in one object");
      blanks();
      if (!take(':')) return say("a colon is missing");
      if (!value(field.second, depth + 1)) return false;
      blanks();
    } while (take(','));
    return take('}') || say("an object does not end");
  }

  bool list(JsonValue& out, std::size_t depth) {
    auto& items = out.value_.emplace<JsonValue::List>();
    ++at_;
    blanks();
    if (take(']')) return true;
    do {
      if (!value(items.emplace_back(), depth + 1)) return false;
      blanks();
    } while (take(','));
    return take(']') || say("a list does not end");
  }

  bool number(JsonValue& out) {
    const char* from = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    std::int64_t read = 0;
    const auto [stop, failed] = std::from_chars(from, end, read);
    if (failed == std::errc::result_out_of_range) return say("a number beyond 64 bits");
    if (failed != std::errc()) return say("not a value");
    const std::string_view digits(from, static_cast<std::size_t>(stop - from));
    const std::size_t first = digits.starts_with('-') ? 1 : 0;
    if (digits.size() > first + 1 && digits[first] == '0')
      return say("a number with a leading zero");
    if (stop != end && (*stop == '.' || *stop == 'e' || *stop == 'E')) {
      return say("a number that is not a whole one");
    }
    at_ += digits.size();
    out.value_ = read;
    return true;
  }

  std::optional<unsigned> four_hex() {
    if (text_.size() - at_ < 4) return std::nullopt;
    unsigned out = 0;
    const char* from = text_.data() + at_;
    if (std::from_chars(from, from + 4, out, 16).ptr != from + 4 || *from == '-')
      return std::nullopt;
    at_ += 4;
    return out;
  }

  bool escaped_unicode(std::string& out) {
    auto code = four_hex();
    if (!code) return say("a \\u without four digits");
    unsigned point = *code;
    if (point >= 0xDC00 && point < 0xE000) return say("half of a surrogate pair");
    if (point >= 0xD800 && point < 0xDC00) {
      const auto low = take('\\') && take('u') ? four_hex() : std::nullopt;
      if (!low || *low < 0xDC00 || *low >= 0xE000) return say("half of a surrogate pair");
      point = 0x10000 + ((point - 0xD800) << 10U) + (*low - 0xDC00);
    }
    const auto put = [&out](unsigned byte) { out += static_cast<char>(byte); };
    if (point < 0x80) {
      put(point);
    } else if (point < 0x800) {
      put(0xC0 | point >> 6U);
      put(0x80 | (point & 0x3FU));
    } else if (point < 0x10000) {
      put(0xE0 | point >> 12U);
      put(0x80 | ((point >> 6U) & 0x3FU));
      put(0x80 | (point & 0x3FU));
    } else {
      put(0xF0 | point >> 18U);
      put(0x80 | ((point >> 12U) & 0x3FU));
      put(0x80 | ((point >> 6U) & 0x3FU));
      put(0x80 | (point & 0x3FU));
    }
    return true;
  }

  bool escape(std::string& out) {
    if (at_ >= text_.size()) return say("a string does not end");
    const char c = text_[at_++];
    constexpr std::string_view kShort = "\"\\/bfnrt";
    constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
    if (const std::size_t found = kShort.find(c); found != kShort.npos) {
      out += kMeant[found];
      return true;
    }
    return c == 'u' ? escaped_unicode(out) : say("an unknown escape");
  }

  bool string(std::string& out) {
    ++at_;
    while (at_ < text_.size()) {
      const std::size_t from = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
             static_cast<unsigned char>(text_[at_]) >= 0x20) {
        ++at_;
      }
      out += text_.substr(from, at_ - from);
      if (at_ >= text_.size()) break;
      const char c = text_[at_++];
      if (c == '"') return is_utf8(out) || say("a string that is not UTF-8");
      if (c != '\\') return say("a control character in a string");
      if (!escape(out)) return false;
    }
    return say("a string does not end");
  }

  const std::string_view text_;
  const JsonLimits limits_;
  std::size_t at_ = 0;
  std::size_t values_ = 0;
  std::string why_;
};

Result<JsonValue> JsonValue::parse(std::string_view text, const JsonLimits& limits) {
  return JsonParser(text, limits).document();
}

JsonFields::JsonFields(const JsonValue& value) : object_(value.if_object()) {
  if (object_ == nullptr) fail("a JSON object is expected");
}

void JsonFields::fail(std::string why) {
  if (problem_.empty()) problem_ = std::move(why);
}

const JsonValue* JsonFields::find(std::string_view name) {
  if (object_ == nullptr) return nullptr;
  for (std::size_t i = 0; i < object_->size(); ++i) {
    const auto& [key, value] = (*object_)[i];
    if (key != name) continue;
    asked_ |= std::uint64_t{1} << i;
    return value.is_null() ? nullptr : &value;
  }
  return nullptr;
}

void JsonFields::require(std::string_view name) {
  if (find(name) == nullptr) fail(cat(quoted(name), " is missing"));
}

std::string JsonFields::text(std::string_view name) {
  const JsonValue* value = find(name);
  if (value == nullptr) return {};
  if (value->if_text() == nullptr) {
    fail(cat(quoted(name), " is not a string"));
    return {};
  }
  return *value->if_text();
}

std::optional<std::int64_t> JsonFields::maybe_number(std::string_view name) {
  const JsonValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->if_number() == nullptr) {
    fail(cat(quoted(name), " is not a whole number"));
    return std::nullopt;
  }
  return *value->if_number();
}

std::int64_t JsonFields::number(std::string_view name) { return maybe_number(name).value_or(0); }

bool JsonFields::flag(std::string_view name, bool otherwise) {
  const JsonValue* value = find(name);
  if (value == nullptr) return otherwise;
  if (value->if_bool() == nullptr) {
    fail(cat(quoted(name), " is not true or false"));
    return otherwise;
  }
  return *value->if_bool();
}

std::vector<std::string> JsonFields::texts(std::string_view name) {
  std::vector<std::string> out;
  const JsonValue* value = find(name);
  if (value == nullptr) return out;
  if (value->if_list() == nullptr) {
    fail(cat(quoted(name), " is not a list"));
    return out;
  }
  for (const JsonValue& item : *value->if_list()) {
    if (item.if_text() == nullptr) {
      fail(cat(quoted(name), " has something that is not a string"));
      return {};
    }
    out.push_back(*item.if_text());
  }
  return out;
}

std::optional<Millis> JsonFields::maybe_millis(std::string_view name) {
  const auto number = maybe_number(name);
  if (!number) return std::nullopt;
  // Far beyond what is ever meant, and far below what overflows in nanoseconds.
  constexpr std::int64_t kLongest = std::int64_t{10} * 366 * 24 * 3600 * 1000;
  if (*number < 0 || *number > kLongest) {
    fail(cat(quoted(name), " is not a duration"));
    return std::nullopt;
  }
  return Millis(*number);
}

Millis JsonFields::millis(std::string_view name) { return maybe_millis(name).value_or(Millis(0)); }

Token JsonFields::token(std::string_view name) {
  const std::int64_t n = number(name);
  if (n < 0 || static_cast<std::uint64_t>(n) > Token::kMax) {
    fail(cat(quoted(name), " is not a token"));
    return {};
  }
  return Token(static_cast<std::uint64_t>(n));
}

Owner JsonFields::owner(std::string_view name) {
  const std::string label = text(name);
  if (label.empty()) return {};
  auto owner = Owner::parse(label);
  if (!owner) fail(cat(quoted(name), ": ", owner.error().message));
  return owner.value_or(Owner());
}

Generation JsonFields::generation(std::string_view name) {
  const std::string hex = text(name);
  if (hex.empty()) return {};
  auto generation = Generation::parse(hex);
  if (!generation) fail(cat(quoted(name), " is no generation"));
  return generation.value_or(Generation());
}

std::optional<WallTime> JsonFields::moment(std::string_view name) {
  const auto number = maybe_number(name);
  if (!number) return std::nullopt;
  constexpr std::int64_t kFirstMs = -62'135'596'800'000;  // the years 1 to 9999
  constexpr std::int64_t kLastMs = 253'402'300'799'999;
  if (*number < kFirstMs || *number > kLastMs) {
    fail(cat(quoted(name), " is no time"));
    return std::nullopt;
  }
  return wall_from_ms(*number);
}

void JsonFields::refuse_others() {
  if (object_ == nullptr) return;
  for (std::size_t i = 0; i < object_->size(); ++i) {
    if ((asked_ >> i & 1U) != 0) continue;
    fail(cat("there is no field ", quoted((*object_)[i].first), " here"));
    return;
  }
}

Status JsonFields::done() const {
  if (problem_.empty()) return {};
  return invalid(problem_);
}

}  // namespace stint
