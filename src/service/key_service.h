// api::Keys on a store. A key is one record, `key/ID`; `keys/changed` is written with every change,
// so that servers can watch it. The secret is never there: its hash is.
#pragma once

#include "api/keys.h"
#include "api/once.h"
#include "base/random.h"
#include "store/seam.h"

namespace stint::service {

constexpr std::string_view kKeyPrefix = "key/";

class KeyService final : public api::Keys {
 public:
  // All must outlive the service. `once`: it is for one request, whose answer is kept in the commit
  // that does what it tells of.
  KeyService(store::Store& store, const Clock& clock, Random& random,
             std::optional<api::Once> once = {})
      : store_(store), clock_(clock), random_(random), once_(std::move(once)) {}

  Result<api::CreatedKey> create(const api::NewKey& wanted, const std::string& by) override;
  Result<std::vector<api::Key>> list() override;
  Result<api::Key> revoke(const std::string& id_or_name, const std::string& by) override;
  Status used(const api::Key& key) override;
  Result<std::unique_ptr<Watch>> watch() override;

 private:
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
};

}  // namespace stint::service
