// Histories in a file, for tests. What a history is: probe/history.h.
#pragma once

#include <string>
#include <vector>

#include "os/fd.h"
#include "probe/history.h"

namespace stint::test {

using probe::HistoryEvent;
using probe::Phase;
namespace verbs = probe::verbs;

class History : public probe::History {
 public:
  // Appends to the file; several processes may.
  explicit History(const std::string& path);

 private:
  explicit History(int file);
};

Result<std::vector<HistoryEvent>> load_history(const std::string& path);

}  // namespace stint::test
