// An HTTP client: one request and its answer, or an answer that goes on for ever.
//
// What its users need above all is to know whether a request can have reached the server: only one
// that certainly did not may be sent again to somebody else. So a failure says so, and nothing here
// ever repeats a request by itself.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace stint::net {

struct HttpRequest {
  std::string url;                        // http:// or https://
  std::string body;                       // empty: GET; else POST
  std::vector<std::string> headers = {};  // "Name: value"
  Millis timeout{5000};                   // for all of it
  Millis connect_timeout{5000};           // for the part before anything is sent
  std::size_t most_bytes = 64U << 20U;    // a longer answer is a failure
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

struct HttpFailure {
  enum class Kind {
    NotSent,    // the server has certainly not seen the request
    MaybeSent,  // it may have been carried out
  };
  Kind kind = Kind::NotSent;
  bool tls = false;   // the two sides could not agree on encryption or identity
  bool time = false;  // the time was up
  std::string text;   // for people, without any secret
};

struct HttpOutcome {
  HttpAnswer answer;
  std::optional<HttpFailure> failure;
  explicit operator bool() const { return !failure; }
};

// An answer that is read as it comes. One thread runs it; any thread may stop it.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // Sends the request and hands over what comes, until the server ends it, `take` returns false,
  // stop() is called or something fails. `timeout` of the request does not apply. The answer's body
  // is empty unless its status is not 200.
  virtual HttpOutcome run(const HttpRequest& request,
                          const std::function<bool(std::string_view)>& take) = 0;
  // Also before run(): then that returns at once. For good.
  virtual void stop() = 0;
};

// Thread safety: every method may be called from any thread.
class HttpClient {
 public:
  virtual ~HttpClient() = default;
  virtual HttpOutcome send(const HttpRequest& request) = 0;
  virtual std::unique_ptr<HttpStream> stream() = 0;
};

struct TlsFiles {
  std::string authorities;  // PEM; empty: the system's
  std::string certificate;  // PEM, our own; empty: none
  std::string key;          // PEM
};

struct HttpClientOptions {
  TlsFiles tls;
  std::size_t most_connections = 8;  // at a time; more requests wait for their turn
  bool proxies = false;  // those of the environment (https_proxy, no_proxy ...); false: none
};

// Over libcurl: HTTP/1.1, connections kept alive, never redirected.
std::unique_ptr<HttpClient> make_http_client(HttpClientOptions options, const Clock& clock);

}  // namespace stint::net
