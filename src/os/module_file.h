// Code that is loaded when it is first needed. What was loaded stays for the life of the process.
#pragma once

#include <string>

#include "base/result.h"

namespace stint::os {

// The address of a function in a module's file. Code::Unavailable: no such file, what it needs is
// not installed, or no such function in it; the message says which.
Result<void*> load_function(const std::string& file, const char* function);

// The directory of the running program; empty if it cannot be told.
std::string program_directory();

}  // namespace stint::os
