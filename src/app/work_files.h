// What a child of `work` is told: what a child of `run` is told, and its item.
#pragma once

#include <string>
#include <vector>

#include "api/queue.h"
#include "app/run_files.h"

namespace stint::app {

class WorkFiles {
 public:
  WorkFiles(const Environment& environment, const Settings& settings, const Clock& clock,
            Random& random);
  ~WorkFiles();  // removes its files
  WorkFiles(const WorkFiles&) = delete;
  WorkFiles& operator=(const WorkFiles&) = delete;

  // Of the item at hand; the one before is gone with it.
  Result<std::string> payload_file(const api::ClaimedItem& claimed);
  // `request`: owner, ancestral, and the resource of --with, if any.
  Result<std::vector<std::string>> environment(const holder::RunRequest& request,
                                               const api::ClaimedItem& claimed,
                                               const holder::Taken& with,
                                               const std::string& payload_file,
                                               const Generation& generation, MonoTime deadline);
  void deadline(MonoTime deadline) { files_.deadline(deadline); }
  std::vector<std::string> own_files() const;  // that go with the worker

 private:
  RunFiles files_;
  std::string payload_;
  std::string checkpoint_;
};

}  // namespace stint::app
