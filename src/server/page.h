// The files of the web page, as they stand in their module: no key is needed for them, since they
// hold nothing but the program. What they show is asked for under /v1, with a key.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/http/server.h"

namespace stint::server {

// Views into the module, which stays loaded for the life of the process.
struct PageFile {
  std::string_view path;  // "/", "/assets/page.js"
  std::string_view type;
  std::string_view etag;  // with its quotes
  std::string_view plain;
  std::string_view gzip;
};

// The answer to a request for a path of the page; empty: the page has no such path. No files (the
// module is not installed): "/" says so.
std::optional<net::http::Answer> page_answer(const std::vector<PageFile>& files,
                                             const net::http::RequestHead& head,
                                             std::string_view path);

// The entry of the module; see store/module.h.
struct PageRequest {};
using OpenedPage = Result<std::vector<PageFile>>;
using PageEntry = void(const PageRequest& request, const Clock& clock, OpenedPage* answer);
constexpr const char* kPageEntry = "stint_open_page";

}  // namespace stint::server
