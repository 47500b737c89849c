// What is edited under a lease in the simulation: a file, a tree, a row of a SQLite database, a
// text of an application behind the proxies, a branch at a git server. What guards it is production
// code; here is only what a user's command does with it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/fences.h"
#include "guard/guard.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_git.h"
#include "tests/sim/sim_plan.h"
#include "tests/sim/sim_sql.h"

namespace stint::test {

class SimArtifact {
 public:
  virtual ~SimArtifact() = default;
  // As `stint seal` takes them; empty: seal() seals it, and nobody remembers it.
  virtual std::string words() const { return {}; }
  virtual Result<guard::SealAnswer> seal(const guard::Pass& pass, api::Fences& fences);
  // An operator's word that it is to be used by another life of the store.
  virtual void adopt() {}
  // Empty: there is nothing yet.
  virtual Result<std::optional<std::string>> read() = 0;
  virtual Result<guard::WriteAnswer> write(const guard::Pass& pass, const std::string& body,
                                           api::Fences& fences) = 0;
  // Whether a write that got no answer can overtake what the same writer does next. Then a command
  // ends with it: its successor's seal waits.
  virtual bool overtakes() const { return false; }
};

std::unique_ptr<SimArtifact> make_file(SimDisk& disk, std::string name);
std::unique_ptr<SimArtifact> make_tree(SimDisk& disk, std::string name);
std::unique_ptr<SimArtifact> make_row(Scheduler& scheduler, SimSql& sql, std::string name);
std::unique_ptr<SimArtifact> make_branch(Scheduler& scheduler, SimGit& git, std::string name);
std::unique_ptr<SimArtifact> make_text(std::string name);

}  // namespace stint::test
