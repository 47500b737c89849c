// A guarded place in a folder of its own, and what stands in it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/text.h"
#include "guard/directory_guard.h"
#include "guard/file_guard.h"
#include "guard/words.h"
#include "os/directory.h"
#include "tests/support/issuing_fences.h"
#include "tests/support/process.h"

namespace stint::test {

namespace fs = std::filesystem;

// Where a sync costs nothing: for plays in thousands, which are about order, not about power cuts.
class MemoryDir {
 public:
  MemoryDir() {
    std::string pattern = fs::exists("/dev/shm") ? "/dev/shm/stint-XXXXXX" : "/tmp/stint-XXXXXX";
    path_ = ::mkdtemp(pattern.data()) == nullptr ? "" : pattern;
  }
  ~MemoryDir() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  MemoryDir(const MemoryDir&) = delete;
  MemoryDir& operator=(const MemoryDir&) = delete;
  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return cat(path_, '/', name); }

 private:
  std::string path_;
};

// The guard's own files in a directory, sorted.
inline std::vector<std::string> kept_in(const std::string& directory,
                                        std::string_view containing = "") {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (name.starts_with('.') && name.find(containing) != name.npos) out.push_back(name);
  }
  std::ranges::sort(out);
  return out;
}

inline guard::SealRequest seal_with(guard::Pass pass) {
  return {.pass = std::move(pass), .by_order = false, .adopt = std::nullopt};
}

template <class Answer>
std::optional<core::Verdict> verdict_of(const Answer& answer) {
  if (!answer) return std::nullopt;
  const auto* refused = std::get_if<guard::Refused>(&*answer);
  return refused == nullptr ? core::Verdict::Admitted : refused->verdict;
}

template <class Answer>
std::string told(const Answer& answer) {
  if (!answer) return answer.error().message;
  const auto* refused = std::get_if<guard::Refused>(&*answer);
  return refused == nullptr ? "done" : guard::error_of(*refused, pass_with(1)).message;
}

template <class Answer>
bool done(const Answer& answer) {
  return verdict_of(answer) == core::Verdict::Admitted;
}

}  // namespace stint::test
