// Reads a record's JSON value. Shared by records.cc and fence_records.cc only.
#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "base/text.h"
#include "base/time.h"
#include "core/lease.h"

namespace stint::service {

namespace json = boost::json;

// Reads fields of one JSON object; the first thing that is wrong is remembered.
class Fields {
 public:
  explicit Fields(std::string_view what, std::string_view value) : what_(what) {
    json::error_code error;
    json::value parsed = json::parse(json::string_view(value.data(), value.size()), error);
    if (error || !parsed.is_object()) {
      fail("it is not a JSON object");
      return;
    }
    object_ = std::move(parsed.as_object());
  }

  const json::value* find(std::string_view name) const {
    return object_.if_contains(json::string_view(name.data(), name.size()));
  }

  std::string text(std::string_view name) {
    const json::value* value = find(name);
    if (value == nullptr) return {};
    if (!value->is_string()) {
      fail(cat(name, " is not a string"));
      return {};
    }
    return std::string(value->as_string());
  }

  std::int64_t number(std::string_view name) {
    const json::value* value = find(name);
    if (value == nullptr) return 0;
    if (!value->is_int64()) {
      fail(cat(name, " is not a whole number"));
      return 0;
    }
    return value->as_int64();
  }

  Millis duration(std::string_view name) {
    // Far beyond what is ever written, and far below what overflows in nanoseconds.
    constexpr std::int64_t kLongest = std::int64_t{10} * 366 * 24 * 3600 * 1000;
    const std::int64_t ms = number(name);
    if (ms >= 0 && ms <= kLongest) return Millis(ms);
    fail(cat(name, " is not a duration"));
    return Millis(0);
  }

  std::vector<std::string> texts(std::string_view name) {
    std::vector<std::string> out;
    const json::value* value = find(name);
    if (value == nullptr) return out;
    if (!value->is_array()) {
      fail(cat(name, " is not a list"));
      return out;
    }
    for (const json::value& item : value->as_array()) {
      if (!item.is_string()) {
        fail(cat(name, " has something that is not a string"));
        return {};
      }
      out.emplace_back(item.as_string());
    }
    return out;
  }

  void require(std::string_view name) {
    if (find(name) == nullptr) fail(cat("there is no ", name));
  }

  Token token(std::string_view name) {
    const std::int64_t n = number(name);
    if (n < 0 || static_cast<std::uint64_t>(n) > Token::kMax) fail(cat(name, " is not a token"));
    return Token(static_cast<std::uint64_t>(n));
  }

  std::optional<WallTime> moment(std::string_view name) {
    if (find(name) == nullptr) return std::nullopt;
    return wall_from_ms(number(name));
  }

  Owner owner(std::string_view name) {
    const std::string label = text(name);
    if (label.empty()) return {};
    auto owner = Owner::parse(label);
    if (!owner) {
      fail(owner.error().message);
      return {};
    }
    return *owner;
  }

  core::Reason reason(std::string_view name) {
    const auto reason = core::parse_reason(text(name));
    if (!reason) fail(cat(name, " is unknown"));
    return reason.value_or(core::Reason::First);
  }

  void fail(std::string why) {
    if (problem_.empty()) problem_ = std::move(why);
  }

  template <class T>
  Result<T> done(T value) const {
    if (problem_.empty()) return value;
    return unavailable(cat("the store holds a damaged ", what_, " record: ", problem_));
  }

  const json::object& object() const { return object_; }

 private:
  std::string_view what_;
  json::object object_;
  std::string problem_;
};

}  // namespace stint::service
