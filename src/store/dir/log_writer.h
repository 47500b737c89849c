// Putting one commit into the log: written, synced, linked under its number, and looked at again.
#pragma once

#include "store/dir/place.h"

namespace stint::store::dir {

struct Placed {
  enum class Kind {
    Linked,   // it has its number, and the number below is the one that it was written for
    Beaten,   // another has the number, or the name under which it was staged is gone
    Stray,    // it has its number, but the one below is gone: perhaps a number that came free again
    Unknown,  // it may or may not have it
    Failed,   // it has none
  };
  Kind kind = Kind::Failed;
  os::FileFacts facts;  // Linked, Stray
  Error error;          // Unknown, Failed
};

// `below` is the file with the number before, as it was read.
Placed put_in_place(const Place& place, Staged& staged, const LogFile& file,
                    const os::FileFacts& below);

}  // namespace stint::store::dir
