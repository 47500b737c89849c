#include "net/http/wire.h"

namespace stint::net::http {
namespace {

constexpr std::size_t kReadBytes = std::size_t{16} << 10U;
constexpr auto kQuietly = asio::as_tuple(asio::use_awaitable);

}  // namespace

Task<bool> Wire::fill() {
  if (!socket_.is_open() || timed_out_) co_return false;
  if (at_ > 0) {
    buffer_.erase(0, at_);
    at_ = 0;
  }
  const std::size_t had = buffer_.size();
  buffer_.resize(had + kReadBytes);
  const auto [failed, got] =
      co_await socket_.async_read_some(asio::buffer(buffer_.data() + had, kReadBytes), kQuietly);
  buffer_.resize(had + got);
  co_return !failed && got > 0;
}

Task<bool> Wire::write(std::string_view one, std::string_view two, std::string_view three) {
  if (!socket_.is_open() || timed_out_) co_return false;
  const std::array<asio::const_buffer, 3> parts = {asio::buffer(one), asio::buffer(two),
                                                   asio::buffer(three)};
  const auto [failed, sent] = co_await asio::async_write(socket_, parts, kQuietly);
  (void)sent;
  co_return !failed;
}

void Wire::consume(std::size_t bytes) {
  at_ += bytes;
  if (at_ == buffer_.size()) {
    buffer_.clear();
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

void Wire::shut_sending() {
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
}

bool Wire::quiet() {
  if (!socket_.is_open() || !unread().empty()) return false;
  char byte = 0;
  error_code failed;
  socket_.non_blocking(true, failed);
  if (failed) return false;
  socket_.receive(asio::buffer(&byte, 1), tcp::socket::message_peek, failed);
  return failed == asio::error::would_block;
}

}  // namespace stint::net::http
