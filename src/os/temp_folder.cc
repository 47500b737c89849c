#include "os/temp_folder.h"

#include <stdlib.h>

#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "os/fd.h"

namespace stint::os {

Result<TempFolder> TempFolder::make(const std::string& prefix) {
  std::error_code failed;
  const auto under = std::filesystem::temp_directory_path(failed);
  std::string path = cat(failed ? std::string("/tmp") : under.string(), "/", prefix, "XXXXXX");
  if (::mkdtemp(path.data()) == nullptr)
    return Error{Code::Failed, errno_text("making a temporary folder")};
  return TempFolder(std::move(path));
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace stint::os
