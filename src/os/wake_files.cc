#include "os/wake_files.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
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

void drain(const Fd& fd) {
  char buffer[4096];
  while (::read(fd.get(), buffer, sizeof buffer) > 0) {
  }
}

class FileWatch final : public Watch {
 public:
  explicit FileWatch(Fd inotify) : inotify_(std::move(inotify)) {}
  int fd() const override { return inotify_.get(); }
  void acknowledge() override { drain(inotify_); }

 private:
  Fd inotify_;
};

class PollingWatch final : public Watch {
 public:
  PollingWatch(Fd inotify, Fd timer, Fd both)
      : inotify_(std::move(inotify)), timer_(std::move(timer)), both_(std::move(both)) {}
  int fd() const override { return both_.get(); }
  void acknowledge() override {
    drain(inotify_);
    drain(timer_);
  }

 private:
  Fd inotify_;
  Fd timer_;
  Fd both_;
};

Result<std::unique_ptr<Watch>> polling(Fd inotify, Millis every) {
  Fd timer(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  Fd both(::epoll_create1(EPOLL_CLOEXEC));
  if (!timer || !both) return unavailable(errno_text("making a watch"));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(every);
  const timespec length{seconds.count(), Nanos(every - seconds).count()};
  const itimerspec period{length, length};
  bool ready = ::timerfd_settime(timer.get(), 0, &period, nullptr) == 0;
  for (const Fd* fd : {&inotify, &timer}) {
    epoll_event event{};
    event.events = EPOLLIN;
    ready &= ::epoll_ctl(both.get(), EPOLL_CTL_ADD, fd->get(), &event) == 0;
  }
  if (!ready) return unavailable(errno_text("making a watch"));
  return std::unique_ptr<Watch>(
      std::make_unique<PollingWatch>(std::move(inotify), std::move(timer), std::move(both)));
}

}  // namespace

std::string WakeFiles::bucket_path(std::string_view topic) const {
  const auto bucket = static_cast<char>(bucket_of(topic));
  return cat(directory_, "/", to_hex(std::string_view(&bucket, 1)));
}

Result<std::unique_ptr<Watch>> WakeFiles::watch(std::string_view topic,
                                                std::optional<Millis> poll) const {
  if (auto made = make_directories(directory_); !made) return made.error();
  const std::string path = bucket_path(topic);
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, modes_.file));
  if (file && modes_.file != 0600) {
    // Of another's making: then it has the right mode already, and this fails.
    ::chmod(directory_.c_str(), modes_.directory);
    ::fchmod(file.get(), modes_.file);
  }
  if (!file) return unavailable(errno_text(cat("opening ", quoted(path))));
  Fd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify) return unavailable(errno_text("making an inotify watch"));
  if (::inotify_add_watch(inotify.get(), path.c_str(), IN_ATTRIB) < 0) {
    return unavailable(errno_text(cat("watching ", quoted(path))));
  }
  if (poll) return polling(std::move(inotify), *poll);
  return std::unique_ptr<Watch>(std::make_unique<FileWatch>(std::move(inotify)));
}

bool WakeFiles::anyone() const { return exists(directory_); }

void WakeFiles::touch(std::string_view topic) const {
  // Missing: nobody has ever waited. Any other failure costs a waiter its 30 s at the most.
  ::utimensat(AT_FDCWD, bucket_path(topic).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

}  // namespace stint::os
