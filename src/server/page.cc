#include "server/page.h"

#include "server/answers.h"

namespace stint::server {
namespace {

constexpr std::string_view kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

void add_page_fields(Answer& answer) {
  answer.fields.push_back({"Content-Security-Policy", std::string(kPagePolicy)});
  answer.fields.push_back({"X-Content-Type-Options", "nosniff"});
  answer.fields.push_back({"Referrer-Policy", "no-referrer"});
  answer.fields.push_back({"Cross-Origin-Opener-Policy", "same-origin"});
  // Kept, but asked for again each time: a newer server has a newer page.
  answer.fields.push_back({"Cache-Control", "no-cache"});
  answer.fields.push_back({"Vary", "Accept-Encoding"});
}

Answer file_answer(const PageFile& file, const net::http::RequestHead& head) {
  Answer out{.status = 200, .body = {}, .fields = {}, .type = std::string(file.type)};
  add_page_fields(out);
  out.fields.push_back({"ETag", std::string(file.etag)});
  if (head.fields.lists("If-None-Match", file.etag)) {
    out.status = 304;
    return out;
  }
  const bool packed = head.fields.lists("Accept-Encoding", "gzip");
  if (packed) out.fields.push_back({"Content-Encoding", "gzip"});
  out.body = std::string(packed ? file.gzip : file.plain);
  return out;
}

}  // namespace

std::optional<Answer> page_answer(const std::vector<PageFile>& files,
                                  const net::http::RequestHead& head, std::string_view path) {
  const bool bare = files.empty() && path == "/";
  const PageFile* found = nullptr;
  for (const PageFile& file : files) {
    if (file.path == path) found = &file;
  }
  if (!bare && found == nullptr) return std::nullopt;
  if (head.method != "GET" && head.method != "HEAD") {
    Answer no = error_answer(405, invalid("this path takes GET"));
    no.fields.push_back({"Allow", "GET, HEAD"});
    return no;
  }
  if (found != nullptr) return file_answer(*found, head);
  Answer out{.status = 200,
             .body =
                 "This is a stint server. Its page is not installed: the module stint_page.so "
                 "is missing beside the program or in lib/stint. The API is under /v1; "
                 "/v1/openapi.json describes it.\n",
             .fields = {},
             .type = "text/plain; charset=utf-8"};
  add_page_fields(out);
  return out;
}

}  // namespace stint::server
