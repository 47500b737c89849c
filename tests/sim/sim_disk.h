// The disk of the simulation: one directory, whose files and trees are durable only as far as they
// and it were synced. A tree is one text, written and removed in pieces. Every call gives way to
// others, as a system call does; a call may fail, and a power cut takes away what was not synced:
// names in the order in which they were made, contents torn.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/sim_plan.h"
#include "tests/support/sim.h"

namespace stint::test {

class SimDisk {
 public:
  static constexpr const char* kDirectory = "/site";

  SimDisk(Scheduler& scheduler, SimTally& tally);
  ~SimDisk();
  SimDisk(const SimDisk&) = delete;
  SimDisk& operator=(const SimDisk&) = delete;
  static SimDisk& present();

  // Chances in a thousand for each call that can fail so.
  struct Troubles {
    unsigned eio = 0;
    unsigned enospc = 0;
    unsigned stall = 5;  // takes up to a minute: a lease may run out in the midst of a write
  };
  void set_troubles(Troubles troubles) { troubles_ = troubles; }
  void power_cut();
  // Called at once after a name was given or taken, before anybody else can run. `to` empty:
  // removed.
  void on_name(std::function<void(const std::string& from, const std::string& to)> look) {
    look_ = std::move(look);
  }
  // What stands there, without a system call; empty: nothing.
  std::optional<std::string> peek(const std::string& name) const;
  std::vector<std::string> names() const;
  // Files get their numbers in the order in which they are made.
  std::uint64_t inode(const std::string& name) const { return names_.at(name)->number; }
  std::uint64_t last_inode() const { return last_inode_; }
  std::uint64_t calls() const { return calls_; }
  // Sabotage for the tests of the laws: syncs do nothing, and say that they did.
  void lie_about_syncs() { lies_ = true; }

  // The next rename to a name with this in it is done, and answered EIO.
  void betray(std::string name) { betrayed_ = std::move(name); }

  // Trees that are ready to be published, outside of the directory.
  std::string prepare(std::string content);
  void put_away(const std::string& path) { staged_.erase(path); }
  const std::string* prepared(const std::string& path) const;

  // ---- what os/directory.h and os/artifact.h ask, an errno each
  int create(const std::string& name, int& fd, bool tree = false);
  int open(const std::string& name, int& fd);
  void close(int fd);
  int write(int fd, std::string_view content);
  int read(int fd, std::string& content);
  int read(const std::string& name, std::string& content, std::uint64_t& inode);
  int sync(int fd);
  int sync_names();
  int rename(const std::string& from, const std::string& to, bool replace);
  int exchange(const std::string& one, const std::string& other);
  int remove(const std::string& name);
  void remove_tree(const std::string& name);
  int list(std::vector<std::string>& names);
  struct Facts {
    std::uint64_t inode = 0;
    std::uint64_t size = 0;
    bool tree = false;
  };
  int facts(const std::string& name, Facts& out);
  std::uint64_t inode_of(int fd) const;
  int try_lock(int fd);

 private:
  struct Inode {
    std::uint64_t number = 0;
    std::string content;
    std::string durable;
    bool tree = false;
    int locked_by = -1;  // a descriptor
  };
  using File = std::shared_ptr<Inode>;
  using Names = std::map<std::string, File>;
  using Change = std::vector<std::pair<std::string, File>>;  // null: the name goes

  // Gives way, then says whether it goes wrong.
  int call(bool writes);
  // What a change of names came to; `failed`: an I/O error, that says nothing about it.
  int named(int failed, Change names, const std::string& from, const std::string& to);
  bool chance(unsigned per_thousand, const char* fault);
  void change(Change change);

  Scheduler& scheduler_;
  SimTally& tally_;
  Troubles troubles_;
  Names names_;
  Names durable_;
  std::vector<Change> pending_;  // not durable yet, in order
  std::map<int, File> open_;
  std::function<void(const std::string&, const std::string&)> look_;
  std::uint64_t last_inode_ = 0;
  std::uint64_t calls_ = 0;
  bool lies_ = false;
  std::string betrayed_;
  std::map<std::string, std::string> staged_;
  std::uint64_t last_staged_ = 0;
};

}  // namespace stint::test
