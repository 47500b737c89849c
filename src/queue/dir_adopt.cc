// The directory queue: files that somebody moved in by hand.
#include <cerrno>

#include "base/text.h"
#include "os/files.h"
#include "queue/dir_queue.h"

namespace stint::queue {

// Named like an item, and none of this queue's: another's file that was moved in by hand. An item
// has its notes before it has its name.
bool DirQueue::strange(const QueueFolder& folder, bool proper_id, const Place& place) {
  if (!proper_id) return true;
  os::FileFacts facts;
  return folder.root().facts(cat("about/", place.suffix, "/put"), facts) == ENOENT;
}

// A file that somebody moved into queue/ by hand.
void DirQueue::adopt(const QueueFolder& folder, const core::QueueName& queue,
                     const std::string& name) {
  os::FileFacts facts;
  if (folder.root().facts(cat("queue/", name), facts) != 0) return;
  if (facts.kind != os::FileKind::Regular) return;  // a folder, a link: none of ours
  auto known = config(queue);
  auto now = server_now(folder);
  if (!known || !now) return;
  std::optional<core::ItemId> id;
  {
    const MutexLock lock(mutex_);
    id = ids_.make(queue, 0, clock_.wall(), random_);
  }
  Notes put = notes_of(known->limits);
  put["put_by"] = "by hand";
  put["put_at_ms"] = cat(to_ms(*now));
  put["label0"] = cat("file=", printable(name));
  if (folder.make(cat("about/", id->suffix())) != 0) return;
  if (folder.write(cat("about/", id->suffix(), "/put"), encode(put), nonce()) != 0) return;
  const std::string to = cat("queue/", stem_of(id->suffix(), Token()));
  // Another was first, or it has gone: there is no such item.
  if (folder.rename(cat("queue/", name), to) != 0) folder.remove_all(cat("about/", id->suffix()));
}

}  // namespace stint::queue
