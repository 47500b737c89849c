#include "os/thread.h"

#include <pthread.h>

#include <system_error>

#include "base/text.h"

namespace stint::os {

Result<std::thread> start_thread(const char* name, std::string_view purpose,
                                 std::function<void()> what) {
  try {
    std::thread thread(std::move(what));
    ::pthread_setname_np(thread.native_handle(), name);
    return thread;
  } catch (const std::system_error& e) {
    return Error{Code::Failed, cat("no thread to ", purpose, ": ", e.what())};
  }
}

}  // namespace stint::os
