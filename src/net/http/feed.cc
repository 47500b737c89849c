// Answers that go on: the server's side of an event stream.
#include "base/text.h"
#include "net/http/wire.h"

namespace stint::net::http {

OpenFeed::OpenFeed(std::shared_ptr<Hub> owner)
    : hub(std::move(owner)), wake(hub->loop, asio::steady_timer::time_point::max()) {}

void OpenFeed::put(std::string piece) {
  if (gone_ || piece.empty()) return;
  waiting_ += piece.size();
  pieces_.push_back(std::move(piece));
  wake.cancel();
}

void OpenFeed::end() {
  ended_ = true;
  wake.cancel();
}

std::string OpenFeed::take() {
  std::string out;
  for (const std::string& piece : pieces_) out += piece;
  pieces_.clear();
  waiting_ = 0;
  return out;
}

void OpenFeed::leave() {
  gone_ = true;
  pieces_.clear();
  waiting_ = 0;
}

Task<bool> Connection::stream(const Streaming& order, bool head_only) {
  const std::shared_ptr<OpenFeed> feed = order.feed;
  feed_ = feed.get();
  idle_ = true;
  std::string text = cat("HTTP/1.1 ", order.head.status, ' ', reason_of(order.head.status),
                         "\r\nContent-Type: ", order.head.type,
                         "\r\nTransfer-Encoding: chunked\r\nCache-Control: no-store\r\n");
  for (const Field& field : order.head.fields) text += cat(field.name, ": ", field.value, "\r\n");
  text += "Connection: close\r\n\r\n";
  if (head_only) feed->end();  // nothing follows, not even the end of a body
  if (!head_only && !order.head.body.empty()) text += chunk(order.head.body);
  watch_client({});
  bool whole = !hub_.stopping;
  while (whole && !cut_) {
    if (!text.empty()) {
      client_.allow(hub_.options.limits.stall_time);
      whole = co_await client_.write(text);
      client_.allow_for_ever();
      text.clear();
      continue;
    }
    if (feed->waiting() > 0 && !head_only) {
      text = chunk(feed->take());
    } else if (feed->ended()) {
      break;
    } else {
      co_await feed->wake.async_wait(kQuietly);
    }
  }
  if (whole && !cut_ && !head_only) (void)co_await client_.write("0\r\n\r\n");
  unwatch_client();
  feed_ = nullptr;
  feed->leave();
  co_return false;
}

}  // namespace stint::net::http
