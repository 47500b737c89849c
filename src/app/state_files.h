// Stint's own files, under $XDG_STATE_HOME/stint: claims, anchors, and what a running child is
// told.
#pragma once

#include <optional>
#include <string>

#include "api/leases.h"
#include "app/environment.h"
#include "app/store_url.h"
#include "base/mutex.h"
#include "os/files.h"
#include "service/store_life.h"

namespace stint::app {

// $XDG_STATE_HOME/stint, else ~/.local/state/stint. An error if there is neither.
Result<std::string> state_directory(const Environment& environment);
Result<std::string> config_file(const Environment& environment);

// What `acquire` leaves for a later `renew`, `release` or `check` on this machine. Mode 0600.
class Claims {
 public:
  Claims(std::string directory, std::string store)
      : directory_(std::move(directory)), store_(std::move(store)) {}
  Status keep(const api::Grip& grip) const;
  // Empty: none is known here.
  Result<std::optional<api::Grip>> find(const ResourceName& resource, Token token) const;
  void drop(const ResourceName& resource, Token token) const;

 private:
  std::string path(const ResourceName& resource, Token token) const;
  std::string directory_;
  std::string store_;
};

// The last generation and revision seen of one store. Thread safety: any thread.
class AnchorFile final : public service::Anchors {
 public:
  AnchorFile(const std::string& directory, std::string_view store);
  Result<std::optional<service::Anchor>> recall() override;
  void remember(const service::Anchor& anchor) override;

 private:
  void write(const service::Anchor& anchor);
  std::string directory_;
  std::string path_;
  Mutex mutex_;
  std::optional<service::Anchor> last_ GUARDED_BY(mutex_);
  bool writing_ GUARDED_BY(mutex_) = false;  // one thread writes what the others bring meanwhile
  bool changed_ GUARDED_BY(mutex_) = false;
  os::FixedFile file_;  // the writing thread's; kept open: a grant costs one system call
};

}  // namespace stint::app
