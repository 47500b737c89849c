// SHA-1 (FIPS 180-4), for the names of git's objects and for nothing else: it proves nothing.
#pragma once

#include <string>
#include <string_view>

namespace stint {

// The 20 bytes of the digest.
std::string sha1(std::string_view bytes);

}  // namespace stint
