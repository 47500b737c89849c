#include "net/http/wire.h"

#include <poll.h>

#include <charconv>

#include "base/text.h"

namespace stint::net::http {

std::string chunk(std::string_view data) {
  if (data.empty()) return {};
  char size[20];
  const auto end = std::to_chars(size, size + sizeof size, data.size(), 16).ptr;
  return cat(std::string_view(size, end), "\r\n", data, "\r\n");
}

// Asked for once: each time is a system call.
bool Wire::never_block() {
  if (!blocks_) return true;
  error_code failed;
  socket_.non_blocking(true, failed);
  blocks_ = failed.failed();
  return !blocks_;
}

Task<bool> Wire::secure(std::shared_ptr<TlsContext> context) {
  context_ = std::move(context);
  tls_ = std::make_unique<asio::ssl::stream<tcp::socket&>>(socket_, *context_);
  const auto [failed] = co_await tls_->async_handshake(asio::ssl::stream_base::server, kQuietly);
  co_return !failed;
}

// The bytes land in a buffer that all connections share; only what is there is kept. Ten thousand
// that wait would otherwise hold a buffer each.
Task<bool> Wire::fill() {
  if (!socket_.is_open() || timed_out_) co_return false;
  if (at_ > 0) {
    buffer_.erase(0, at_);
    at_ = 0;
  }
  error_code failed;
  std::size_t got = 0;
  if (tls_) {
    const std::size_t had = buffer_.size();
    constexpr std::size_t kReadBytes = std::size_t{16} << 10U;
    buffer_.resize(had + kReadBytes);
    const auto [wrong, count] =
        co_await tls_->async_read_some(asio::buffer(buffer_.data() + had, kReadBytes), kQuietly);
    buffer_.resize(had + count);
    co_return !wrong && count > 0;
  }
  if (!never_block()) co_return false;
  do {
    const auto [stopped] = co_await socket_.async_wait(tcp::socket::wait_read, kQuietly);
    if (stopped || timed_out_ || !socket_.is_open()) co_return false;
    got = socket_.read_some(asio::buffer(scratch_.data(), scratch_.size()), failed);
  } while (failed == asio::error::would_block);
  if (failed || got == 0) co_return false;
  buffer_.append(scratch_.data(), got);
  co_return true;
}

Task<bool> Wire::write(std::string_view one, std::string_view two, std::string_view three) {
  if (!socket_.is_open() || timed_out_) co_return false;
  const std::array<asio::const_buffer, 3> parts = {asio::buffer(one), asio::buffer(two),
                                                   asio::buffer(three)};
  if (tls_) {
    const auto [failed, sent] = co_await asio::async_write(*tls_, parts, kQuietly);
    co_return !failed;
  }
  const auto [failed, sent] = co_await asio::async_write(socket_, parts, kQuietly);
  co_return !failed;
}

std::size_t Wire::push(std::string_view one, std::string_view two) {
  if (!socket_.is_open() || timed_out_ || tls_) return 0;
  if (!never_block()) return 0;
  error_code failed;
  const std::array<asio::const_buffer, 2> parts = {asio::buffer(one), asio::buffer(two)};
  return socket_.write_some(parts, failed);
}

void Wire::consume(std::size_t bytes) {
  at_ += bytes;
  if (at_ == buffer_.size()) {
    // What a long request took is given back.
    constexpr std::size_t kKept = 1024;
    if (buffer_.capacity() > kKept) {
      std::string().swap(buffer_);
    } else {
      buffer_.clear();
    }
    at_ = 0;
  }
}

void Wire::look(MonoTime now) {
  if (now < deadline_ || timed_out_) return;
  timed_out_ = true;
  error_code ignored;
  socket_.cancel(ignored);
}

void Wire::close() {
  error_code ignored;
  socket_.close(ignored);
}

os::Fd Wire::release() {
  if (tls_ || !socket_.is_open()) return {};
  error_code failed;
  const int fd = socket_.release(failed);
  return failed ? os::Fd() : os::Fd(fd);
}

void Wire::shut_sending() {
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
}

bool Wire::quiet() {
  if (!socket_.is_open() || !unread().empty()) return false;
  char byte = 0;
  if (!never_block()) return false;
  error_code failed;
  socket_.receive(asio::buffer(&byte, 1), tcp::socket::message_peek, failed);
  return failed == asio::error::would_block;
}

bool Wire::ended() {
  if (!socket_.is_open()) return true;
  char byte = 0;
  if (!never_block()) return true;
  error_code failed;
  const std::size_t got =
      socket_.receive(asio::buffer(&byte, 1), tcp::socket::message_peek, failed);
  return failed != asio::error::would_block && got == 0;
}

bool Wire::hung_up() {
  if (!socket_.is_open()) return true;
  pollfd asked{.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&asked, 1, 0) > 0;
}

void Wire::say_plain(std::string_view text) {
  error_code ignored;
  if (never_block()) socket_.write_some(asio::buffer(text), ignored);
}

}  // namespace stint::net::http
