// What a service tells the manager that started it (systemd's sd_notify protocol), without its
// library.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stint::os {

// "READY=1", "STOPPING=1", "STATUS=..."; `socket`: what NOTIFY_SOCKET says; empty: nobody asks.
Status notify_manager(const std::string& socket, std::string_view state);

// As many descriptors as the hard limit lets one have; how many that is.
std::size_t raise_descriptor_limit();

}  // namespace stint::os
