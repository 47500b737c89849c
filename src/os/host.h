// The machine's name and the user's, for labels.
#pragma once

#include <string>

namespace stint::os {

std::string host_name();
std::string user_name();

}  // namespace stint::os
