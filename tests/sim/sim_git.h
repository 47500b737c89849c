// The git of the simulation: the program `git` as the git guard starts it (os::run_program is
// linked from here), clones, and one server with atomic pushes. Everything of guard/git_*.cc is
// production code: what it asks, how it reads git's words, what it makes of them.
//
// A push is looked at twice, as by the real one: by our own git against what the server shows when
// it is asked, and by the server in one transaction when the push arrives, which may be much later,
// and after whoever sent it has died.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "os/fd.h"
#include "os/program.h"
#include "tests/sim/sim_plan.h"
#include "tests/support/sim.h"

namespace stint::test {

class SimGit {
 public:
  static constexpr const char* kUrl = "ssh://git.site/repo.git";

  // `nowhere`: the machine that the server is on.
  SimGit(Scheduler& scheduler, SimTally& tally, SimHost& nowhere);
  ~SimGit();
  SimGit(const SimGit&) = delete;
  SimGit& operator=(const SimGit&) = delete;
  static SimGit* present();

  // Chances in a thousand, for each connection or push.
  struct Troubles {
    unsigned lose = 25;    // no connection, a push that never arrives, an answer that never does
    unsigned slow = 50;    // a message takes up to five seconds
    unsigned late = 20;    // a push is carried out up to a minute later, and nobody is told
    unsigned locked = 25;  // another transaction is in the way
    unsigned refused = 5;  // a hook at the server says no
    unsigned cut = 10;     // the server dies between two refs of one push
  };
  void set_troubles(Troubles troubles) { troubles_ = troubles; }
  // The next push of two refs dies between them; so many answers after it are lost.
  void betray(int answers) { betrayed_ = answers; }
  // Sabotage for the tests of the laws: nobody compares the fence with what a push expects.
  void compare_nothing() { compares_ = false; }

  // Called at once when a ref of the server got a new object.
  void on_move(std::function<void(const std::string& ref, const std::string& text)> look) {
    look_ = std::move(look);
  }
  // What stands there, without asking; empty: nothing.
  std::string text_at(const std::string& ref) const;

  // ---- what a user's command does in its clone
  struct Tip {
    std::string oid;  // empty: there is no such branch yet
    std::string text;
  };
  Result<Tip> fetch(const std::string& branch);
  std::string commit(const std::string& parent, const std::string& text);

  // ---- what os/program.h asks
  Result<os::ProgramEnd> run(const os::ProgramCall& call);

 private:
  struct Object {
    std::string text;
    std::string parent;
  };
  struct Command {
    std::string ref;
    std::string was;  // as the server showed it
    std::string oid;
  };
  // One push, between our git and the server.
  struct Push {
    std::vector<Command> commands;
    bool atomic = false;
    bool forced = false;
    bool over = false;
    bool answered = false;
    std::vector<std::string> reasons;  // of each command; empty: done
    os::EventFd news;
  };
  using Words = std::vector<std::string>;

  bool chance(unsigned per_thousand, const char* fault);
  void travel();
  std::string clone() const;
  std::set<std::string>& known();
  void learn(std::string oid);
  bool stands_on(std::string tip, const std::string& oid) const;
  std::string at(const std::string& ref) const;
  os::ProgramEnd rev_parse(const Words& words);
  os::ProgramEnd ask_server(const Words& words);
  os::ProgramEnd look_at(const std::string& oid);
  os::ProgramEnd keep(const std::string& text);
  Result<os::ProgramEnd> push(const Words& words, Millis limit);
  std::vector<std::string> look_before(const Push& push, const std::string& expected) const;
  void receive(const std::shared_ptr<Push>& push);
  // False: the server died half-way.
  bool transact(Push& push);
  void move(const Command& command);
  os::ProgramEnd told(const Push& push, std::string_view by) const;

  Scheduler& scheduler_;
  SimTally& tally_;
  SimHost& nowhere_;
  Troubles troubles_;
  bool compares_ = true;
  std::optional<int> betrayed_;
  int lost_answers_ = 0;
  std::map<std::string, Object> objects_;
  std::map<std::string, std::set<std::string>> clones_;
  std::map<std::string, std::string> refs_;
  MonoTime locked_until_{};
  std::function<void(const std::string&, const std::string&)> look_;
};

}  // namespace stint::test
