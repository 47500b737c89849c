#include "net/curl_handle.h"

#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "base/text.h"

namespace stint::net {
namespace {

void initialise_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    CHECK(::curl_global_init(CURL_GLOBAL_ALL) == CURLE_OK, "libcurl cannot be initialised");
  });
}

// libcurl repeats a request on a new connection when a kept one dies before the first byte of the
// answer, also a POST. It needs the body again for that: it does not get it.
int refuse_rewind(void* /*self*/, curl_off_t /*offset*/, int /*origin*/) {
  return CURL_SEEKFUNC_FAIL;
}

bool is_tls(CURLcode code) {
  return code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION ||
         code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_SSL_CIPHER || code == CURLE_SSL_ISSUER_ERROR;
}

void set(CURL* curl, CURLoption option, const std::string& value) {
  if (!value.empty()) ::curl_easy_setopt(curl, option, value.c_str());
}

}  // namespace

CurlHandle::CurlHandle(const TlsFiles& tls, bool proxies) {
  initialise_once();
  curl_ = ::curl_easy_init();
  CHECK(curl_ != nullptr, "libcurl: out of memory");
  ::curl_easy_setopt(curl_, CURLOPT_NOSIGNAL, 1L);
  ::curl_easy_setopt(curl_, CURLOPT_ERRORBUFFER, error_);
  ::curl_easy_setopt(curl_, CURLOPT_PROTOCOLS_STR, "http,https");
  ::curl_easy_setopt(curl_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  ::curl_easy_setopt(curl_, CURLOPT_FOLLOWLOCATION, 0L);
  if (!proxies) ::curl_easy_setopt(curl_, CURLOPT_NOPROXY, "*");
  ::curl_easy_setopt(curl_, CURLOPT_TCP_KEEPALIVE, 1L);
  ::curl_easy_setopt(curl_, CURLOPT_TCP_KEEPIDLE, 30L);
  ::curl_easy_setopt(curl_, CURLOPT_TCP_KEEPINTVL, 10L);
  ::curl_easy_setopt(curl_, CURLOPT_READFUNCTION, &CurlHandle::read_body);
  ::curl_easy_setopt(curl_, CURLOPT_READDATA, this);
  ::curl_easy_setopt(curl_, CURLOPT_SEEKFUNCTION, &refuse_rewind);
  ::curl_easy_setopt(curl_, CURLOPT_SEEKDATA, this);
  ::curl_easy_setopt(curl_, CURLOPT_WRITEFUNCTION, &CurlHandle::take_answer);
  ::curl_easy_setopt(curl_, CURLOPT_WRITEDATA, this);
  set(curl_, CURLOPT_CAINFO, tls.authorities);
  set(curl_, CURLOPT_SSLCERT, tls.certificate);
  set(curl_, CURLOPT_SSLKEY, tls.key);
}

CurlHandle::~CurlHandle() {
  ::curl_easy_cleanup(curl_);
  ::curl_slist_free_all(headers_);
}

void CurlHandle::prepare(const HttpRequest& request, std::function<bool(std::string_view)> take) {
  request_ = &request;
  take_ = std::move(take);
  sent_ = 0;
  touched_ = false;
  body_.clear();
  too_long_ = false;
  error_[0] = 0;
  ::curl_slist_free_all(headers_);
  // No waiting for "100 Continue" before the body.
  headers_ = ::curl_slist_append(nullptr, "Expect:");
  for (const std::string& header : request.headers) {
    headers_ = ::curl_slist_append(headers_, header.c_str());
  }
  ::curl_easy_setopt(curl_, CURLOPT_HTTPHEADER, headers_);
  ::curl_easy_setopt(curl_, CURLOPT_URL, request.url.c_str());
  if (request.body.empty()) {
    ::curl_easy_setopt(curl_, CURLOPT_HTTPGET, 1L);
  } else {
    ::curl_easy_setopt(curl_, CURLOPT_POST, 1L);
    ::curl_easy_setopt(curl_, CURLOPT_POSTFIELDS, nullptr);
    ::curl_easy_setopt(curl_, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(request.body.size()));
  }
  // libcurl takes zero for "for ever".
  const auto at_least_one = [](Millis time) {
    return static_cast<long>(std::max<Millis::rep>(1, time.count()));
  };
  ::curl_easy_setopt(curl_, CURLOPT_TIMEOUT_MS, take_ ? 0L : at_least_one(request.timeout));
  ::curl_easy_setopt(curl_, CURLOPT_CONNECTTIMEOUT_MS, at_least_one(request.connect_timeout));
}

std::size_t CurlHandle::read_body(char* to, std::size_t size, std::size_t count, void* self) {
  auto& handle = *static_cast<CurlHandle*>(self);
  handle.touched_ = true;
  const std::string& body = handle.request_->body;
  const std::size_t length = body.copy(to, size * count, handle.sent_);
  handle.sent_ += length;
  return length;
}

std::size_t CurlHandle::take_answer(const char* from, std::size_t size, std::size_t count,
                                    void* self) {
  auto& handle = *static_cast<CurlHandle*>(self);
  const std::size_t length = size * count;
  long status = 0;
  ::curl_easy_getinfo(handle.curl_, CURLINFO_RESPONSE_CODE, &status);
  if (handle.take_ && status == 200) {
    return handle.take_(std::string_view(from, length)) ? length : 0;
  }
  handle.too_long_ = handle.body_.size() + length > handle.request_->most_bytes;
  if (handle.too_long_) return 0;
  handle.body_.append(from, length);
  return length;
}

HttpOutcome CurlHandle::outcome(CURLcode code) {
  HttpOutcome out;
  if (code == CURLE_OK) {
    long status = 0;
    ::curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &status);
    out.answer = {static_cast<int>(status), std::move(body_)};
    return out;
  }
  // A GET has no body: what is not known to have failed before it was sent may have been.
  const bool before = code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
                      code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION;
  const bool sent = request_->body.empty() ? !before : touched_;
  std::string text = error_[0] != 0 ? error_ : ::curl_easy_strerror(code);
  // A server that speaks no TLS answers in plain words and closes, and its reset may come first.
  if (code == CURLE_SSL_CONNECT_ERROR && text.find("SSL") == std::string::npos) {
    text = cat("no SSL connection came about: ", text);
  }
  if (too_long_) text = "the answer is too long";
  if (code == CURLE_OPERATION_TIMEDOUT) {
    text = sent ? "no answer within the time" : "no connection within the time";
  }
  out.failure =
      HttpFailure{.kind = sent ? HttpFailure::Kind::MaybeSent : HttpFailure::Kind::NotSent,
                  .tls = is_tls(code),
                  .time = code == CURLE_OPERATION_TIMEDOUT,
                  .text = printable(trim(text))};
  return out;
}

}  // namespace stint::net
