// A table of an enumeration's words, looked up in both directions. For the files *_words.cc.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace stint::core {

template <class Enum, std::size_t N>
using Words = std::array<std::pair<Enum, std::string_view>, N>;

template <class Enum, std::size_t N>
std::string_view word_of(const Words<Enum, N>& words, Enum value) {
  for (const auto& [candidate, text] : words) {
    if (candidate == value) return text;
  }
  return {};
}

template <class Enum, std::size_t N>
std::optional<Enum> value_of(const Words<Enum, N>& words, std::string_view text) {
  for (const auto& [value, candidate] : words) {
    if (candidate == text) return value;
  }
  return std::nullopt;
}

}  // namespace stint::core
