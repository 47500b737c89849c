// A run in a sandbox, seen from outside of it: whether its work lives is told by a pipe that every
// process of the work holds open, and not by any number.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace stint::test {

struct Place {
  std::string name;
  bool proc_is_ours = true;
  std::vector<std::string> options = {};  // of `player confine`
  std::vector<std::string> before = {};   // what the command line begins with (bwrap, unshare)
  bool root_of_its_own = false;           // the program, its libraries and the player, nothing else
  bool setuid = false;                    // the player is root's, whoever starts it
  bool others = false;                    // what is in it must be readable for other users
};

inline void PrintTo(const Place& place, std::ostream* out) { *out << place.name; }

struct Report {
  int exit_code = -1;
  int bystanders = -1;  // that live
  int of = -1;
};

class Confined {
 public:
  // `stint run r OPTION... -- player work FIFO KIND...`
  Confined(const Place& place, const std::vector<std::string>& kinds,
           const std::vector<std::string>& options = {"--ttl", "2s"});
  Confined(const Confined&) = delete;
  Confined& operator=(const Confined&) = delete;

  // Why this sandbox cannot be built here; empty: it was.
  std::string missing();
  // True when every process of the work has said its kind; false: run ended before that, or the
  // time is up.
  bool working();
  bool work_alive();
  bool work_ends(Millis within) {
    return wait_until([&] { return !work_alive(); }, within);
  }
  // The store is out of reach: the lease runs out.
  void take_store_away();
  void bring_store_back();
  // After a restart: as working(), of the second start.
  bool working_again();
  // Empty: `stint run` does not end.
  std::optional<Report> report(Millis within = Millis(20'000));
  std::string err() const { return child_->err(); }
  std::string state(const std::string& file) const { return data_ + "/state/" + file; }

  // Of those that `--children` gave it: how many live.
  int children_of_its_own() const;
  pid_t supervisor() { return process("stint"); }
  pid_t guardian() { return process("stint-guardian"); }

 private:
  void copy_program(const std::string& into);
  pid_t process(const std::string& name);
  void listen();

  TempDir dir_;
  std::string data_;    // outside
  std::string inside_;  // the same folder, as the sandbox names it
  std::size_t expected_;
  os::Fd fifo_;
  std::string said_;
  bool closed_ = false;
  std::unique_ptr<Child> child_;
};

}  // namespace stint::test
