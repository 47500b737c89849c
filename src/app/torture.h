// `stint torture`: the clients of probe/torture.h as processes of this program, stopped and killed
// at random, on resources of their own; what they were told is checked afterwards.
#pragma once

#include <functional>
#include <string>

#include "app/environment.h"
#include "app/opened.h"
#include "os/signals.h"
#include "report/torture_page.h"

namespace stint::app {

struct TortureRequest {
  Millis length{60'000};
  int clients = 8;
  std::function<void(const std::string&)> say;  // progress
};

// Ends early, with what there is, when a signal comes. Its records are removed at the end.
Result<report::TortureStory> torture_store(const OpenOptions& options,
                                           const Environment& environment, const Clock& clock,
                                           Random& random, os::Signals& signals,
                                           const TortureRequest& request);

// Set for a client: its folder, number, name and plan.
constexpr const char* kTortureVariable = "STINT_TORTURE_CLIENT";
Status torture_here(const OpenOptions& options, const std::string& words, const Clock& clock,
                    Random& random);

}  // namespace stint::app
