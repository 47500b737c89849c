#include "os/module_file.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>

#include "base/text.h"
#include "os/files.h"

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
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return {};
  return parent_of(std::string(path.data(), static_cast<std::size_t>(length)));
}

}  // namespace stint::os
