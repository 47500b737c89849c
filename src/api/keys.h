// Keys of a server: who may ask it for what. Kept in its store, hashed.
//
// A key is shown once, when it is made: "stint_ID_SECRET". Whoever has it is `name`; two keys of
// one name are the same somebody (that is how a key is replaced).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "base/watch.h"

namespace stint::api {

enum class Right : std::uint8_t {
  Read = 1U << 0U,     // look, list, events, /metrics
  Acquire = 1U << 1U,  // and renew, release, report progress of one's own
  Admit = 1U << 2U,    // ask and raise fences
  Queue = 1U << 3U,
  Schedule = 1U << 4U,
  Operate = 1U << 5U,  // transfer, revoke, forget
  Admin = 1U << 6U,    // keys
};
using Rights = std::uint8_t;
constexpr Rights operator|(Right a, Right b) {
  return static_cast<Rights>(static_cast<Rights>(a) | static_cast<Rights>(b));
}
constexpr Rights rights(Right one) { return static_cast<Rights>(one); }

std::string_view word(Right right);
std::vector<std::string> words(Rights rights);
// "read,acquire". Errors: Invalid, with the words that there are.
Result<Rights> parse_rights(std::string_view text);

struct Key {
  std::string id;    // 16 hexadecimal digits
  std::string name;  // of who has it: letters, digits, '.', '_', '-'
  std::string hash;  // of the secret
  Rights rights = 0;
  std::vector<std::string> prefixes;  // of resources; empty: all
  WallTime created_at{};
  std::optional<WallTime> expires_at;
  std::optional<WallTime> revoked_at;
  std::optional<WallTime> used_at;  // to the hour
};

struct Key;
struct NewKey {
  std::string name;
  Rights rights = 0;
  std::vector<std::string> prefixes;
  std::optional<Millis> lasts;
  // Whether it may be made beside those that there are: no other comes in between.
  std::function<Status(const std::vector<Key>&)> beside = {};
  // Of the key's id: 32 bytes that only who asks for the key can make again. Under them its secret
  // is kept for who asks again with the same idempotency key; empty: it is not kept.
  std::function<std::string(const std::string& id)> veil = {};
};

// The kept answer of a new key is its JSON with this field in the place of its secret.
constexpr std::string_view kVeiled = ",\"veiled\":\"";
// Either way. REQUIRES: 64 hexadecimal digits, and 32 bytes.
std::string veiled(std::string_view secret, std::string_view veil);

struct CreatedKey {
  Key key;
  std::string secret;  // the whole text; nobody can tell it again
};

// "stint_ID_SECRET", taken apart: parts of the text that was given.
struct ShownKey {
  std::string_view id;
  std::string_view secret;
};
std::optional<ShownKey> parse_shown_key(std::string_view text);
std::string hash_of_secret(std::string_view secret);
// Takes the same time wherever the two differ.
bool is_secret_of(const Key& key, std::string_view secret);
Status check_key_name(std::string_view name);
std::string to_json(const Key& key);  // without its hash

class Keys {
 public:
  virtual ~Keys() = default;
  virtual Result<CreatedKey> create(const NewKey& wanted, const std::string& by) = 0;
  // Also the expired and revoked ones, by name.
  virtual Result<std::vector<Key>> list() = 0;
  // By id, or by a name that only one key in force has. Errors: Invalid. Again is no change.
  virtual Result<Key> revoke(const std::string& id_or_name, const std::string& by) = 0;
  // Notes that it was used, at most once an hour. Unsynced.
  virtual Status used(const Key& key) = 0;
  // Wakes when a key was made or revoked.
  virtual Result<std::unique_ptr<Watch>> watch() = 0;
};

}  // namespace stint::api
