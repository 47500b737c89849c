#include "store/redis/stream.h"

#include "os/dial.h"

namespace stint::store::redis {

Status PlainStream::write(std::string_view bytes, MonoTime until, bool& sent) {
  while (!bytes.empty()) {
    const auto went = os::send_some(fd_.get(), bytes, until);
    if (!went) return went.error();
    sent = true;
    bytes.remove_prefix(*went);
  }
  return {};
}

Result<std::size_t> PlainStream::read(char* into, std::size_t size, MonoTime until) {
  return os::receive_some(fd_.get(), into, size, until);
}

bool PlainStream::quiet() { return os::quiet(fd_.get()); }

}  // namespace stint::store::redis
