// SQLite's own file layer with one change: opening a log that is there does not promise to sync its
// directory.
//
// SQLite syncs the directory once per process for every log that it *may* have created, which adds a
// disk sync to each short `stint run`. Whoever really creates the log still does it; and on every file
// system of our allow-list the sync of a new file makes its name durable too.
#pragma once

namespace stint::store {

// The name to open databases with; registered on first use.
const char* quiet_vfs();

}  // namespace stint::store
