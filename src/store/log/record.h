// A row and its key in one piece of memory, which stays where it is as long as the row is there.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "store/moment.h"

namespace stint::store::log {

class Record {
 public:
  struct Free {
    void operator()(Record* record) const;
  };
  using Ptr = std::unique_ptr<Record, Free>;

  static Ptr make(std::string_view key, Row&& row);
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  std::string_view key() const {
    return {reinterpret_cast<const char*>(this + 1), key_size_};  // behind it
  }

  Row row;

 private:
  Record(std::string_view key, Row&& first) : row(std::move(first)), key_size_(key.size()) {}
  ~Record() = default;

  const std::size_t key_size_;
};

}  // namespace stint::store::log
