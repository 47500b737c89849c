// Stint's own files, under $XDG_STATE_HOME/stint: claims, anchors, and what a running child is
// told.
#pragma once

#include <optional>
#include <string>

#include "api/leases.h"
#include "app/environment.h"
#include "app/store_url.h"
#include "os/files.h"

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

}  // namespace stint::app
