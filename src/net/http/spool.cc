#include "net/http/spool.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "os/block_file.h"
#include "os/temp_folder.h"

namespace stint::net::http {

Status Spool::add(std::string_view piece) {
  if (!file_ && size_ + piece.size() <= kMostInMemory) {
    memory_ += piece;
    size_ += piece.size();
    return {};
  }
  if (!file_) {
    auto made = os::unnamed_file();
    if (!made) return unavailable(made.error().message);
    file_ = std::move(*made);
    if (const int wrong = os::write_at(file_.get(), 0, memory_); wrong != 0) {
      return unavailable(std::strerror(wrong));
    }
    std::string().swap(memory_);
  }
  const int wrong = os::write_at(file_.get(), size_, piece);
  if (wrong != 0) return unavailable(std::strerror(wrong));
  size_ += piece.size();
  return {};
}

Result<std::string> Spool::piece(std::uint64_t from) const {
  if (!file_) return from < memory_.size() ? memory_.substr(from) : std::string();
  std::string out(std::min<std::uint64_t>(size_ - std::min(from, size_), kMostInMemory), '\0');
  const int wrong = os::read_into(file_.get(), from, out);
  if (wrong != 0) return unavailable(std::strerror(wrong));
  return out;
}

}  // namespace stint::net::http
