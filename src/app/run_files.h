// What a child of `run` is told: its environment, the present deadline in a file, the store in
// another.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/environment.h"
#include "app/settings.h"
#include "base/random.h"
#include "holder/run.h"

namespace stint::app {

class RunFiles {
 public:
  RunFiles(const Environment& environment, const Settings& settings, const Clock& clock,
           Random& random);
  ~RunFiles();  // removes the files that are this run's alone
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;

  Result<std::vector<std::string>> environment(const holder::RunRequest& request,
                                               const holder::Taken& taken,
                                               const Generation& generation, MonoTime deadline,
                                               bool tell_store);
  void deadline(MonoTime deadline);
  std::vector<std::string> own_files() const;  // that go with the run
  // Why the work was told of a file less; empty: it has them all.
  const std::string& trouble() const { return trouble_; }

 private:
  std::string made(const std::string& path, const std::function<Status()>& keep);
  Status keep_store_file() const;
  Status keep_deadline(MonoTime deadline) const;
  std::int64_t wall_ms(MonoTime t) const;

  const Environment& environment_;
  const Settings& settings_;
  const Clock& clock_;
  std::string deadline_file_;
  std::string store_file_;
  std::string trouble_;
  bool secret_ = false;  // the store file holds a password: it goes with the run
};

}  // namespace stint::app
