// HTTP/1.1 heads and bodies as text, read strictly. Pure: no socket, no clock.
//
// Two readers that disagree on where a request ends let a stranger put a second one into another's
// connection (request smuggling). So whatever is not exactly one thing is refused: a line that does
// not end in CRLF, a folded line, a space before the colon, a length given twice or beside a
// transfer coding, a coding other than `chunked`. What is forwarded is written anew from what was
// understood, never copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stint::net::http {

struct Field {
  std::string name;
  std::string value;
};

class Fields {
 public:
  void add(std::string name, std::string value);
  // Names are compared without regard to case.
  std::vector<std::string_view> all(std::string_view name) const;
  std::optional<std::string_view> first(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  bool lists(std::string_view name, std::string_view word) const;  // "Connection: a, close"
  void remove(std::string_view name);
  const std::vector<Field>& list() const { return list_; }
  void reserve(std::size_t fields) { list_.reserve(fields); }

 private:
  std::vector<Field> list_;
};

struct RequestHead {
  std::string method;
  std::string target;  // "/path?query", or "*"
  bool http10 = false;
  Fields fields;
};

struct ResponseHead {
  int status = 0;
  std::string reason;
  bool http10 = false;
  Fields fields;
};

// How the end of a body is known.
struct Framing {
  enum class Kind { None, Length, Chunked, UntilClose };
  Kind kind = Kind::None;
  std::uint64_t length = 0;
};

// Looks for the empty line that ends a head: the number of bytes up to and with it; 0: not there
// yet. Errors: Code::Invalid for a line end that is not CRLF, as soon as it is seen.
Result<std::size_t> find_head_end(std::string_view bytes);

// `raw`: as find_head_end() counted it. Errors: Code::Invalid.
Result<RequestHead> parse_request(std::string_view raw);
Result<ResponseHead> parse_response(std::string_view raw);

Result<Framing> framing_of(const RequestHead& head);
Result<Framing> framing_of(const ResponseHead& head, bool asked_with_head);

bool keeps_alive(const Fields& fields, bool http10);
// What holds for one connection only, also what `Connection` names; and the body's framing, which
// the writer sets anew.
void remove_hop_by_hop(Fields& fields);

bool same_name(std::string_view a, std::string_view b);  // without regard to ASCII case
std::string_view reason_of(int status);

// Takes a body apart as it comes.
class BodyReader {
 public:
  explicit BodyReader(Framing framing);
  struct Piece {
    std::size_t consumed = 0;  // 0: more is needed
    std::string_view data;     // a part of what was given
  };
  // Errors: Code::Invalid for a chunk that is not one.
  Result<Piece> next(std::string_view in);
  bool done() const { return state_ == State::Done; }
  bool until_close() const { return framing_.kind == Framing::Kind::UntilClose; }

 private:
  enum class State { Data, Size, AfterData, Trailer, Done };
  Result<Piece> size_line(std::string_view in);
  Result<Piece> trailer_line(std::string_view in);

  Framing framing_;
  State state_ = State::Data;
  std::uint64_t left_ = 0;
  std::size_t trailers_ = 0;
};

}  // namespace stint::net::http
