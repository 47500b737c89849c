// The real program in a world of its own: a state directory that nobody else uses.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace stint::test {

class Stint {
 public:
  Stint();
  // Every command uses this store, unless it names another.
  void use_store(std::string url) { store_ = std::move(url); }

  // `stint WORDS...` to its end.
  Finished operator()(std::vector<std::string> words, Millis deadline = Millis(20'000)) const;
  // The same as a command to start in the background, or to change first.
  Command command(std::vector<std::string> words) const;

  // The value of a field of `stint show RESOURCE --json`, as text; empty: absent or null.
  std::string lease(const std::string& resource, const std::string& field) const;
  bool held(const std::string& resource) const { return lease(resource, "held") == "true"; }
  // Lines of `stint events --json` that contain all the texts.
  int events(const std::vector<std::string>& texts) const;

  const TempDir& dir() const { return dir_; }
  std::string database() const { return dir_.file("state/stint/stint.db"); }
  // The same store for those who wait longer for its lock: forty writers behind one sync that a
  // busy disk holds up for seconds are no fault of the store.
  std::string patient_store() const;
  std::string binary() const { return STINT_BINARY; }

 private:
  std::optional<std::string> store_;
  TempDir dir_;
};

// {"a":1,"b":"x"} -> field(..., "b") == "x". For one flat document, as our own JSON is.
std::string json_field(const std::string& json, const std::string& name);

int count_lines(const std::string& text, const std::string& containing = {});

// The process that strace has stopped by now, as its output shows; 0: none.
pid_t stopped_by(const std::string& trace, pid_t strace);

// Whether a process that sleeps makes no system call for five seconds at a stretch.
struct Quiet {
  bool kept = false;
  std::string trace = {};
  std::string untraceable = {};  // why it could not be looked at
};
Quiet makes_no_call(pid_t pid, const std::string& trace);

}  // namespace stint::test
