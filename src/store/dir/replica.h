// What one process knows of the log: reads it forward, number by number, and judges each commit as
// everybody does.
//
// Three rules make this safe without any lock:
// - A number is believed only if the number known before it is still there afterwards. Old numbers
//   are removed from the lowest up and never the newest; so while the one below stands, nothing
//   above it was removed, and a number that came free again can be told from a new one.
// - A commit that demanded a running timer is void if its file got its name too late. Until the
//   next number says how it was judged, its ctime does; nothing of ours changes that ctime before
//   the next number is there.
// - What was read and is gone, or has another predecessor, means that the store went back in time.
//
// Thread safety: none; its owner has a lock, which is this connection's.
#pragma once

#include "store/dir/place.h"
#include "store/dir/state.h"

namespace stint::store::dir {

constexpr std::size_t kMostFileBytes = 64U << 20U;

class Replica {
 public:
  explicit Replica(const Place& place) : place_(place) {}

  // To the newest commit that can be seen.
  Status refresh();
  // A commit of this process that was linked right after last(); true: it counts.
  Result<bool> apply_own(LogFile file, const os::FileFacts& facts);
  // Everything is read anew at the next refresh.
  void forget() { loaded_ = false; }

  const State& state() const { return state_; }
  Number last() const { return last_.number; }
  Nonce nonce() const { return last_.nonce; }
  bool last_void() const { return last_void_; }
  const os::FileFacts& last_facts() const { return last_facts_; }
  const Identity& identity() const { return identity_; }
  const std::deque<Nonce>& nonces() const { return nonces_; }
  // The number whose file holds the base in force.
  Number base_at() const { return base_at_; }
  // The same, of the base whose tables are used; older where the newest could not be opened.
  Number based_on() const { return based_on_; }
  // Changes when a judgement was changed by a later commit, or all was read anew: a copy of the
  // state from before may be wrong.
  std::uint64_t flips() const { return flips_; }

  // The file with that number, or nothing; an error if it is damaged.
  struct Found {
    LogFile file;
    os::FileFacts facts;
  };
  Result<std::optional<Found>> read(Number number) const;

  // The nonce that the commit with this number has; nothing: too long ago, or not yet.
  std::optional<Nonce> nonce_at(Number number) const;
  // How that commit was judged; nothing: before this process looked, or not yet.
  std::optional<bool> void_at(Number number) const;
  // Whether the file is the one that was seen under that number.
  static bool same_file(const os::FileFacts& a, const os::FileFacts& b);

 private:
  Status load();
  Result<bool> load_from(Number start);
  Result<Number> find_start(bool by_listing) const;
  Result<Tables> open_tables(const Base& base) const;
  // False: the file does not follow the last one.
  bool follow(Found found);
  void judge(const LogFile& next);
  Status read_forward();
  Error damaged(Number number) const;

  const Place& place_;
  bool loaded_ = false;
  std::optional<Error> lost_;  // it went back in time: never believed again

  State state_;
  LogFile last_;
  os::FileFacts last_facts_;
  bool last_void_ = false;
  State::Undo undo_;  // of last_, where it was not void
  Identity identity_;
  Number base_at_ = 0;
  Number based_on_ = 0;
  std::deque<Nonce> nonces_;  // of the last numbers, last_ included
  std::map<Number, bool> verdicts_;
  std::uint64_t flips_ = 0;

  // What this process has seen: it must never be gone.
  Number seen_durable_ = 0;
  Nonce seen_nonce_ = 0;
};

}  // namespace stint::store::dir
