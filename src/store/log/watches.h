// Who waits for a change of which record, within this process.
//
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/result.h"
#include "base/watch.h"
#include "os/fd.h"

namespace stint::store::log {

class Watches {
 public:
  // Errors: out of descriptors.
  static Result<std::unique_ptr<Watch>> add(const std::shared_ptr<Watches>& all,
                                            std::string_view key);
  void wake(std::string_view key);
  bool anyone() const;

 private:
  class Registered;
  using All = std::multimap<std::string, os::EventFd*, std::less<>>;

  mutable Mutex mutex_;
  All all_ GUARDED_BY(mutex_);
};

}  // namespace stint::store::log
