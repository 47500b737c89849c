#include "store/dir/bytes.h"

#include "store/row_bytes.h"

namespace stint::store::dir {
namespace {

constexpr std::size_t kNumber = 8;

std::uint64_t load(const char* at) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < kNumber; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(at[i])) << (8U * i);
  }
  return value;
}

}  // namespace

Packer& Packer::number(std::uint64_t value) {
  for (unsigned i = 0; i < kNumber; ++i) bytes_ += static_cast<char>(value >> (8U * i) & 0xFFU);
  return *this;
}

Packer& Packer::text(std::string_view value) {
  number(value.size());
  bytes_ += value;
  return *this;
}

std::string Packer::sealed() && {
  number(checksum(bytes_));
  return std::move(bytes_);
}

bool Unpacker::unseal() {
  if (bytes_.size() < kNumber) return ok_ = false;
  const std::string_view body = bytes_.substr(0, bytes_.size() - kNumber);
  if (load(bytes_.data() + body.size()) != checksum(body)) return ok_ = false;
  bytes_ = body;
  return true;
}

std::uint64_t Unpacker::number() {
  const std::string_view bytes = raw(kNumber);
  return bytes.empty() ? 0 : load(bytes.data());
}

std::string_view Unpacker::text() { return raw(number()); }

std::string_view Unpacker::raw(std::size_t length) {
  if (!ok_ || length > bytes_.size()) {
    ok_ = false;
    return {};
  }
  const std::string_view out = bytes_.substr(0, length);
  bytes_.remove_prefix(length);
  return out;
}

std::size_t Unpacker::count(std::size_t least) {
  const std::uint64_t number = this->number();
  if (number > bytes_.size() / least) {
    ok_ = false;
    return 0;
  }
  return number;
}

}  // namespace stint::store::dir
