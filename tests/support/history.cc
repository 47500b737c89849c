#include "tests/support/history.h"

#include <fcntl.h>
#include <unistd.h>

#include <memory>

#include "base/check.h"
#include "base/text.h"
#include "tests/support/process.h"

namespace stint::test {

History::History(const std::string& path)
    : History(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}

History::History(int file)
    : probe::History(std::to_string(::getpid()), [held = std::make_shared<os::Fd>(file)](
                                                     const std::string& line) {
        // One write a line: the kernel keeps appended writes apart.
        const ssize_t written = ::write(held->get(), line.data(), line.size());
        CHECK(written == static_cast<ssize_t>(line.size()), "the history cannot be written");
      }) {}

Result<std::vector<HistoryEvent>> load_history(const std::string& path) {
  return probe::parse_history(read_text(path));
}

}  // namespace stint::test
