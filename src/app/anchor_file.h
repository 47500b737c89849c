// What this machine remembers of a store, outside of it: its generation, how far it had come, and
// the newest token that was given from here.   G12
//
// One file a generation, whatever the store is called: `anchors/GENERATION`. Each address that led
// there is another name of that file (a link), so that all of them remember the same, and so that
// an address whose store is gone, or another one, is noticed.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "os/files.h"
#include "service/store_life.h"

namespace stint::app {

// Thread safety: any thread.
class AnchorFile final : public service::Anchors {
 public:
  // For this process alone: there is no place to keep it.
  AnchorFile() = default;
  AnchorFile(const std::string& directory, std::string_view store);
  Result<std::optional<service::Anchor>> recall() override;
  void remember(const service::Anchor& anchor) override;
  Result<bool> meet(const Generation& generation) override;
  // Of all stores together, in `anchors/keys`: a key's id is never used twice.
  void remember_key(const service::KeyNote& note) override;
  Result<std::vector<service::KeyNote>> keys() override;

 private:
  std::string path_of(const Generation& generation) const;
  Result<std::optional<service::Anchor>> read(os::FixedFile& file, const std::string& path)
      REQUIRES(mutex_);
  Status look() REQUIRES(mutex_);
  void write(const service::Anchor& anchor, bool linked);
  const std::string directory_ = {};  // empty: nothing is kept
  const std::string place_ = {};
  Mutex mutex_;
  std::optional<service::Anchor> last_ GUARDED_BY(mutex_);
  // The place is a name of this generation's file.
  std::optional<Generation> linked_ GUARDED_BY(mutex_);
  // What others of the machine write is read before each look at the store: kept open, one system
  // call, and told by its bytes whether it is new. The one file operation under the lock.
  os::FixedFile seen_ GUARDED_BY(mutex_);
  std::string seen_path_ GUARDED_BY(mutex_) = place_;
  std::string seen_text_ GUARDED_BY(mutex_);
  bool writing_ GUARDED_BY(mutex_) = false;  // one thread writes what the others bring meanwhile
  bool changed_ GUARDED_BY(mutex_) = false;
  os::FixedFile file_;  // the writing thread's; kept open: a grant costs one system call
};

}  // namespace stint::app
