// What stands in for the operating system in the simulation. The production rooms are linked
// unchanged; a few files of os/ are not taken from libstint_os but from here: descriptors, waiting,
// random numbers, clocks, signals, the tree of a child process (sim_os.cc), directories and files
// (sim_disk.cc). Threads are fibers. docs/internals/simulation.md has the list; sim_links_test.py
// reads it off the link map.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "os/tree.h"
#include "tests/support/sim.h"

namespace stint::test {

// A program of the simulation: what a `command` of a run does. The answer is its exit code.
// `escaped`: it was handed to another daemon, outside of the tree: nobody can kill it.
struct SimProgram {
  std::function<int(const os::TreeOptions&, bool escaped)> main;
  std::function<bool()> escapes;
};

class SimOs {
 public:
  explicit SimOs(Scheduler& scheduler);
  ~SimOs();
  SimOs(const SimOs&) = delete;
  SimOs& operator=(const SimOs&) = delete;
  static SimOs& present();

  Scheduler& scheduler() { return scheduler_; }
  void install(const std::string& command, SimProgram program);
  const SimProgram& program(const std::string& command) const;

  // Kept until the simulation ends.
  void keep(std::shared_ptr<void> state) { kept_.push_back(std::move(state)); }

  // SIGTERM, for a process that has asked for its signals; to others nothing happens.
  void terminate(SimProcess& process);
  void expect_signals(const SimProcess& process, int fd) { signals_[&process] = fd; }

  // By path: see sim_files.cc.
  std::map<std::string, std::string>& files() { return files_; }

  // ---- descriptors
  int open_event();
  void close(int fd);
  void signal(int fd);
  void drain(int fd);
  bool readable(int fd) const;
  void wait(const std::vector<int>& fds, std::optional<MonoTime> until);

 private:
  struct Event {
    std::uint64_t count = 0;
    std::vector<SimFiber*> waiting;
  };
  Scheduler& scheduler_;
  std::map<std::string, SimProgram> programs_;
  std::map<int, Event> events_;
  std::vector<std::shared_ptr<void>> kept_;
  std::map<std::string, std::string> files_;
  std::map<const SimProcess*, int> signals_;  // looked up, never walked over
  int last_fd_;
};

}  // namespace stint::test
