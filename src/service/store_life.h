// One store's life: its generation, its floor, and whether it went back in time.       G1 G12
#pragma once

#include <optional>
#include <string>

#include "base/random.h"
#include "service/records.h"
#include "store/seam.h"

namespace stint::service {

// A token that moved by a commit which was acknowledged: a store that does not know it went back.
// Told by what the token's record and, once it has ended, its line in the history say.   G12
struct Witness {
  std::string resource;  // empty: there is none
  Token token;
  std::uint64_t mark = 0;  // of who got it and when; zero: that may change under the same token
};
Witness witness_of(const std::string& resource, const core::Ownership& own);

// What somebody outside the store remembers of it.
struct Anchor {
  Generation generation;
  std::uint64_t revision = 0;
  Token highest;  // the highest token, of any resource, that was granted through here
  Witness newest = {};
};
// The newer of both, with what only the other knows. REQUIRES: of one generation.
Anchor joined(const Anchor& one, const Anchor& other);

// A key of the server that was made or revoked from here.
struct KeyNote {
  Generation generation;  // of the store then
  bool revoked = false;
  std::string id;
  std::string name;
};

// Kept outside the store, so that restoring the store does not restore it (app/anchor_file.h keeps
// files). Thread safety: any thread.
class Anchors {
 public:
  virtual ~Anchors() = default;
  // What this process or another one of the machine has seen last.
  virtual Result<std::optional<Anchor>> recall() = 0;
  virtual void remember(const Anchor& anchor) = 0;
  virtual void remember_key(const KeyNote& note) { static_cast<void>(note); }
  virtual Result<std::vector<KeyNote>> keys() { return std::vector<KeyNote>(); }
  // The store here is of this generation. True: something is remembered of it, from under another
  // address perhaps, and the store is to be compared with that.
  virtual Result<bool> meet(const Generation& generation) {
    static_cast<void>(generation);
    return false;
  }
};

// The records by which a store shows that it knows what is remembered.
std::vector<std::string> proof_keys(const Anchor& known, const store::Capabilities& can);
// What they say. `proof`: in the order of proof_keys().   G12
Status check_proof(const Anchor& known, const store::Capabilities& can, const store::Entry* proof);
// Whether it is the error of a store that went back in time or was replaced.
bool is_went_back(const Error& error);
// A commit got this revision after another one had got a later one.
Error fell_behind(std::uint64_t revision, std::uint64_t seen);

struct LifeOptions {
  std::optional<Generation> pinned;  // a pinned client never creates a store
  bool may_create = true;
};

struct Life {
  Meta meta;
  store::Version version = 0;
};

// Whether the store is of this generation or descends from it.
bool in_line(const Meta& meta, const Generation& generation);

// An error if its leases went to another store, or are still on their way into it.
Status check_settled(const Meta& meta);

// An error if the store is not of the generation that this process has seen there: it went back to
// an earlier one, or another store stands in its place.   G12
Status check_same_life(const Meta& meta, const Generation& seen);
// Both.
Status check_usable(const Meta& meta, const Generation& seen);

// The meta record as it stands; empty: there is none.
Result<std::optional<Life>> read_life(store::Store& store);
store::Step set_meta(const Meta& meta, store::Expect expect, store::Version version);

// Reads the meta record, or makes it; refuses a store that is not the one remembered or pinned.
Result<Life> begin_life(store::Store& store, Random& random, WallTime now, Anchors* anchors,
                        const LifeOptions& options);

// Whether the store is the one that is remembered and pinned; one that is empty and that nobody
// remembers is. Changes nothing. G12
Status check_life(store::Store& store, Anchors* anchors, const LifeOptions& options);

// Where tokens go on after the store may have lost the end of what it had acknowledged: above
// everything that can have been issued until then. `tail`: the record Capabilities::tail_record.
// Zero if it is absent.   G1
Result<Token> floor_after_tail(const store::Entry& tail);

// An operator's word that a restored or copied store is to be used: a new generation that descends
// from the old one, and a floor above everything that can have been issued before.
struct Recovery {
  std::string why;
  std::string by;
  Token past;  // at least this far
};
Result<Life> recover(store::Store& store, Random& random, WallTime now, Anchors* anchors,
                     const Recovery& recovery);

}  // namespace stint::service
