// Stores that are backed up and put back under the program's feet, each the way its users do it.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace stint::test {

class Restorable {
 public:
  virtual ~Restorable() = default;
  // Starts what is needed. Empty: it runs; otherwise why it cannot.
  virtual std::string start() = 0;
  virtual std::string url() const = 0;
  // Keeps the store as it is now.
  virtual void back_up() = 0;
  // Makes the store what it was then; as often as wanted.
  virtual void put_back() = 0;
  // Makes it as if it had never been there.
  virtual void empty() = 0;
};

struct RestorableKind {
  std::string name;   // "PostgresDump"
  std::string store;  // "postgres"
  std::unique_ptr<Restorable> (*make)();
  std::string says = "went back in time";  // why a running holder stops
  bool empties = false;                    // what is put back is nothing at all
  bool alone = false;                      // one process at a time has the store
  bool reserves = false;                   // after a restart it goes on above all tokens, unasked
  bool replaces = false;                   // what is put back is another file or directory
};

inline void PrintTo(const RestorableKind& kind, std::ostream* out) { *out << kind.name; }

const std::vector<RestorableKind>& restorable_kinds();
// The first kind of each store that several processes may share: for tests that restore nothing.
std::vector<RestorableKind> one_of_each_store();

}  // namespace stint::test
