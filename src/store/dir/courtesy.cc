#include "store/dir/courtesy.h"

#include "os/pause.h"
#include "os/random.h"

namespace stint::store::dir {

bool Courtesy::take(const Place& place, const Clock& clock, Millis most) {
  os::Fd file;
  if (place.root.open_file("lock", place.modes.file, file) != 0) return false;
  os::SystemRandom random;
  const MonoTime until = clock.mono() + most;
  while (os::try_lock(file.get()) != 0) {
    if (clock.mono() >= until) return false;
    os::pause_for(std::chrono::microseconds(100 + random.below(400)));
  }
  file_ = std::move(file);
  return true;
}

}  // namespace stint::store::dir
