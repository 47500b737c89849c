#include "net/http/message.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace stint::net::http {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::size_t kMostFields = 200;
constexpr std::size_t kMostSizeLine = 256;
constexpr std::size_t kMostTrailers = std::size_t{8} << 10U;

bool is_token_char(char c) {
  if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_char);
}

bool is_visible(char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7f; }

bool is_field_value(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return is_visible(c) || c == ' ' || c == '\t'; });
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view trim_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t from = text.find_first_not_of(kBlanks);
  if (from == text.npos) return {};
  return text.substr(from, text.find_last_not_of(kBlanks) - from + 1);
}

// The next line without its end; `rest` moves on.
std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find(kLineEnd);
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == rest.npos ? rest.size() : end + kLineEnd.size());
  return line;
}

Result<Fields> parse_fields(std::string_view rest) {
  Fields out;
  constexpr std::size_t kUsual = 8;
  out.reserve(kUsual);
  while (!rest.empty()) {
    const std::string_view line = take_line(rest);
    if (line.empty()) break;
    if (line.front() == ' ' || line.front() == '\t') return invalid("a folded header line");
    const std::size_t colon = line.find(':');
    if (colon == line.npos || !is_token(line.substr(0, colon))) {
      return invalid("a header line without a proper name");
    }
    const std::string_view value = trim_blanks(line.substr(colon + 1));
    if (!is_field_value(value)) return invalid("a header with a control character");
    if (out.list().size() == kMostFields) return invalid("too many header lines");
    out.add(std::string(line.substr(0, colon)), std::string(value));
  }
  return out;
}

Result<bool> is_http10(std::string_view version) {
  if (version == "HTTP/1.1") return false;
  if (version == "HTTP/1.0") return true;
  return invalid("not HTTP/1.1");
}

// Length and Chunked as the fields say; None: neither.
Result<Framing> declared(const Fields& fields, bool http10) {
  const std::size_t lengths = fields.count("Content-Length");
  const std::size_t codings = fields.count("Transfer-Encoding");
  if (lengths > 1) return invalid("more than one Content-Length");
  if (lengths > 0 && codings > 0) {
    return invalid("both a Content-Length and a Transfer-Encoding");
  }
  if (codings > 0) {
    if (http10 || codings > 1 || !same_name(*fields.first("Transfer-Encoding"), "chunked")) {
      return invalid("a Transfer-Encoding that is not exactly 'chunked'");
    }
    return Framing{Framing::Kind::Chunked, 0};
  }
  if (lengths == 0) return Framing{};
  const auto length = parse_digits(*fields.first("Content-Length"));
  if (!length) return invalid("a Content-Length that is no number");
  return Framing{Framing::Kind::Length, *length};
}

std::optional<std::uint64_t> parse_chunk_size(std::string_view line) {
  const std::string_view digits = trim_blanks(line.substr(0, line.find(';')));
  constexpr std::size_t kMostDigits = 15;
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  std::uint64_t out = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
  if (end.ptr != digits.data() + digits.size()) return std::nullopt;
  return out;
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

void Fields::add(std::string name, std::string value) {
  list_.push_back({std::move(name), std::move(value)});
}

std::vector<std::string_view> Fields::all(std::string_view name) const {
  std::vector<std::string_view> out;
  for (const Field& field : list_) {
    if (same_name(field.name, name)) out.emplace_back(field.value);
  }
  return out;
}

std::optional<std::string_view> Fields::first(std::string_view name) const {
  for (const Field& field : list_) {
    if (same_name(field.name, name)) return field.value;
  }
  return std::nullopt;
}

std::size_t Fields::count(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      list_, [name](const Field& field) { return same_name(field.name, name); }));
}

bool Fields::lists(std::string_view name, std::string_view word) const {
  for (const Field& field : list_) {
    if (!same_name(field.name, name)) continue;
    for (const std::string_view one : split(field.value, ',')) {
      if (same_name(trim_blanks(one), word)) return true;
    }
  }
  return false;
}

void Fields::remove(std::string_view name) {
  std::erase_if(list_, [name](const Field& field) { return same_name(field.name, name); });
}

Result<std::size_t> find_head_end(std::string_view bytes) {
  std::size_t line = 0;
  while (true) {
    const std::size_t end = bytes.find('\n', line);
    if (end == bytes.npos) break;
    if (end == line || bytes[end - 1] != '\r') return invalid("a line that does not end in CRLF");
    if (end - 1 == line) return end + 1;
    line = end + 1;
  }
  return std::size_t{0};
}

Result<RequestHead> parse_request(std::string_view raw) {
  std::string_view rest = raw;
  const std::string_view line = take_line(rest);
  // Three words: of more, the last would have a space in it, and is no version.
  const std::size_t first = std::min(line.find(' '), line.size());
  const std::size_t second = std::min(line.find(' ', first + 1), line.size());
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(std::min(first + 1, second), second - first - 1);
  if (second == line.size() || !is_token(method) || target.empty() ||
      !std::ranges::all_of(target, is_visible)) {
    return invalid("not a request line");
  }
  const auto http10 = is_http10(line.substr(second + 1));
  if (!http10) return http10.error();
  if (target.front() != '/' && target != "*") return invalid("a target that is no path");
  auto fields = parse_fields(rest);
  if (!fields) return fields.error();
  const std::size_t hosts = fields->count("Host");
  if (hosts > 1 || (hosts == 0 && !*http10)) return invalid("not exactly one Host");
  return RequestHead{std::string(method), std::string(target), *http10, std::move(*fields)};
}

Result<ResponseHead> parse_response(std::string_view raw) {
  std::string_view rest = raw;
  const std::string_view line = take_line(rest);
  constexpr std::size_t kVersion = 8;
  constexpr std::size_t kStatusEnd = 12;
  const auto http10 = is_http10(line.substr(0, kVersion));
  if (!http10) return http10.error();
  const auto status = line.size() < kStatusEnd
                          ? std::nullopt
                          : parse_digits(line.substr(kVersion + 1, kStatusEnd - kVersion - 1));
  if (!status || *status < 100 || line[kVersion] != ' ' ||
      (line.size() > kStatusEnd && line[kStatusEnd] != ' ')) {
    return invalid("not a status line");
  }
  const std::string_view reason =
      line.size() > kStatusEnd ? line.substr(kStatusEnd + 1) : std::string_view();
  if (!is_field_value(reason)) return invalid("a reason with a control character");
  auto fields = parse_fields(rest);
  if (!fields) return fields.error();
  return ResponseHead{static_cast<int>(*status), std::string(reason), *http10, std::move(*fields)};
}

Result<Framing> framing_of(const RequestHead& head) { return declared(head.fields, head.http10); }

Result<Framing> framing_of(const ResponseHead& head, bool asked_with_head) {
  auto framing = declared(head.fields, head.http10);
  if (!framing) return framing;
  const bool bare =
      asked_with_head || head.status < 200 || head.status == 204 || head.status == 304;
  if (bare) return Framing{};
  if (framing->kind == Framing::Kind::None) return Framing{Framing::Kind::UntilClose, 0};
  return framing;
}

bool keeps_alive(const Fields& fields, bool http10) {
  if (fields.lists("Connection", "close")) return false;
  return !http10 || fields.lists("Connection", "keep-alive");
}

void remove_hop_by_hop(Fields& fields) {
  std::vector<std::string> named;
  for (const std::string_view value : fields.all("Connection")) {
    for (const std::string_view one : split(value, ',')) named.emplace_back(trim_blanks(one));
  }
  for (const std::string& name : named) {
    // Nobody takes the fence's own words, or what says where the request goes, away by naming them.
    const bool kept =
        same_name(name, "Host") || (name.size() >= 8 && same_name(name.substr(0, 8), "Fencing-"));
    if (!kept) fields.remove(name);
  }
  constexpr std::array<std::string_view, 11> kHopByHop = {
      "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
      "TE",         "Trailer",    "Upgrade",          "Transfer-Encoding",  "Content-Length",
      "Expect"};
  for (const std::string_view name : kHopByHop) fields.remove(name);
}

std::string_view reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 422: return "Unprocessable Content";
    case 428: return "Precondition Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "Answer";
  }
}

BodyReader::BodyReader(Framing framing) : framing_(framing), left_(framing.length) {
  if (framing.kind == Framing::Kind::Chunked) state_ = State::Size;
  const bool empty = framing.kind == Framing::Kind::None ||
                     (framing.kind == Framing::Kind::Length && framing.length == 0);
  if (empty) state_ = State::Done;
}

Result<BodyReader::Piece> BodyReader::next(std::string_view in) {
  if (in.empty()) return Piece{};
  switch (state_) {
    case State::Done: return Piece{};
    case State::Size: return size_line(in);
    case State::Trailer: return trailer_line(in);
    case State::AfterData:
      if (in.size() < kLineEnd.size()) return Piece{};
      if (!in.starts_with(kLineEnd)) return invalid("a chunk that is longer than its size");
      state_ = State::Size;
      return Piece{kLineEnd.size(), {}};
    case State::Data: break;
  }
  if (until_close()) return Piece{in.size(), in};
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, in.size()));
  left_ -= size;
  if (left_ == 0) {
    state_ = framing_.kind == Framing::Kind::Chunked ? State::AfterData : State::Done;
  }
  return Piece{size, in.substr(0, size)};
}

Result<BodyReader::Piece> BodyReader::size_line(std::string_view in) {
  const std::size_t end = in.substr(0, kMostSizeLine).find('\n');
  if (end == in.npos) {
    if (in.size() >= kMostSizeLine) return invalid("a chunk size that does not end");
    return Piece{};
  }
  if (end == 0 || in[end - 1] != '\r') return invalid("a line that does not end in CRLF");
  const std::string_view line = in.substr(0, end - 1);
  const auto size = parse_chunk_size(line);
  if (!size || !is_field_value(line)) return invalid("a chunk size that is no number");
  left_ = *size;
  state_ = left_ == 0 ? State::Trailer : State::Data;
  return Piece{end + 1, {}};
}

// Trailers are dropped: nobody behind may take one for a header.
Result<BodyReader::Piece> BodyReader::trailer_line(std::string_view in) {
  const std::size_t end = in.find('\n');
  if (trailers_ + std::min(end, in.size()) > kMostTrailers) return invalid("too long a trailer");
  if (end == in.npos) return Piece{};
  if (end == 0 || in[end - 1] != '\r') return invalid("a line that does not end in CRLF");
  if (end == 1) state_ = State::Done;
  trailers_ += end;
  return Piece{end + 1, {}};
}

}  // namespace stint::net::http
