// api::Keys on a store. A key is one record, `key/ID`; `keys/changed` is written with every change,
// so that servers can watch it. The secret is never there: its hash is.
#pragma once

#include "api/keys.h"
#include "api/once.h"
#include "base/random.h"
#include "service/store_life.h"
#include "store/seam.h"

namespace stint::service {

constexpr std::string_view kKeyPrefix = "key/";

class KeyService final : public api::Keys {
 public:
  // All must outlive the service. `once`: it is for one request, whose answer is kept in the commit
  // that does what it tells of.
  KeyService(store::Store& store, const Clock& clock, Random& random,
             std::optional<api::Once> once = {}, Anchors* anchors = nullptr)
      : store_(store), clock_(clock), random_(random), once_(std::move(once)), anchors_(anchors) {}

  Result<api::CreatedKey> create(const api::NewKey& wanted, const std::string& by) override;
  Result<std::vector<api::Key>> list() override;
  Result<api::Key> revoke(const std::string& id_or_name, const std::string& by) override;
  Status used(const api::Key& key) override;
  Result<std::unique_ptr<Watch>> watch() override;

 private:
  void remember(const api::Key& key) const;
  struct Found {
    api::Key key;
    store::Version version = 0;
  };
  Result<std::vector<Found>> all();
  Result<Found> only(const std::string& id_or_name);
  Result<std::optional<api::CreatedKey>> try_create(const api::NewKey& wanted,
                                                    const std::string& by,
                                                    const store::Entry& before);

  store::Store& store_;
  const Clock& clock_;
  Random& random_;
  const std::optional<api::Once> once_;
  Anchors* const anchors_;  // null: nobody remembers what becomes of keys
};

// What became of the keys since the store was as it is now, as this machine remembers it.   G12
struct KeysSince {
  std::vector<std::string> revoked;  // revoked since, and in force again: ids and names
  std::vector<std::string> gone;     // made since: nobody has them any more
};
// `revoke`: those that are in force again are revoked anew.
Result<KeysSince> settle_keys(store::Store& store, const Clock& clock, Random& random,
                              Anchors& anchors, const std::string& by, bool revoke);

}  // namespace stint::service
