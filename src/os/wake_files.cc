#include "os/wake_files.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#include "base/text.h"
#include "os/files.h"

namespace stint::os {
namespace {

// FNV-1a: the bucket of a topic must be the same in every process and version.
std::uint8_t bucket_of(std::string_view topic) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : topic) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return static_cast<std::uint8_t>(hash ^ hash >> 32U);
}

class FileWatch final : public Watch {
 public:
  explicit FileWatch(Fd inotify) : inotify_(std::move(inotify)) {}
  int fd() const override { return inotify_.get(); }
  void acknowledge() override {
    char buffer[4096];
    while (::read(inotify_.get(), buffer, sizeof buffer) > 0) {
    }
  }

 private:
  Fd inotify_;
};

}  // namespace

std::string WakeFiles::bucket_path(std::string_view topic) const {
  const auto bucket = static_cast<char>(bucket_of(topic));
  return cat(directory_, "/", to_hex(std::string_view(&bucket, 1)));
}

Result<std::unique_ptr<Watch>> WakeFiles::watch(std::string_view topic) const {
  if (auto made = make_directories(directory_); !made) return made.error();
  const std::string path = bucket_path(topic);
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return unavailable(errno_text(cat("opening ", quoted(path))));
  Fd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify) return unavailable(errno_text("making an inotify watch"));
  if (::inotify_add_watch(inotify.get(), path.c_str(), IN_ATTRIB) < 0) {
    return unavailable(errno_text(cat("watching ", quoted(path))));
  }
  return std::unique_ptr<Watch>(std::make_unique<FileWatch>(std::move(inotify)));
}

bool WakeFiles::anyone() const { return exists(directory_); }

void WakeFiles::touch(std::string_view topic) const {
  // Missing: nobody has ever waited. Any other failure costs a waiter its 30 s at the most.
  ::utimensat(AT_FDCWD, bucket_path(topic).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

}  // namespace stint::os
