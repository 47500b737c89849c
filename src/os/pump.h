// Copies what a child writes to our own output, and notes when it last wrote.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "base/result.h"
#include "base/time.h"
#include "os/fd.h"

namespace stint::os {

class Pump {
 public:
  // Reads until the other end closes. The destructor joins. Errors: no thread can be had.
  static Result<std::unique_ptr<Pump>> start(Fd from, int to);
  ~Pump();
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  Nanos last_output() const { return Nanos(last_.load()); }  // as os::awake() counts

 private:
  Pump(Fd from, int to);
  void loop();
  Fd from_;
  int to_;
  std::atomic<std::int64_t> last_;
  std::thread thread_;
};

}  // namespace stint::os
