#include "base/names.h"

#include "base/random.h"
#include "base/sha256.h"
#include "base/text.h"

namespace stint {
namespace {

constexpr std::size_t kIdHexDigits = 32;

Status check_label(std::string_view what, std::string_view text, std::size_t max_bytes) {
  if (text.empty()) return invalid(cat(what, " is empty"));
  if (text.size() > max_bytes) {
    return invalid(
        cat(what, " is ", text.size(), " bytes long; at most ", max_bytes, " are allowed"));
  }
  if (!is_utf8(text)) return invalid(cat(what, " is not valid UTF-8: ", quoted(text)));
  if (has_control(text)) return invalid(cat(what, " has control characters: ", quoted(text)));
  return {};
}

bool is_id(std::string_view hex) { return hex.size() == kIdHexDigits && is_hex(hex); }

}  // namespace

Result<ResourceName> ResourceName::parse(std::string_view text) {
  if (auto ok = check_label("the resource name", text, kMaxBytes); !ok) return ok.error();
  return ResourceName(std::string(text));
}

Result<Owner> Owner::parse(std::string_view text) {
  if (auto ok = check_label("the owner", text, kMaxBytes); !ok) return ok.error();
  return Owner(std::string(text));
}

Result<Token> Token::parse(std::string_view text) {
  const auto number = parse_digits(text);
  if (!number || *number == 0 || *number > kMax) {
    return invalid(cat(quoted(text), " is not a token: a whole number from 1 to ", kMax));
  }
  return Token(*number);
}

bool ClaimHash::matches(const ClaimHash& other) const {
  if (empty() || hex_.size() != other.hex_.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < hex_.size(); ++i) {
    difference |= static_cast<unsigned char>(hex_[i]) ^ static_cast<unsigned char>(other.hex_[i]);
  }
  return difference == 0;
}

Claim Claim::make(Random& random) { return Claim(random.id_hex()); }

Result<Claim> Claim::parse(std::string_view hex) {
  if (!is_id(hex)) return invalid("the claim is not 32 hexadecimal digits");
  return Claim(std::string(hex));
}

Claim::Claim(std::string hex)
    : hex_(std::move(hex)), hash_(to_hex(sha256(hex_).substr(0, kIdHexDigits / 2))) {}

Generation Generation::make(Random& random) { return Generation(random.id_hex()); }

Result<Generation> Generation::parse(std::string_view hex) {
  if (!is_id(hex)) return invalid(cat(quoted(hex), " is not a generation: 32 hexadecimal digits"));
  return Generation(std::string(hex));
}

}  // namespace stint
