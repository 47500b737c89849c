#include <atomic>
#include <condition_variable>

#include "base/check.h"
#include "base/mutex.h"
#include "base/text.h"
#include "net/curl_handle.h"

namespace stint::net {
namespace {

class CurlStream final : public HttpStream {
 public:
  explicit CurlStream(const HttpClientOptions& options)
      : handle_(options.tls, options.proxies), multi_(::curl_multi_init()) {
    CHECK(multi_ != nullptr, "libcurl: out of memory");
  }
  ~CurlStream() override { ::curl_multi_cleanup(multi_); }
  CurlStream(const CurlStream&) = delete;
  CurlStream& operator=(const CurlStream&) = delete;

  HttpOutcome run(const HttpRequest& request,
                  const std::function<bool(std::string_view)>& take) override {
    handle_.prepare(request, [&](std::string_view piece) { return !stopped_ && take(piece); });
    ::curl_multi_add_handle(multi_, handle_.get());
    CURLcode code = CURLE_ABORTED_BY_CALLBACK;
    while (!stopped_) {
      int running = 0;
      if (::curl_multi_perform(multi_, &running) != CURLM_OK) break;
      if (running == 0) {
        int left = 0;
        if (const CURLMsg* message = ::curl_multi_info_read(multi_, &left)) {
          code = message->data.result;
        }
        break;
      }
      // stop() wakes it; the limit only matters to libcurl's own timers.
      ::curl_multi_poll(multi_, nullptr, 0, 60'000, nullptr);
    }
    ::curl_multi_remove_handle(multi_, handle_.get());
    return handle_.outcome(code);
  }

  void stop() override {
    stopped_ = true;
    ::curl_multi_wakeup(multi_);
  }

 private:
  CurlHandle handle_;
  CURLM* const multi_;
  std::atomic<bool> stopped_ = false;
};

class CurlClient final : public HttpClient {
 public:
  CurlClient(HttpClientOptions options, const Clock& clock)
      : options_(std::move(options)), clock_(clock) {}

  HttpOutcome send(const HttpRequest& request) override {
    const MonoTime deadline = clock_.mono() + request.timeout;
    auto handle = take(request.timeout);
    if (!handle) {
      HttpOutcome out;
      out.failure = HttpFailure{.kind = HttpFailure::Kind::NotSent,
                                .tls = false,
                                .time = true,
                                .text = "too many requests at a time"};
      return out;
    }
    HttpRequest timed = request;
    timed.timeout = std::chrono::duration_cast<Millis>(deadline - clock_.mono());
    handle->prepare(timed, nullptr);
    HttpOutcome out = handle->outcome(::curl_easy_perform(handle->get()));
    // What is left on the connection of a failed request belongs to nobody.
    give_back(out ? std::move(handle) : nullptr);
    return out;
  }

  std::unique_ptr<HttpStream> stream() override { return std::make_unique<CurlStream>(options_); }

 private:
  std::unique_ptr<CurlHandle> take(Millis patience) {
    {
      MutexLock lock(mutex_);
      const bool free = turn_.wait_for(lock, patience, [this]() REQUIRES(mutex_) {
        return in_use_ < options_.most_connections;
      });
      if (!free) return nullptr;
      ++in_use_;
      if (!idle_.empty()) {
        // The last one used: the others' connections fall idle and are closed by the server.
        auto handle = std::move(idle_.back());
        idle_.pop_back();
        return handle;
      }
    }
    return std::make_unique<CurlHandle>(options_.tls, options_.proxies);
  }

  void give_back(std::unique_ptr<CurlHandle> handle) {
    {
      const MutexLock lock(mutex_);
      --in_use_;
      if (handle) idle_.push_back(std::move(handle));
    }
    turn_.notify_one();
  }

  const HttpClientOptions options_;
  const Clock& clock_;

  Mutex mutex_;
  std::condition_variable_any turn_;
  std::vector<std::unique_ptr<CurlHandle>> idle_ GUARDED_BY(mutex_);
  std::size_t in_use_ GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::unique_ptr<HttpClient> make_http_client(HttpClientOptions options, const Clock& clock) {
  return std::make_unique<CurlClient>(std::move(options), clock);
}

}  // namespace stint::net
