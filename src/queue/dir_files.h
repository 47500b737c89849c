// The files of a directory queue, as people see them:
//
//   QUEUE/queue.txt                       its limits
//   QUEUE/queue/ITEM.eN                   waiting; the content is the payload
//   QUEUE/later/ITEM.eN.TIME              not before TIME (milliseconds since 1970)
//   QUEUE/claimed/WORKER/ITEM.eN.DEADLINE.NONCE
//   QUEUE/done|failed|parked|cancelled/ITEM.eN
//   QUEUE/staged/ITEM.eN/                 what a completion brings: digest, result, then.*;
//                                         ITEM.eN.TURN until it counts
//   QUEUE/rolling/ITEM.eN                 such a stage may have follow-ups to be moved on
//   QUEUE/about/ITEM/                     notes beside it: put, eN.claim, eN.said.TURN, ...
//   QUEUE/unique/HASH                     the item that has a unique key
//
// Every name is unique in time: a plain rename never replaces anything, and each rename names the
// state that it expects. ENOENT means: somebody else was first.
//
// A claim's NONCE is CLAIM-TURN-CHANCE once something was done to it: each verb gives it a name
// that nobody has seen. Who ends the claim first takes a turn, then writes beside it what it is
// about to do, under that turn, then renames. So what somebody wrote who was stopped, or came too
// late, is known by its lower turn: the highest one is what happened. Where no claim stands any
// more there are no turns: `late`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/queue.h"
#include "os/directory.h"

namespace stint::queue {

// "key value" lines.
using Notes = std::map<std::string, std::string>;
std::string encode(const Notes& notes);
Notes decode_notes(std::string_view text);
// Empty: there is no such key.
std::string text_of(const Notes& notes, const std::string& key);
Notes notes_of(const core::ItemLimits& limits);
Result<core::ItemLimits> limits_of(const Notes& notes);

// Where an item stands: one file's name, taken apart.
struct Place {
  std::string path;  // relative to the queue's folder
  core::ItemState state = core::ItemState::Waiting;
  std::string suffix;
  Token epoch;
  std::optional<std::int64_t> time_ms;  // later/: not before; claimed/: the deadline
  std::string nonce;                    // claimed/: of the claim
  std::uint64_t turn = 0;               // claimed/
  std::string worker;                   // claimed/
};
constexpr std::string_view kLateTurn = "late";
// Under what name the notes of who moves it from there stand.
std::string turn_of(const Place& place);
// The same claim's next name, with that deadline.
std::string next_turn(const Place& place, std::int64_t deadline_ms, const std::string& chance);

// Empty: not one of ours.
std::optional<Place> parse_place(const std::string& folder, const std::string& worker,
                                 const std::string& name);
// The same, by the path within the queue.
std::optional<Place> place_of(const std::string& path);
// about/ITEM/eN.WHAT
std::string note_path(const Place& place, std::uint64_t epoch, std::string_view what);
std::string_view folder_of(core::ItemState state);
std::string stem_of(const std::string& suffix, Token epoch);  // ITEM.eN
// A label as a folder's name.
std::string worker_folder(const Owner& owner);

// One queue's folder, for one call. Every call answers with an errno, or keeps it: what could not
// be looked at is not "not there".
class QueueFolder {
 public:
  static Status make_root(const std::string& path);
  static int open(const std::string& path, bool create, QueueFolder& out);

  // The first errno of all looks so far that does not say that something is absent; zero: none. Who
  // says that something is not there, or decides by that, asks this first.
  int fault() const { return fault_; }
  // The same as an error: nothing was changed because of it.
  Status sound() const;

  int read(const std::string& path, std::string& content) const;
  std::optional<Notes> notes(const std::string& path) const;
  // Written whole beside it, synced, then put in place.
  int write(const std::string& path, std::string_view content, const std::string& nonce) const;
  // The same; EEXIST if it is there.
  int write_new(const std::string& path, std::string_view content, const std::string& nonce) const;
  // An empty file; its name is not synced.
  int mark(const std::string& path) const;
  int rename(const std::string& from, const std::string& to) const;
  // The name that a file has now survives a power cut.
  int sync_parent(const std::string& path) const;
  int make(const std::string& path) const;
  int remove(const std::string& path) const;
  // A folder of files, and the files.
  void remove_all(const std::string& path) const;
  bool there(const std::string& path) const;
  std::vector<std::string> list(const std::string& path) const;  // sorted; empty: not there
  // The server's clock when the file last changed.
  std::optional<Nanos> changed(const std::string& path) const;
  // The file server's present time.
  Result<Nanos> server_now(const std::string& nonce) const;
  const os::Directory& root() const { return root_; }
  // Written and synced, not in place yet; gone again if that failed.
  int stage(const std::string& path, std::string_view content) const;

 private:
  int looked(int error) const;
  os::Directory root_;
  mutable int fault_ = 0;
};

}  // namespace stint::queue
