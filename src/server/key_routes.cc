// The keys, over HTTP. An admin key with prefixes has to do with keys within them alone.
#include <algorithm>

#include "base/sha256.h"
#include "base/text.h"
#include "server/routes.h"

namespace stint::server {
namespace {

// Nobody gives away more than they have: neither rights nor reach nor time.
Status check_within(const api::NewKey& wanted, const Caller& maker, WallTime now) {
  if (!maker.key) return {};
  if ((wanted.rights & ~maker.key->rights) != 0) {
    return Error{Code::Denied, "a key cannot allow what the key that makes it may not do"};
  }
  if (!maker.key->prefixes.empty() && wanted.prefixes.empty()) {
    return Error{Code::Denied, cat("the key ", quoted(maker.name()),
                                   " has prefixes: what it makes needs 'prefixes' within them")};
  }
  for (const std::string& prefix : wanted.prefixes) {
    if (!maker.reaches(prefix)) return out_of_reach(maker, prefix);
  }
  const auto& end = maker.key->expires_at;
  if (end && (!wanted.lasts || *wanted.lasts > *end - now)) {
    return Error{Code::Denied, cat("the key ", quoted(maker.name()), " ends at ", format_utc(*end),
                                   ": what it makes needs an 'expires_in_ms' that ends no later")};
  }
  return {};
}

bool limited(const Caller& caller) { return caller.key && !caller.key->prefixes.empty(); }

bool within_reach(const Caller& caller, const api::Key& key) {
  if (!limited(caller)) return true;
  return !key.prefixes.empty() && std::ranges::all_of(key.prefixes, [&](const std::string& prefix) {
    return caller.reaches(prefix);
  });
}

bool in_force(const api::Key& key, WallTime now) {
  return !key.revoked_at && (!key.expires_at || *key.expires_at > now);
}

// Whoever has a key of that name is that somebody: owner of their leases, heir of what is reserved
// for them. So a name is given twice only by who reaches everything.
Status check_name_is_free(const Request& request, const std::string& name,
                          const std::vector<api::Key>& keys) {
  const WallTime now = request.clock.wall();
  const bool taken = std::ranges::any_of(keys, [&](const api::Key& key) {
    return key.name == name && (in_force(key, now) || !within_reach(request.caller, key));
  });
  if (!taken) return {};
  return Error{Code::Denied,
               cat("there is a key ", quoted(name), ", and the key ", quoted(request.caller.name()),
                   " has prefixes: a second one of a name needs an 'admin' without")};
}

// What the secret of a new key is kept under for who asks again: made of what the store has only
// as hashes, and never of the same twice, since each key has its own id.
std::string veil_of(const Request& request, const std::string& id) {
  return sha256(cat("new key\n", request.caller.bearer, "\n", request.once_key, "\n", id));
}

// The key to revoke, by its id where it was looked at.
Result<std::string> within_reach(const Request& request, const std::string& id_or_name) {
  if (!limited(request.caller)) return id_or_name;
  auto keys = request.serve.backend.keys->list();
  if (!keys) return keys.error();
  const WallTime now = request.clock.wall();
  std::string found;
  for (const api::Key& key : *keys) {
    const bool meant = key.id == id_or_name || (key.name == id_or_name && in_force(key, now));
    if (!meant) continue;
    if (!within_reach(request.caller, key)) {
      return Error{Code::Denied,
                   cat("the key ", quoted(request.caller.name()), " has prefixes, and ",
                       quoted(id_or_name), " is a key that reaches beyond them")};
    }
    if (!found.empty()) return id_or_name;  // several: the answer says so
    found = key.id;
  }
  return found.empty() ? id_or_name : found;
}

}  // namespace

Answer list_keys(Request& request) {
  auto keys = request.serve.backend.keys->list();
  if (!keys) return fault_answer(keys.error());
  std::erase_if(*keys, [&](const api::Key& key) { return !within_reach(request.caller, key); });
  std::string out = "{\"keys\":[";
  for (const api::Key& key : *keys) out += cat(&key == keys->data() ? "" : ",", api::to_json(key));
  return ok(out + "]}");
}

Answer create_key(Request& request) {
  JsonFields in(request.body);
  in.require("name");
  in.require("allow");
  api::NewKey wanted{.name = in.text("name"),
                     .rights = 0,
                     .prefixes = in.texts("prefixes"),
                     .lasts = in.maybe_millis("expires_in_ms")};
  for (const std::string& word : in.texts("allow")) {
    auto right = api::parse_rights(word);
    if (!right) return fault_answer(right.error());
    wanted.rights = static_cast<api::Rights>(wanted.rights | *right);
  }
  in.refuse_others();
  if (auto fine = in.done(); !fine) return fault_answer(fine.error());
  if (auto fine = check_within(wanted, request.caller, request.clock.wall()); !fine) {
    return fault_answer(fine.error());
  }
  if (limited(request.caller)) {
    wanted.beside = [&](const std::vector<api::Key>& keys) {
      return check_name_is_free(request, wanted.name, keys);
    };
  }
  // Who shows no key could be anybody, and what they call their request can be guessed.
  if (request.once && request.caller.key) {
    wanted.veil = [&](const std::string& id) { return veil_of(request, id); };
  }
  auto made = request.keys().create(wanted, request.caller.name());
  if (!made) return fault_answer(made.error());
  std::string out = api::to_json(made->key);
  out.pop_back();
  return ok(cat(out, ",\"secret\":\"", made->secret, "\"}"));
}

Result<std::string> with_secret(const Request& request, std::string kept) {
  const std::size_t at = kept.rfind(api::kVeiled);
  auto parsed = JsonValue::parse(kept);
  if (!parsed) return unavailable("the store holds a damaged once record");
  JsonFields in(*parsed);
  const std::string id = in.text("id");
  const std::string secret = in.text("veiled");
  if (at == kept.npos || secret.empty()) {
    return Error{Code::Denied,
                 "this key was made for a request without a key: its secret was told once. Revoke "
                 "it, and make another"};
  }
  kept.resize(at);
  return cat(kept, ",\"secret\":\"stint_", id, "_", api::veiled(secret, veil_of(request, id)),
             "\"}");
}

Answer revoke_key(Request& request) {
  JsonFields in(request.body);
  in.require("key");
  const std::string which = in.text("key");
  in.refuse_others();
  if (auto fine = in.done(); !fine) return fault_answer(fine.error());
  auto meant = within_reach(request, which);
  if (!meant) return fault_answer(meant.error());
  auto key = request.keys().revoke(*meant, request.caller.name());
  if (!key) return fault_answer(key.error());
  return ok(api::to_json(*key));
}

}  // namespace stint::server
