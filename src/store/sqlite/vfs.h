// SQLite's own file layer with two changes: opening a log that is there does not promise to sync
// its directory, and a wait for one who puts the log in order ends when we say so.
//
// SQLite syncs the directory once per process for every log that it *may* have created, which adds
// a disk sync to each short `stint run`. Whoever really creates the log still does it; and on every
// file system of our allow-list the sync of a new file makes its name durable too.
//
// Who finds the log's index in the hands of another does not ask the busy handler: it sleeps a
// hundred times, ten seconds in all, whatever the timeout. Within a PatienceScope it does not sleep
// longer.
#pragma once

#include "base/time.h"

namespace stint::store {

// The name to open databases with; registered on first use.
const char* quiet_vfs();

// How long SQLite may sleep by itself in calls of this thread, while it lives.
class PatienceScope {
 public:
  explicit PatienceScope(Millis longest);
  ~PatienceScope();
  PatienceScope(const PatienceScope&) = delete;
  PatienceScope& operator=(const PatienceScope&) = delete;
};

}  // namespace stint::store
