// One more opening of a store that can be opened only once: passes everything on.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/seam.h"

namespace stint::store {

class SharedStore : public Store {
 public:
  explicit SharedStore(std::shared_ptr<Store> store) : store_(std::move(store)) {}
  const Capabilities& capabilities() const override { return store_->capabilities(); }
  const Opening& opening() const override { return store_->opening(); }
  Result<Reading> read(const std::vector<std::string>& keys) override { return store_->read(keys); }
  Result<Reading> scan(const ScanRange& range) override { return store_->scan(range); }
  Result<CommitAnswer> commit(const std::vector<Step>& steps, Sync sync) override {
    return store_->commit(steps, sync);
  }
  Result<std::unique_ptr<Watch>> watch(std::string_view key) override { return store_->watch(key); }
  Result<std::vector<Finding>> examine() override { return store_->examine(); }
  Status accept() override { return store_->accept(); }
  Result<std::uint64_t> appended(const std::string& prefix) override {
    return store_->appended(prefix);
  }
  Result<std::uint64_t> revision() override { return store_->revision(); }

 private:
  std::shared_ptr<Store> store_;  // shared: every opening is the same store
};

}  // namespace stint::store
