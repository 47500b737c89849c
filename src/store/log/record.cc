#include "store/log/record.h"

#include <cstring>
#include <new>
#include <utility>

namespace stint::store::log {

Record::Ptr Record::make(std::string_view key, Row&& row) {
  void* const place = ::operator new(sizeof(Record) + key.size());
  Ptr out(new (place) Record(key, std::move(row)));
  if (!key.empty()) std::memcpy(reinterpret_cast<char*>(out.get() + 1), key.data(), key.size());
  return out;
}

void Record::Free::operator()(Record* record) const {
  record->~Record();
  ::operator delete(record);
}

}  // namespace stint::store::log
