#include "api/keys.h"

#include <algorithm>
#include <array>

#include "api/json.h"
#include "api/wire.h"
#include "base/sha256.h"
#include "base/text.h"

namespace stint::api {
namespace {

constexpr std::array kAll = {Right::Read,     Right::Acquire, Right::Admit, Right::Queue,
                             Right::Schedule, Right::Operate, Right::Admin};
constexpr std::string_view kMark = "stint_";
constexpr std::size_t kIdDigits = 16;
constexpr std::size_t kSecretDigits = 64;

}  // namespace

std::string_view word(Right right) {
  switch (right) {
    case Right::Read: return "read";
    case Right::Acquire: return "acquire";
    case Right::Admit: return "admit";
    case Right::Queue: return "queue";
    case Right::Schedule: return "schedule";
    case Right::Operate: return "operate";
    case Right::Admin: return "admin";
  }
  return "";
}

std::vector<std::string> words(Rights some) {
  std::vector<std::string> out;
  for (const Right right : kAll) {
    if ((some & rights(right)) != 0) out.emplace_back(word(right));
  }
  return out;
}

Result<Rights> parse_rights(std::string_view text) {
  Rights out = 0;
  for (const std::string_view part : split(text, ',')) {
    const auto found = std::ranges::find_if(kAll, [&](Right one) { return word(one) == part; });
    if (found == kAll.end()) {
      return invalid(cat(quoted(part),
                         " is nothing that a key can allow; there is: read, acquire, admit, queue, "
                         "schedule, operate, admin"));
    }
    out = static_cast<Rights>(out | rights(*found));
  }
  return out;
}

std::optional<ShownKey> parse_shown_key(std::string_view text) {
  if (text.size() != kMark.size() + kIdDigits + 1 + kSecretDigits || !text.starts_with(kMark)) {
    return std::nullopt;
  }
  text.remove_prefix(kMark.size());
  const std::string_view id = text.substr(0, kIdDigits);
  const std::string_view secret = text.substr(kIdDigits + 1);
  if (text[kIdDigits] != '_' || !is_hex(id) || !is_hex(secret)) return std::nullopt;
  return ShownKey{id, secret};
}

std::string hash_of_secret(std::string_view secret) { return to_hex(sha256(secret)); }

bool is_secret_of(const Key& key, std::string_view secret) {
  const std::string shown = hash_of_secret(secret);
  if (shown.size() != key.hash.size()) return false;
  unsigned differs = 0;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    differs |= static_cast<unsigned char>(shown[i]) ^ static_cast<unsigned char>(key.hash[i]);
  }
  return differs == 0;
}

std::string veiled(std::string_view secret, std::string_view veil) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < secret.size() && i / 2 < veil.size(); ++i) {
    const auto byte = static_cast<unsigned char>(veil[i / 2]);
    const unsigned half = i % 2 == 0 ? byte >> 4U : byte & 0xFU;
    out += kDigits[(kDigits.find(secret[i]) & 0xFU) ^ half];
  }
  return out;
}

Status check_key_name(std::string_view name) {
  constexpr std::size_t kMost = 64;
  const bool ok = !name.empty() && name.size() <= kMost && std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-';
  });
  if (ok) return {};
  return invalid(cat("the name of a key is 1 to ", kMost, " letters, digits, dots, _ and -"));
}

std::string to_json(const Key& key) {
  const auto moment = [](const std::optional<WallTime>& t) {
    return t ? cat(to_ms(*t)) : std::string("null");
  };
  return cat(
      "{\"id\":\"", key.id, "\",\"name\":\"", key.name, "\",\"allow\":", to_json(words(key.rights)),
      ",\"prefixes\":", to_json(key.prefixes), ",\"created_at_ms\":", to_ms(key.created_at),
      ",\"expires_at_ms\":", moment(key.expires_at), ",\"revoked_at_ms\":", moment(key.revoked_at),
      ",\"used_at_ms\":", moment(key.used_at), "}");
}

}  // namespace stint::api
