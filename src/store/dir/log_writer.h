// Putting one commit into the log: written, synced, linked under its number, and looked at again.
#pragma once

#include "store/dir/place.h"

namespace stint::store::dir {

struct Placed {
  enum class Kind {
    Linked,  // it has its number, and the number below is the one that it was written for
    Beaten,  // another has the number
    Stray,   // the number below, or its own, is gone: very many others came since, and it is one of
             // them, or stands in a number that came free again, or was never linked
    Unknown,  // it may or may not have it
    Failed,   // it has none
  };
  Kind kind = Kind::Failed;
  os::FileFacts facts;  // Linked
  Error error;          // Unknown, Failed
};

// `below` is the file with the number before, as it was read.
Placed put_in_place(const Place& place, Staged& staged, const LogFile& file,
                    const os::FileFacts& below);

}  // namespace stint::store::dir
