// The binary forms of PostgreSQL's wire protocol that the store uses: parameters out, columns in.
//
// What comes in is looked at with suspicion: a column of another size or type is an error, never a
// default.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

struct pg_result;

namespace stint::net::postgres {

// The parameters of one statement, in binary.
class Params {
 public:
  Params& text(std::string_view value);
  Params& bytes(std::string_view value);
  Params& integer(std::int32_t value);
  Params& bigint(std::int64_t value);
  Params& smallints(const std::vector<std::int16_t>& values);
  Params& bigints(const std::vector<std::int64_t>& values);
  Params& byte_arrays(const std::vector<std::string_view>& values);
  enum class Null { Text, Integer, Bigint, ByteArrays };
  Params& null(Null type);

  std::size_t size() const { return types_.size(); }
  const std::vector<unsigned>& types() const { return types_; }
  // Pointers and lengths as libpq wants them; valid while this object is not changed.
  std::vector<const char*> pointers() const;
  std::vector<int> lengths() const;

 private:
  Params& add(unsigned type, std::optional<std::string> value);
  std::vector<unsigned> types_;
  std::vector<std::optional<std::string>> values_;
};

// The rows of one answer. Every getter fails with Code::Unavailable if the column is not what it
// should be.
class Rows {
 public:
  Rows() = default;
  explicit Rows(pg_result* result);

  int count() const;
  // Fails unless every row has exactly this many columns.
  Status expect_columns(int columns) const;

  bool is_null(int row, int column) const;
  Result<std::int64_t> bigint(int row, int column) const;
  Result<std::int32_t> integer(int row, int column) const;
  Result<bool> boolean(int row, int column) const;
  Result<std::string> text(int row, int column) const;
  Result<std::string> bytes(int row, int column) const;
  // Microseconds since 1970.
  Result<std::int64_t> instant(int row, int column) const;
  Result<std::vector<std::int64_t>> bigints(int row, int column) const;
  Result<std::vector<std::string>> byte_arrays(int row, int column) const;

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  Result<std::string_view> raw(int row, int column, unsigned type) const;
  std::unique_ptr<pg_result, Clear> result_;
};

}  // namespace stint::net::postgres
