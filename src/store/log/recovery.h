// What the disk says: the snapshot, with the log replayed over it up to where the log ends.
//
// A log that was cut short by a crash ends in something unfinished, which is left out: nobody was
// told that it was done. Something that is missing or damaged although it was synced once is
// another matter: that store is refused, and nothing in it is changed.   G11
#pragma once

#include <string>
#include <vector>

#include "os/directory.h"
#include "store/log/entry.h"
#include "store/log/segment.h"
#include "store/log/snapshot.h"
#include "store/log/table.h"

namespace stint::store::log {

struct Recovered {
  Table table;
  std::vector<BootRow> boots;
  Mark mark;
  Place from;  // of the snapshot
  std::uint64_t snapshot_bytes = 0;
  Place end;                           // what comes next goes here
  Segment segment;                     // the one that the log ends in
  std::string unsynced;                // its bytes that nobody knows to be synced, up to the end
  std::uint64_t log_bytes = 0;         // that were replayed
  std::vector<std::uint64_t> older;    // segments that are not needed
  std::vector<std::uint64_t> further;  // behind the end: made ahead of need
};

// `boot_id`: the machine's present one.
Result<Recovered> recover(const os::Directory& root, const std::string& path,
                          std::string_view boot_id);

// Whether any entry stands in the segments: then a snapshot that is missing was lost.
Result<bool> any_entry(const os::Directory& root, const std::string& path);

}  // namespace stint::store::log
