// Result<T>: a value or an Error. One class, so that a later move to std::expected is one edit.
//
// tl::expected is not [[nodiscard]]; this is. Errors are returned as they are: `return
// invalid("...")`.
#pragma once

#include <tl/expected.hpp>
#include <utility>

#include "base/error.h"

namespace stint {

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using Base = tl::expected<T, Error>;
  using Base::Base;
  // NOLINTNEXTLINE(google-explicit-constructor): `return error;` must read like `return value;`
  Result(Error error) : Base(tl::unexpect, std::move(error)) {}
};

using Status = Result<void>;

}  // namespace stint
