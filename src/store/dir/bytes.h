// Packing and unpacking of the files of a dir: store: little-endian numbers, lengths before texts,
// and a checksum over everything. What is unpacked is hostile until the checksum and every length
// have been looked at.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stint::store::dir {

class Packer {
 public:
  Packer& number(std::uint64_t value);
  Packer& text(std::string_view value);
  Packer& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  std::size_t size() const { return bytes_.size(); }
  const std::string& bytes() const { return bytes_; }
  // With the checksum at the end.
  std::string sealed() &&;

 private:
  std::string bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}
  // Takes the checksum off the end; false: it does not fit.
  bool unseal();

  // After a failure everything reads as zero or empty, and ok() is false.
  std::uint64_t number();
  std::string_view text();
  std::string_view raw(std::size_t length);
  // How many things of at least `least` bytes each follow; a number that cannot be is a failure.
  std::size_t count(std::size_t least);
  bool ok() const { return ok_; }
  bool done() const { return ok_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace stint::store::dir
