// What the sandbox that we run in offers: without a store.
#pragma once

#include <functional>
#include <string>

#include "store/seam.h"

namespace stint::app {

// Tells each finding. Fail: a run or a store on files cannot keep its promises here.
void examine_here(const std::string& state_directory,
                  const std::function<void(const store::Finding&)>& tell);

}  // namespace stint::app
