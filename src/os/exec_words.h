// Texts as exec and posix_spawn want them.
#pragma once

#include <string>
#include <vector>

namespace stint::os {

// The pointers are good for as long as `texts` is not changed.
inline std::vector<char*> exec_words(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace stint::os
