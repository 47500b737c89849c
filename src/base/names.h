// The words of the glossary as types: what is contended for, who wants it, and what proves it.
//
// A value of such a type has been checked: whoever has a ResourceName need not look at it again.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stint {

class Random;

// UTF-8, 1 to 512 bytes, no control characters.
class ResourceName {
 public:
  static constexpr std::size_t kMaxBytes = 512;
  static Result<ResourceName> parse(std::string_view text);
  const std::string& text() const { return text_; }
  auto operator<=>(const ResourceName&) const = default;

 private:
  explicit ResourceName(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// The label of a run. For people, never a proof. May be empty in a record that belongs to nobody.
class Owner {
 public:
  static constexpr std::size_t kMaxBytes = 256;
  Owner() = default;
  static Result<Owner> parse(std::string_view text);
  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  auto operator<=>(const Owner&) const = default;

 private:
  explicit Owner(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// The fencing token: 1, 2, 3 ... per resource. Zero means "none was ever issued". Below 2^53, so
// that it survives JSON readers that know only doubles.
class Token {
 public:
  static constexpr std::uint64_t kMax = (std::uint64_t{1} << 53U) - 1;
  constexpr Token() = default;
  constexpr explicit Token(std::uint64_t number) : number_(number) {}
  static Result<Token> parse(std::string_view text);
  constexpr std::uint64_t number() const { return number_; }
  constexpr bool issued() const { return number_ != 0; }
  constexpr Token next() const { return Token(number_ + 1); }
  constexpr auto operator<=>(const Token&) const = default;

 private:
  std::uint64_t number_ = 0;
};

// What is kept of a claim: enough to recognise it, useless to show it.
class ClaimHash {
 public:
  ClaimHash() = default;
  explicit ClaimHash(std::string hex) : hex_(std::move(hex)) {}
  const std::string& hex() const { return hex_; }
  bool empty() const { return hex_.empty(); }
  // Takes the same time wherever the two differ. Two empty ones are not equal: nobody's is no
  // proof.
  bool matches(const ClaimHash& other) const;

 private:
  std::string hex_;
};

// 128 random bits, made by the client for one acquisition: proves that it is the same run.
class Claim {
 public:
  static Claim make(Random& random);
  static Result<Claim> parse(std::string_view hex);
  const std::string& hex() const { return hex_; }
  const ClaimHash& hash() const { return hash_; }

 private:
  explicit Claim(std::string hex);
  std::string hex_;
  ClaimHash hash_;  // every verb needs it
};

// The identity of one store's life.
class Generation {
 public:
  Generation() = default;
  static Generation make(Random& random);
  static Result<Generation> parse(std::string_view hex);
  const std::string& hex() const { return hex_; }
  bool empty() const { return hex_.empty(); }
  bool operator==(const Generation&) const = default;

 private:
  explicit Generation(std::string hex) : hex_(std::move(hex)) {}
  std::string hex_;
};

}  // namespace stint
