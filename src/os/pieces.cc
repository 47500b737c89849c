#include "os/pieces.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/text.h"
#include "os/exec_words.h"
#include "os/files.h"

namespace stint::os {
namespace {

constexpr const char* kName = "GLIBC_TUNABLES";
constexpr const char* kMore = "glibc.malloc.tcache_count=2000";

bool is_set(std::string_view name) {
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::string_view(*entry).starts_with(cat(name, "="))) return true;
  }
  return false;
}

}  // namespace

void restart_with_more_pieces() {
  if (is_set(kName)) return;
  // By its own path: what is started as /proc/self/exe is called "exe" by ps.
  std::string path(PATH_MAX, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  const auto line = read_file("/proc/self/cmdline");
  if (length <= 0 || !line || line->empty()) return;
  path.resize(static_cast<std::size_t>(length));
  std::vector<std::string> words;
  for (const std::string_view word :
       split(std::string_view(*line).substr(0, line->size() - 1), '\0')) {
    words.emplace_back(word);
  }
  if (::setenv(kName, kMore, 1) != 0) return;
  ::execv(path.c_str(), exec_words(words).data());
  ::unsetenv(kName);
}

}  // namespace stint::os
