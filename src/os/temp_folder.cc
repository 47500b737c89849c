#include "os/temp_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/text.h"

namespace stint::os {

namespace {

std::string template_of(const std::string& prefix) {
  std::error_code failed;
  const auto under = std::filesystem::temp_directory_path(failed);
  return cat(failed ? std::string("/tmp") : under.string(), "/", prefix, "XXXXXX");
}

}  // namespace

Result<Fd> unnamed_file() {
  std::string path = template_of("stint-");
  Fd file(::mkostemp(path.data(), O_CLOEXEC));
  if (!file) return Error{Code::Failed, errno_text("making a temporary file")};
  if (::unlink(path.c_str()) != 0) {
    return Error{Code::Failed, errno_text("making a temporary file")};
  }
  return file;
}

Result<TempFolder> TempFolder::make(const std::string& prefix) {
  std::string path = template_of(prefix);
  if (::mkdtemp(path.data()) == nullptr)
    return Error{Code::Failed, errno_text("making a temporary folder")};
  return TempFolder(std::move(path));
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace stint::os
