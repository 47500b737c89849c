#include "service/key_service.h"

#include <algorithm>

#include "base/text.h"
#include "service/ledger.h"
#include "service/once_records.h"
#include "service/record_fields.h"
#include "service/settling.h"

namespace stint::service {
namespace {

constexpr std::string_view kChangedKey = "keys/changed";
constexpr std::size_t kMostPrefixes = 16;
constexpr int kMostKeyTries = 100;

std::string encode_key(const api::Key& key) {
  json::object out;
  out["name"] = key.name;
  out["hash"] = key.hash;
  json::array allow;
  for (const std::string& word : api::words(key.rights)) allow.emplace_back(word);
  out["allow"] = std::move(allow);
  json::array prefixes;
  for (const std::string& prefix : key.prefixes) prefixes.emplace_back(prefix);
  out["prefixes"] = std::move(prefixes);
  out["created_at_ms"] = to_ms(key.created_at);
  if (key.expires_at) out["expires_at_ms"] = to_ms(*key.expires_at);
  if (key.revoked_at) out["revoked_at_ms"] = to_ms(*key.revoked_at);
  if (key.used_at) out["used_at_ms"] = to_ms(*key.used_at);
  return json::serialize(out);
}

Result<api::Key> decode(std::string id, std::string_view value) {
  Fields fields("key", value);
  for (const char* name : {"name", "hash", "allow", "prefixes", "created_at_ms"})
    fields.require(name);
  api::Key key{.id = std::move(id),
               .name = fields.text("name"),
               .hash = fields.text("hash"),
               .rights = 0,
               .prefixes = fields.texts("prefixes"),
               .created_at = fields.moment("created_at_ms").value_or(WallTime{}),
               .expires_at = fields.moment("expires_at_ms"),
               .revoked_at = fields.moment("revoked_at_ms"),
               .used_at = fields.moment("used_at_ms")};
  for (const std::string& word : fields.texts("allow")) {
    // A right that this version does not know is not given.
    if (auto right = api::parse_rights(word))
      key.rights = static_cast<api::Rights>(key.rights | *right);
  }
  return fields.done(std::move(key));
}

store::Step set_key(const api::Key& key, store::Version seen) {
  store::Step step;
  step.kind = store::Step::Kind::Set;
  step.key = cat(kKeyPrefix, key.id);
  step.expect = seen == 0 ? store::Expect::Absent : store::Expect::Seen;
  step.version = seen;
  step.value = encode_key(key);
  return step;
}

store::Step changed(Random& random) {
  store::Step step;
  step.kind = store::Step::Kind::Set;
  step.key = kChangedKey;
  step.value = cat("{\"change\":\"", random.id_hex(), "\"}");
  return step;
}

store::Step told(std::string kind, const api::Key& key, const std::string& by, WallTime now) {
  api::Event event;
  event.at = now;
  event.kind = std::move(kind);
  event.details.emplace_back("key", key.name);
  event.details.emplace_back("key_id", key.id);
  if (!by.empty()) event.details.emplace_back("by", by);
  return append_event(event);
}

Status check(const api::NewKey& wanted) {
  if (auto ok = api::check_key_name(wanted.name); !ok) return ok;
  if (wanted.rights == 0) return invalid("a key that allows nothing is of no use");
  if (wanted.prefixes.size() > kMostPrefixes) {
    return invalid(cat("a key has at most ", kMostPrefixes, " prefixes"));
  }
  for (const std::string& prefix : wanted.prefixes) {
    if (auto name = ResourceName::parse(prefix); !name) {
      return std::move(name.error()).during("reading a prefix");
    }
  }
  return {};
}

bool in_force(const api::Key& key, WallTime now) {
  return !key.revoked_at && (!key.expires_at || *key.expires_at > now);
}

}  // namespace

// `changed` is written with every key: whoever expects it as it was before the look at the keys has
// seen them all.
Result<api::CreatedKey> KeyService::create(const api::NewKey& wanted, const std::string& by) {
  if (auto ok = check(wanted); !ok) return ok.error();
  for (int tries = 0; tries < kMostKeyTries; ++tries) {
    auto before = store_.read({std::string(kChangedKey)});
    if (!before) return before.error();
    if (wanted.beside) {
      auto keys = list();
      if (!keys) return keys.error();
      if (auto ok = wanted.beside(*keys); !ok) return ok.error();
    }
    auto made = try_create(wanted, by, before->entries.front());
    if (!made) return std::move(made.error()).during("making the key");
    if (*made) return std::move(**made);
  }
  return unavailable("the keys change too fast for another one to be made");
}

// Empty: another key was made or revoked in between.
Result<std::optional<api::CreatedKey>> KeyService::try_create(const api::NewKey& wanted,
                                                              const std::string& by,
                                                              const store::Entry& before) {
  const std::string secret = random_.id_hex() + random_.id_hex();
  const WallTime now = clock_.wall();
  api::Key key{.id = random_.id_hex().substr(0, 16),
               .name = wanted.name,
               .hash = api::hash_of_secret(secret),
               .rights = wanted.rights,
               .prefixes = wanted.prefixes,
               .created_at = now,
               .expires_at = std::nullopt,
               .revoked_at = std::nullopt,
               .used_at = std::nullopt};
  if (wanted.lasts) key.expires_at = now + *wanted.lasts;
  store::Step change = changed(random_);
  change.expect = before.present() ? store::Expect::Seen : store::Expect::Absent;
  change.version = before.version;
  auto answer =
      Keeper(store_, clock_, once_)
          .commit({set_key(key, 0), std::move(change), told("key_created", key, by, now)},
                  store::Sync::Durable, [&] {
                    std::string body = api::to_json(key);
                    if (!wanted.veil) return body;
                    body.pop_back();
                    return cat(body, api::kVeiled, api::veiled(secret, wanted.veil(key.id)), "\"}");
                  });
  if (!answer) return answer.error();
  if (std::holds_alternative<store::Conflict>(*answer)) return std::optional<api::CreatedKey>();
  remember(key);
  return std::optional(api::CreatedKey{key, cat("stint_", key.id, "_", secret)});
}

Result<std::vector<KeyService::Found>> KeyService::all() {
  std::vector<Found> out;
  std::string after;
  while (true) {
    auto reading = store_.scan(
        {.prefix = std::string(kKeyPrefix), .after = after, .limit = kPage, .backwards = false});
    if (!reading) return reading.error();
    for (const store::Entry& entry : reading->entries) {
      auto key = decode(entry.key.substr(kKeyPrefix.size()), entry.value);
      if (!key) return key.error();
      out.push_back({std::move(*key), entry.version});
    }
    if (reading->entries.size() < kPage) return out;
    after = reading->entries.back().key;
  }
}

Result<std::vector<api::Key>> KeyService::list() {
  auto found = all();
  if (!found) return found.error();
  std::vector<api::Key> out;
  for (Found& one : *found) out.push_back(std::move(one.key));
  std::ranges::stable_sort(out, {}, &api::Key::name);
  return out;
}

Result<KeyService::Found> KeyService::only(const std::string& id_or_name) {
  auto found = all();
  if (!found) return found.error();
  const WallTime now = clock_.wall();
  std::vector<Found> meant;
  for (const Found& one : *found) {
    if (one.key.id == id_or_name) return one;
    if (one.key.name == id_or_name && in_force(one.key, now)) meant.push_back(one);
  }
  if (meant.size() == 1) return meant.front();
  return invalid(meant.empty() ? cat("there is no key ", quoted(id_or_name), " in force")
                               : cat("several keys are called ", quoted(id_or_name),
                                     ": name one by its id (stint key ls)"));
}

Result<api::Key> KeyService::revoke(const std::string& id_or_name, const std::string& by) {
  const Keeper keeper(store_, clock_, once_);
  for (int tries = 0; tries < kMostKeyTries; ++tries) {
    auto found = only(id_or_name);
    if (!found) return found.error();
    const auto write = [&] { return api::to_json(found->key); };
    if (found->key.revoked_at) {
      if (auto kept = keeper.keep(write); !kept) return kept.error();
      return found->key;
    }
    const WallTime now = clock_.wall();
    found->key.revoked_at = now;
    auto answer = keeper.commit({set_key(found->key, found->version), changed(random_),
                                 told("key_revoked", found->key, by, now)},
                                store::Sync::Durable, write);
    if (!answer) return std::move(answer.error()).during("revoking the key");
    if (std::holds_alternative<store::Committed>(*answer)) {
      remember(found->key);
      return found->key;
    }
  }
  return unavailable("the key changes too fast to be revoked");
}

void KeyService::remember(const api::Key& key) const {
  if (anchors_ == nullptr) return;
  const auto known = anchors_->recall();
  if (!known || !*known) return;
  anchors_->remember_key({(*known)->generation, key.revoked_at.has_value(), key.id, key.name});
}

Result<KeysSince> settle_keys(store::Store& store, const Clock& clock, Random& random,
                              Anchors& anchors, const std::string& by, bool revoke) {
  auto life = read_life(store);
  if (!life) return life.error();
  auto notes = anchors.keys();
  if (!notes) return notes.error();
  KeyService service(store, clock, random);
  auto there = service.list();
  if (!there) return there.error();
  KeysSince since;
  for (const KeyNote& note : *notes) {
    const std::string words = cat(note.id, " (", note.name, ")");
    const auto key = std::ranges::find(*there, note.id, &api::Key::id);
    if (key == there->end()) {
      const bool ours = *life && in_line((*life)->meta, note.generation);
      if (ours && !note.revoked) since.gone.push_back(words);
    } else if (note.revoked && in_force(*key, clock.wall())) {
      if (revoke) {
        if (auto done = service.revoke(note.id, by); !done) return done.error();
        key->revoked_at = clock.wall();
      }
      since.revoked.push_back(words);
    }
  }
  return since;
}

Status KeyService::used(const api::Key& key) {
  auto reading = store_.read({cat(kKeyPrefix, key.id)});
  if (!reading) return reading.error();
  const store::Entry& entry = reading->entries.front();
  if (!entry.present()) return {};
  auto present = decode(key.id, entry.value);
  if (!present) return present.error();
  const WallTime now = clock_.wall();
  if (present->used_at && now - *present->used_at < std::chrono::hours(1)) return {};
  present->used_at = now;
  // Somebody else's note, or a revocation, in between is as good.
  auto answer = store_.commit({set_key(*present, entry.version)}, store::Sync::Relaxed);
  if (!answer) return answer.error();
  return {};
}

Result<std::unique_ptr<Watch>> KeyService::watch() { return store_.watch(kChangedKey); }

}  // namespace stint::service
