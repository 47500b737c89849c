// SHA-256 (FIPS 180-4). Own code because OpenSSL in the start-up path makes `run` several times
// slower.
#pragma once

#include <string>
#include <string_view>

namespace stint {

// The 32 bytes of the digest.
std::string sha256(std::string_view bytes);

}  // namespace stint
