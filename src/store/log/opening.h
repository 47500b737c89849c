// Opening a log: store: the directory, who has it, what the disk says, and under which boot.
#pragma once

#include <memory>
#include <string>

#include "os/clock.h"
#include "os/directory.h"
#include "os/files.h"
#include "store/log/log_store.h"
#include "store/log/recovery.h"
#include "store/log/writer.h"

namespace stint::store::log {

// The directory, for as long as this process has it to itself.
struct Ground {
  std::string path;
  std::string lock_path;
  os::Directory root;
  os::Fd lock;
  os::FileFacts lock_facts;
  bool created = false;

  // The path still leads to the lock that is held: whoever else opens it meets the lock.
  bool in_place() const;
};

// Makes the store if it is missing and that is allowed. Code::Unavailable: another process has it.
Result<std::unique_ptr<Ground>> take_ground(const LogOptions& options, Nanos now);

// What the store's life says about the boot that it is opened under. `changed`: it is to be
// written.
struct Entered {
  Opening opening;
  bool changed = false;
};
Result<Entered> enter(Recovered& recovered, const LogOptions& options, Nanos now);

}  // namespace stint::store::log
