#include "server/gatekeeper.h"

#include "base/text.h"
#include "server/answers.h"

namespace stint::server {
namespace {

Answer refused(std::string message) {
  Answer out = error_answer(401, {Code::Denied, std::move(message)});
  out.fields.push_back({"WWW-Authenticate", "Bearer"});
  return out;
}

}  // namespace

Result<std::shared_ptr<const Gatekeeper::Table>> Gatekeeper::read() const {
  auto out = std::make_shared<Table>();
  if (serve_.backend.keys == nullptr) return std::shared_ptr<const Table>(out);
  auto keys = serve_.backend.keys->list();
  if (!keys) return keys.error();
  for (api::Key& key : *keys) {
    const std::string id = key.id;
    out->emplace(id, std::make_shared<const api::Key>(std::move(key)));
  }
  return std::shared_ptr<const Table>(out);
}

std::variant<Caller, net::http::Answer> Gatekeeper::admit(
    const net::http::RequestHead& head) const {
  if (!asks()) return Caller{};
  const auto shown = head.fields.all("Authorization");
  constexpr std::string_view kScheme = "Bearer ";
  if (shown.size() != 1 || !shown.front().starts_with(kScheme)) {
    return refused(
        "this server needs a key: send 'Authorization: Bearer KEY' (stint takes it from STINT_KEY "
        "or STINT_KEY_FILE)");
  }
  const std::string_view bearer = shown.front().substr(kScheme.size());
  const auto parsed = api::parse_shown_key(bearer);
  const auto found = parsed ? keys_->find(parsed->id) : keys_->end();
  // One answer for all that is wrong with it: nothing is learnt by guessing.
  if (found == keys_->end() || !api::is_secret_of(*found->second, parsed->secret)) {
    return refused("this key is not known here");
  }
  const api::Key& key = *found->second;
  if (key.revoked_at) return refused(cat("the key ", quoted(key.name), " was revoked"));
  if (key.expires_at && *key.expires_at <= clock_.wall()) {
    return refused(cat("the key ", quoted(key.name), " has expired: ask for a new one"));
  }
  return Caller{found->second, std::string(bearer)};
}

bool Gatekeeper::within_rate(const Caller& caller) {
  const auto rate = static_cast<double>(serve_.limits.rate);
  if (serve_.limits.rate == 0 || !caller.key) return true;
  const MonoTime now = clock_.mono();
  Bucket& bucket = buckets_[caller.key->id];
  if (bucket.at == MonoTime{}) bucket.left = rate;
  bucket.left =
      std::min(rate, bucket.left + std::chrono::duration<double>(now - bucket.at).count() * rate);
  bucket.at = now;
  if (bucket.left < 1) return false;
  bucket.left -= 1;
  return true;
}

}  // namespace stint::server
