// `stint top`: reads the store again and again and fills the terminal, until a key or a signal ends
// it.
#pragma once

#include <string>

#include "app/opened.h"
#include "base/time.h"
#include "report/top_screen.h"
#include "schedule/config.h"

namespace stint::app {

struct TopRun {
  std::string prefix;
  std::string store;  // as it is shown
  report::Look look = report::Look::Colours;
  schedule::FindZone find_zone = {};  // of jobs
};

struct TopWants {
  std::size_t events = 12;  // of the ledger, the newest
  bool jobs = false;
  bool queues = false;
};
// As the store stands now.
Result<report::TopFacts> look_at(Opened& opened, const Clock& clock, const TopRun& run,
                                 const TopWants& wants);

// REQUIRES: standard input and output are a terminal, else Code::Failed.
Status fill_terminal(Opened& opened, const Clock& clock, const TopRun& run);

}  // namespace stint::app
