#include "os/module_file.h"

#include <dlfcn.h>

#include "base/text.h"
#include "os/files.h"
#include "os/program.h"

namespace stint::os {

Result<void*> load_function(const std::string& file, const char* function) {
  // RTLD_NOW: what is missing is missed here, not in the middle of a commit.
  void* const module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) return unavailable(cat("cannot load ", quoted(file), ": ", ::dlerror()));
  void* const found = ::dlsym(module, function);
  if (found == nullptr) {
    return unavailable(cat(quoted(file), " is no module of this stint: it has no ", function));
  }
  return found;
}

std::string program_directory() {
  const std::string program = own_program();
  return program.empty() ? std::string() : parent_of(program);
}

}  // namespace stint::os
