// Copies what a child writes to our own output, and notes when it last wrote.
#pragma once

#include <atomic>
#include <thread>

#include "base/time.h"
#include "os/fd.h"

namespace stint::os {

class Pump {
 public:
  // Reads until the other end closes. `clock` must outlive it; the destructor joins.
  Pump(Fd from, int to, const Clock& clock);
  ~Pump();
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  MonoTime last_output() const { return MonoTime(Nanos(last_.load())); }

 private:
  void loop();
  Fd from_;
  int to_;
  const Clock& clock_;
  std::atomic<std::int64_t> last_;
  std::thread thread_;
};

}  // namespace stint::os
