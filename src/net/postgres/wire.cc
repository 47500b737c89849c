#include "net/postgres/wire.h"

#include <postgresql/libpq-fe.h>

#include "base/text.h"

namespace stint::net::postgres {
namespace {

// Types of pg_type.dat; their numbers are part of the protocol.
constexpr unsigned kBool = 16;
constexpr unsigned kBytea = 17;
constexpr unsigned kInt8 = 20;
constexpr unsigned kInt2 = 21;
constexpr unsigned kInt4 = 23;
constexpr unsigned kText = 25;
constexpr unsigned kByteaArray = 1001;
constexpr unsigned kInt2Array = 1005;
constexpr unsigned kInt8Array = 1016;
constexpr unsigned kTimestamptz = 1184;

// Between 1970 and 2000, in microseconds.
constexpr std::int64_t kEpochShift = std::int64_t{946'684'800} * 1'000'000;

void put(std::string& out, std::uint64_t number, int bytes) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
    out += static_cast<char>((number >> static_cast<unsigned>(shift)) & 0xFFU);
  }
}

std::uint64_t get(std::string_view bytes) {
  std::uint64_t out = 0;
  for (const char c : bytes) out = (out << 8U) | static_cast<unsigned char>(c);
  return out;
}

std::int32_t get_int(std::string_view bytes) { return static_cast<std::int32_t>(get(bytes)); }

std::string array_head(unsigned element, std::size_t count) {
  std::string out;
  put(out, count == 0 ? 0 : 1, 4);  // dimensions
  put(out, 0, 4);                   // no nulls
  put(out, element, 4);
  if (count == 0) return out;
  put(out, count, 4);
  put(out, 1, 4);  // the first index
  return out;
}

template <class Number>
std::string number_array(unsigned element, const std::vector<Number>& values) {
  std::string out = array_head(element, values.size());
  for (const Number value : values) {
    put(out, sizeof(Number), 4);
    put(out, static_cast<std::uint64_t>(value), sizeof(Number));
  }
  return out;
}

Error damaged(std::string_view what) {
  return unavailable(cat("the server's answer is damaged: ", what));
}

// The elements of a one-dimensional array without nulls.
Result<std::vector<std::string_view>> elements(std::string_view bytes, unsigned element) {
  constexpr std::size_t kHead = 12;
  constexpr std::size_t kDimension = 8;
  std::vector<std::string_view> out;
  if (bytes.size() < kHead || get(bytes.substr(8, 4)) != element || get(bytes.substr(4, 4)) > 1) {
    return damaged("a list of another type");
  }
  const std::uint64_t dimensions = get(bytes.substr(0, 4));
  if (dimensions == 0) return out;
  if (dimensions != 1 || bytes.size() < kHead + kDimension) return damaged("a list of lists");
  const std::int32_t count = get_int(bytes.substr(kHead, 4));
  bytes.remove_prefix(kHead + kDimension);
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int32_t length = bytes.size() < 4 ? -1 : get_int(bytes.substr(0, 4));
    if (length < 0 || bytes.size() - 4 < static_cast<std::size_t>(length)) {
      return damaged("a list that ends early");
    }
    out.push_back(bytes.substr(4, static_cast<std::size_t>(length)));
    bytes.remove_prefix(4 + static_cast<std::size_t>(length));
  }
  if (!bytes.empty()) return damaged("a list that is too long");
  return out;
}

}  // namespace

Params& Params::add(unsigned type, std::optional<std::string> value) {
  types_.push_back(type);
  values_.push_back(std::move(value));
  return *this;
}

Params& Params::text(std::string_view value) { return add(kText, std::string(value)); }
Params& Params::bytes(std::string_view value) { return add(kBytea, std::string(value)); }

Params& Params::integer(std::int32_t value) {
  std::string out;
  put(out, static_cast<std::uint32_t>(value), 4);
  return add(kInt4, std::move(out));
}

Params& Params::bigint(std::int64_t value) {
  std::string out;
  put(out, static_cast<std::uint64_t>(value), 8);
  return add(kInt8, std::move(out));
}

Params& Params::smallints(const std::vector<std::int16_t>& values) {
  return add(kInt2Array, number_array(kInt2, values));
}

Params& Params::bigints(const std::vector<std::int64_t>& values) {
  return add(kInt8Array, number_array(kInt8, values));
}

Params& Params::byte_arrays(const std::vector<std::string_view>& values) {
  std::string out = array_head(kBytea, values.size());
  for (const std::string_view value : values) {
    put(out, value.size(), 4);
    out += value;
  }
  return add(kByteaArray, std::move(out));
}

Params& Params::null(Null type) {
  switch (type) {
    case Null::Text: return add(kText, std::nullopt);
    case Null::Integer: return add(kInt4, std::nullopt);
    case Null::Bigint: return add(kInt8, std::nullopt);
    case Null::ByteArrays: return add(kByteaArray, std::nullopt);
  }
  return *this;
}

std::vector<const char*> Params::pointers() const {
  std::vector<const char*> out;
  for (const auto& value : values_) out.push_back(value ? value->data() : nullptr);
  return out;
}

std::vector<int> Params::lengths() const {
  std::vector<int> out;
  for (const auto& value : values_) out.push_back(value ? static_cast<int>(value->size()) : 0);
  return out;
}

void Rows::Clear::operator()(pg_result* result) const { ::PQclear(result); }

Rows::Rows(pg_result* result) : result_(result) {}

int Rows::count() const { return result_ ? ::PQntuples(result_.get()) : 0; }

Status Rows::expect_columns(int columns) const {
  if (result_ && ::PQnfields(result_.get()) == columns) return {};
  return damaged("it has other columns than were asked for");
}

bool Rows::is_null(int row, int column) const {
  return ::PQgetisnull(result_.get(), row, column) != 0;
}

Result<std::string_view> Rows::raw(int row, int column, unsigned type) const {
  if (!result_ || row >= count() || column >= ::PQnfields(result_.get())) {
    return damaged("a column is missing");
  }
  if (::PQftype(result_.get(), column) != type || ::PQfformat(result_.get(), column) != 1) {
    return damaged(cat("column ", column, " is of another type"));
  }
  if (is_null(row, column)) return damaged(cat("column ", column, " is null"));
  return std::string_view(::PQgetvalue(result_.get(), row, column),
                          static_cast<std::size_t>(::PQgetlength(result_.get(), row, column)));
}

Result<std::int64_t> Rows::bigint(int row, int column) const {
  const auto bytes = raw(row, column, kInt8);
  if (!bytes) return bytes.error();
  if (bytes->size() != 8) return damaged("a number of another size");
  return static_cast<std::int64_t>(get(*bytes));
}

Result<std::int32_t> Rows::integer(int row, int column) const {
  const auto bytes = raw(row, column, kInt4);
  if (!bytes) return bytes.error();
  if (bytes->size() != 4) return damaged("a number of another size");
  return get_int(*bytes);
}

Result<bool> Rows::boolean(int row, int column) const {
  const auto bytes = raw(row, column, kBool);
  if (!bytes) return bytes.error();
  if (bytes->size() != 1) return damaged("a truth value of another size");
  return bytes->front() != 0;
}

Result<std::string> Rows::text(int row, int column) const {
  const auto bytes = raw(row, column, kText);
  if (!bytes) return bytes.error();
  return std::string(*bytes);
}

Result<std::string> Rows::bytes(int row, int column) const {
  const auto bytes = raw(row, column, kBytea);
  if (!bytes) return bytes.error();
  return std::string(*bytes);
}

Result<std::int64_t> Rows::instant(int row, int column) const {
  const auto bytes = raw(row, column, kTimestamptz);
  if (!bytes) return bytes.error();
  if (bytes->size() != 8) return damaged("a time of another size");
  const auto since_2000 = static_cast<std::int64_t>(get(*bytes));
  // Also keeps "infinity" out, and sums from overflowing.
  constexpr std::int64_t kFar = std::int64_t{1} << 58U;
  if (since_2000 < -kFar || since_2000 > kFar) return damaged("a time that is none");
  return since_2000 + kEpochShift;
}

Result<std::vector<std::int64_t>> Rows::bigints(int row, int column) const {
  const auto bytes = raw(row, column, kInt8Array);
  if (!bytes) return bytes.error();
  const auto parts = elements(*bytes, kInt8);
  if (!parts) return parts.error();
  std::vector<std::int64_t> out;
  for (const std::string_view part : *parts) {
    if (part.size() != 8) return damaged("a number of another size");
    out.push_back(static_cast<std::int64_t>(get(part)));
  }
  return out;
}

Result<std::vector<std::string>> Rows::byte_arrays(int row, int column) const {
  const auto bytes = raw(row, column, kByteaArray);
  if (!bytes) return bytes.error();
  const auto parts = elements(*bytes, kBytea);
  if (!parts) return parts.error();
  return std::vector<std::string>(parts->begin(), parts->end());
}

}  // namespace stint::net::postgres
