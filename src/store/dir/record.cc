#include "store/dir/record.h"

namespace stint::store::dir {
namespace {

constexpr std::uint64_t kPresent = 1;
constexpr std::uint64_t kAppended = 2;
constexpr std::uint64_t kTimer = 4;

}  // namespace

void pack(Packer& out, const Slot& slot) {
  if (!slot) {
    out.number(0);
    return;
  }
  out.number(kPresent | (slot->appended ? kAppended : 0U) | (slot->timer ? kTimer : 0U));
  out.number(slot->version).text(slot->value);
  if (!slot->timer) return;
  out.number(static_cast<std::uint64_t>(slot->timer->set_at.count()));
  out.number(static_cast<std::uint64_t>(slot->timer->fires_at.count()));
  out.number(static_cast<std::uint64_t>(slot->timer->ttl.count()));
}

Slot unpack_slot(Unpacker& in) {
  const std::uint64_t flags = in.number();
  if ((flags & kPresent) == 0) return std::nullopt;
  Record record;
  record.appended = (flags & kAppended) != 0;
  record.version = in.number();
  record.value = in.text();
  if ((flags & kTimer) != 0) {
    StoredTimer& timer = record.timer.emplace();
    timer.set_at = Nanos(static_cast<std::int64_t>(in.number()));
    timer.fires_at = Nanos(static_cast<std::int64_t>(in.number()));
    timer.ttl = Millis(static_cast<std::int64_t>(in.number()));
  }
  return record;
}

}  // namespace stint::store::dir
