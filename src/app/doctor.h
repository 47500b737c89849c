// `stint doctor`: the examination of probe/doctor.h on the store behind a URL.
#pragma once

#include <functional>

#include "app/environment.h"
#include "app/opened.h"
#include "probe/doctor.h"

namespace stint::app {

// Contenders are processes of this program, started with this environment. Behind a server's
// address it is the server that examines its store.
Status examine_store(const OpenOptions& options, const Environment& environment, const Clock& clock,
                     Random& random, const std::function<void(const store::Finding&)>& tell);

// The sum of all contenders' tallies, or why there is none.
Result<probe::Tally> sum_of(const std::vector<Result<probe::Tally>>& tallies);

// Which life the store is in, and who would notice if it went back in time.
enum class Memory { None, Empty, Kept };
store::Finding generation_finding(const std::string& generation, Memory memory);
// What this machine has of the store.
Memory memory_of(const OpenOptions& options);

// Set for such a process: it is to contend, and to print its tally.
constexpr const char* kContendVariable = "STINT_DOCTOR_CONTEND";
Result<std::string> contend_here(const OpenOptions& options, const std::string& contest,
                                 const Clock& clock);

}  // namespace stint::app
