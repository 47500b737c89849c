#include "store/dir/bytes.h"

#include <cstring>

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

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 30U) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27U) * 0x94d049bb133111ebU;
  return x ^ x >> 31U;
}

}  // namespace

std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t hash = mixed(bytes.size() + 0x9e3779b97f4a7c15U);
  std::size_t at = 0;
  for (; at + kNumber <= bytes.size(); at += kNumber) {
    hash = mixed(hash ^ load(bytes.data() + at)) + 0x9e3779b97f4a7c15U;
  }
  char rest[kNumber] = {};
  if (at < bytes.size()) std::memcpy(rest, bytes.data() + at, bytes.size() - at);
  return mixed(hash ^ load(rest));
}

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
