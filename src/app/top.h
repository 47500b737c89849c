// `stint top`: reads the store again and again and fills the terminal, until a key or a signal ends
// it.
#pragma once

#include <string>

#include "app/opened.h"
#include "base/time.h"
#include "report/top_screen.h"

namespace stint::app {

struct TopRun {
  std::string prefix;
  std::string store;  // as it is shown
  report::Look look = report::Look::Colours;
};

// As the store stands now, with the newest `events` lines of the ledger.
Result<report::TopFacts> look_at(Opened& opened, const Clock& clock, const TopRun& run,
                                 std::size_t events);

// REQUIRES: standard input and output are a terminal, else Code::Failed.
Status fill_terminal(Opened& opened, const Clock& clock, const TopRun& run);

}  // namespace stint::app
