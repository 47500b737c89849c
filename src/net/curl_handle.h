// One libcurl handle with what every request of ours wants. Not thread-safe.
#pragma once

#include <curl/curl.h>

#include <functional>
#include <string>
#include <string_view>

#include "net/http_client.h"

namespace stint::net {

class CurlHandle {
 public:
  CurlHandle(const TlsFiles& tls, bool proxies);
  ~CurlHandle();
  CurlHandle(const CurlHandle&) = delete;
  CurlHandle& operator=(const CurlHandle&) = delete;

  CURL* get() { return curl_; }
  // `request` must live until the transfer has ended.
  void prepare(const HttpRequest& request, std::function<bool(std::string_view)> take);
  HttpOutcome outcome(CURLcode code);

 private:
  static std::size_t read_body(char* to, std::size_t size, std::size_t count, void* self);
  static std::size_t take_answer(const char* from, std::size_t size, std::size_t count, void* self);

  CURL* curl_ = nullptr;
  curl_slist* headers_ = nullptr;
  char error_[CURL_ERROR_SIZE] = {};
  const HttpRequest* request_ = nullptr;
  std::function<bool(std::string_view)> take_;
  std::size_t sent_ = 0;  // bytes of the body that libcurl has taken
  bool touched_ = false;  // libcurl has asked for the body: from here on it may be on its way
  std::string body_;
  bool too_long_ = false;
};

}  // namespace stint::net
