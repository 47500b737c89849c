// `do://` - a store behind the store protocol: a Durable Object, or anything else that answers it.
// See docs/adr/0040.
#pragma once

#include <memory>

#include "store/do/asker.h"
#include "store/module.h"

namespace stint::store::durable {

class DoStore final : public Store {
 public:
  // Asks nothing: the first request finds the store, or makes it.
  static Result<std::unique_ptr<DoStore>> open(const OpenRequest& request, const Clock& clock);

  const Capabilities& capabilities() const override { return capabilities_; }
  const Opening& opening() const override { return opening_; }
  Result<Reading> read(const std::vector<std::string>& keys) override;
  Result<Reading> scan(const ScanRange& range) override;
  Result<CommitAnswer> commit(const std::vector<Step>& steps, Sync sync) override;
  Result<std::unique_ptr<Watch>> watch(std::string_view key) override;
  Result<std::uint64_t> appended(const std::string& prefix) override;
  Result<std::uint64_t> revision() override;
  Result<std::vector<Finding>> examine() override;

 private:
  DoStore(Settings settings, const OpenRequest& request, const Clock& clock);
  Result<boost::json::object> ask(std::string_view route, const Result<std::string>& body,
                                  Twice twice) const;

  const Clock& clock_;
  const Millis timeout_;
  const bool may_create_;
  const Asker asker_;
  const Capabilities capabilities_;
  const Opening opening_;
};

}  // namespace stint::store::durable
