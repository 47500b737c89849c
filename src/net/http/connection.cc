// The server's side of one connection.
#include "base/json_text.h"
#include "base/text.h"
#include "net/http/wire.h"

namespace stint::net::http {
namespace {

constexpr Millis kLinger{1000};
constexpr std::size_t kMostLingered = std::size_t{1} << 20U;
constexpr std::size_t kMostGathered = std::size_t{64} << 10U;
constexpr std::string_view kSpeakTls =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 94\r\n"
    "Connection: close\r\n\r\n"
    "{\"error\":{\"code\":\"invalid\",\"message\":\"this port speaks TLS: use https://. Nothing "
    "was "
    "done.\"}}";

std::string error_body(std::string_view code, std::string_view message) {
  JsonText inner;
  inner.field("code", code).field("message", message);
  return cat("{\"error\":", inner.done(), "}");
}

}  // namespace

void append_head(std::string& out, const Answer& answer, bool keep) {
  const auto add = [&out](const auto&... pieces) { (detail::append(out, pieces), ...); };
  add("HTTP/1.1 ", answer.status, ' ', reason_of(answer.status), "\r\n");
  // "Not modified" has no body; a length would be that of the body that is not sent.
  if (answer.status != 304) {
    add("Content-Type: ", answer.type, "\r\nContent-Length: ", answer.body.size(), "\r\n");
  }
  for (const Field& field : answer.fields) add(field.name, ": ", field.value, "\r\n");
  if (!keep) add("Connection: close\r\n");
  add("\r\n");
}

PendingCall::PendingCall(std::shared_ptr<Hub> owner, std::shared_ptr<Connection> connection,
                         RequestHead head)
    : hub(std::move(owner)),
      wake(hub->loop, asio::steady_timer::time_point::max()),
      connection_(std::move(connection)),
      head_(std::move(head)) {}

void PendingCall::decide(Decision decision) {
  asio::dispatch(hub->loop, [self = shared_from_this(), made = std::move(decision)]() mutable {
    self->decided = std::move(made);
    self->wake.cancel();
  });
}

void PendingCall::cut() {
  asio::dispatch(hub->loop, [connection = connection_] { connection->cut(); });
}

std::shared_ptr<Feed> PendingCall::stream(Answer head) {
  auto feed = std::make_shared<OpenFeed>(hub);
  decide(Streaming{std::move(head), feed});
  return feed;
}

void PendingCall::on_gone(std::function<void()> then) {
  if (std::holds_alternative<std::monostate>(decided)) connection_->watch_client(std::move(then));
}

Connection::Connection(Hub& hub, tcp::socket socket, Moved* from)
    : hub_(hub), client_(std::move(socket), hub.clock, hub.scratch) {
  if (from != nullptr) {
    fresh_ = false;
    returned_ = from->returned;
    peer_ = std::move(from->peer);
    unsent_ = std::move(from->unsent);
    client_.put_back(std::move(from->unread));
    return;
  }
  error_code failed;
  const auto other = client_.socket().remote_endpoint(failed);
  if (!failed) peer_ = cat(other.address().to_string(), ":", other.port());
}

void Connection::look(MonoTime now) {
  client_.look(now);
  if (upstream_) upstream_->look(now);
  // Its last bytes (TLS says good-bye, or a request was sent ahead) are not read, so that nothing
  // wakes us for the end behind them.
  if (minding_ && !watching_ && !cut_ && client_.hung_up()) cut();
}

void Connection::cut() {
  cut_ = true;
  client_.close();
  if (upstream_) upstream_->close();
  if (pending_ != nullptr) pending_->wake.cancel();
  if (feed_ != nullptr) feed_->wake.cancel();
  if (const auto gone = std::exchange(gone_, nullptr)) gone();
}

void Connection::watch_client(std::function<void()> gone) {
  gone_ = std::move(gone);
  minding_ = true;
  if (watching_ || cut_ || !client_.unread().empty()) return;
  watching_ = true;
  client_.socket().async_wait(tcp::socket::wait_read,
                              [self = shared_from_this()](error_code failed) {
                                if (failed || !self->watching_) return;
                                self->watching_ = false;
                                if (self->client_.ended()) self->cut();
                              });
}

// The next read must not find an old wait beside it.
void Connection::unwatch_client() {
  gone_ = nullptr;
  minding_ = false;
  if (!std::exchange(watching_, false)) return;
  error_code ignored;
  client_.socket().cancel(ignored);
}

Task<void> Connection::run() {
  bool more = true;
  if (hub_.tls) {
    client_.allow(hub_.options.limits.head_time);
    more = co_await client_.secure(hub_.tls);
    // Harmless to who speaks TLS: the connection is over.
    if (!more) client_.say_plain(kSpeakTls);
  }
  if (!unsent_.empty()) {
    idle_ = false;
    client_.allow(hub_.options.limits.stall_time);
    const std::string rest = std::exchange(unsent_, {});
    more = co_await client_.write(rest);
  }
  while (more && (!hub_.stopping || head_is_here())) {
    if (!hub_.stopping && move_to_lane()) co_return;
    idle_ = true;
    auto head = co_await read_head();
    if (!head) break;
    idle_ = false;
    more = co_await serve(std::move(*head));
  }
  co_await linger();
}

// A lane had read it before it was given back: it is answered also by a server that stops.
bool Connection::head_is_here() const {
  const auto end = find_head_end(client_.unread());
  return end && *end > 0;
}

// Who asks for one short thing after another is served with the others of its kind.
bool Connection::move_to_lane() {
  constexpr unsigned kEnough = 2;
  constexpr unsigned kMostDoubled = 10;
  const unsigned enough = kEnough << std::min(returned_, kMostDoubled);
  if (short_ones_ < enough || !hub_.lanes || cut_ || !client_.unread().empty()) return false;
  os::Fd fd = client_.release();
  if (!fd) return false;
  hub_.lanes->take({.fd = std::move(fd), .peer = peer_, .returned = returned_});
  return true;
}

// A close with bytes unread makes the kernel send a reset, which may overtake our last answer.
Task<void> Connection::linger() {
  if (cut_ || !client_.open()) co_return;
  client_.forgive();
  client_.shut_sending();
  client_.allow(kLinger);
  std::size_t dropped = 0;
  while (dropped < kMostLingered && co_await client_.fill()) {
    dropped += client_.unread().size();
    client_.consume(client_.unread().size());
  }
  client_.close();
}

Task<std::optional<RequestHead>> Connection::read_head() {
  const std::size_t most = hub_.options.limits.head_bytes;
  const Limits& limits = hub_.options.limits;
  const bool fresh = std::exchange(fresh_, false) && limits.first_time.count() > 0;
  const Millis quiet = fresh ? limits.first_time : limits.idle_time;
  client_.allow(client_.unread().empty() ? quiet : limits.head_time);
  while (true) {
    const auto end = find_head_end(client_.unread().substr(0, most));
    if (!end) {
      co_await refuse(400, end.error().message);
      co_return std::nullopt;
    }
    if (*end > 0) {
      auto head = parse_request(client_.unread().substr(0, *end));
      client_.consume(*end);
      if (head) co_return std::move(*head);
      co_await refuse(400, head.error().message);
      co_return std::nullopt;
    }
    if (client_.full(most)) {
      co_await refuse(431, cat("the head of the request is longer than ", most, " bytes"));
      co_return std::nullopt;
    }
    const bool first = client_.unread().empty();
    if (!co_await client_.fill()) {
      if (client_.timed_out() && !first) co_await refuse(408, "the head did not come in time");
      co_return std::nullopt;
    }
    if (first) client_.allow(hub_.options.limits.head_time);
  }
}

Task<bool> Connection::serve(RequestHead head) {
  const auto framing = framing_of(head);
  if (!framing) co_return co_await refuse(400, framing.error().message);
  const Limits& limits = hub_.options.limits;
  if (framing->length > limits.body_bytes) {
    co_return co_await refuse(413, cat("the body is longer than ", limits.body_bytes, " bytes"));
  }
  body_.emplace(*framing);
  spool_.reset();
  taken_ = 0;
  keep_ = !head.http10 && keeps_alive(head.fields, head.http10);
  continue_due_ = !head.http10 && !body_->done() && head.fields.lists("Expect", "100-continue");
  request_until_ = hub_.clock.mono() + limits.request_time;
  client_.allow_for_ever();
  const bool head_only = head.method == "HEAD";
  const auto call =
      std::make_shared<PendingCall>(hub_.shared_from_this(), shared_from_this(), std::move(head));
  hub_.handler.request(call);
  Decision made = std::exchange(call->decided, Decision());
  if (std::holds_alternative<std::monostate>(made)) made = co_await decision(*call);
  if (const auto* order = std::get_if<Collect>(&made)) {
    // Mostly all of it came with the head: also of some who would wait to be asked for it.
    auto here = take_pieces();
    const bool whole = here && body_->done() && here->size() <= order->most;
    // g++ 12 destroys twice what one branch of a ?: with a co_await has made.
    std::optional<std::string> text;
    if (whole) {
      text = std::move(*here);
    } else {
      text = co_await collect(order->most, std::move(here));
    }
    if (!text) co_return false;
    order->then(std::move(*text));
    made = co_await decision(*call);
  }
  if (const auto* order = std::get_if<Gather>(&made)) {
    if (!co_await gather()) co_return false;
    order->then();
    made = co_await decision(*call);
  }
  if (const auto* order = std::get_if<Forward>(&made)) {
    if (co_await gather()) co_return co_await forward(call->head(), *order);
    if (order->ended) order->ended(Forwarded::NotSent);
    co_return false;
  }
  if (const auto* order = std::get_if<Streaming>(&made)) {
    (void)take_pieces();
    co_return co_await stream(*order, head_only);
  }
  const auto* answer = std::get_if<Answer>(&made);
  if (answer == nullptr) co_return false;
  short_ones_ = answer->is_short ? short_ones_ + 1 : 0;
  // What is here of the body is dropped; what is not is not waited for.
  (void)take_pieces();
  const bool keep = keep_ && body_->done() && !hub_.stopping;
  if (const auto sent = send_at_once(*answer, keep, head_only)) co_return *sent;
  co_return co_await send_rest(*answer, keep);
}

Task<Decision> Connection::decision(PendingCall& call) {
  pending_ = &call;
  while (std::holds_alternative<std::monostate>(call.decided) && !cut_) {
    co_await call.wake.async_wait(kQuietly);
  }
  pending_ = nullptr;
  unwatch_client();
  co_return std::exchange(call.decided, Decision());
}

// Nothing: a rest is to be sent yet.
std::optional<bool> Connection::send_at_once(const Answer& answer, bool keep, bool head_only) {
  client_.allow(hub_.options.limits.stall_time);
  std::string head;
  constexpr std::size_t kUsual = 256;
  head.reserve(kUsual);
  append_head(head, answer, keep);
  const std::string_view body = head_only ? std::string_view() : answer.body;
  const std::size_t pushed = client_.push(head, body);
  if (pushed < head.size() + body.size()) {
    unsent_ = cat(std::string_view(head).substr(std::min(pushed, head.size())),
                  body.substr(pushed - std::min(pushed, head.size())));
    return std::nullopt;
  }
  if (answer.sent) answer.sent(true);
  return keep;
}

Task<bool> Connection::send_rest(const Answer& answer, bool keep) {
  const std::string rest = std::exchange(unsent_, {});
  const bool sent = co_await client_.write(rest);
  if (answer.sent) answer.sent(sent);
  co_return sent&& keep;
}

// The connection ends: what follows on it cannot be told from this request.
Task<bool> Connection::refuse(int status, std::string_view why) {
  client_.forgive();
  const Answer answer{
      .status = status,
      .body = error_body(status == 503 ? "unavailable" : "invalid",
                         cat("this request was refused: ", why, ". Nothing was done.")),
      .fields = {},
      .type = "application/json"};
  if (!send_at_once(answer, false, false)) co_await send_rest(answer, false);
  co_return false;
}

Result<std::string> Connection::take_pieces() {
  std::string out;
  while (!body_->done() && out.size() < kMostGathered) {
    const auto piece = body_->next(client_.unread());
    if (!piece) return piece.error();
    if (piece->consumed == 0) break;
    taken_ += piece->data.size();
    out += piece->data;
    client_.consume(piece->consumed);
  }
  return out;
}

Task<std::optional<std::string>> Connection::collect(std::size_t most, Result<std::string> pieces) {
  if (continue_due_) co_await client_.write("HTTP/1.1 100 Continue\r\n\r\n");
  std::string out;
  for (;; pieces = take_pieces()) {
    if (!pieces) {
      co_await refuse(400, pieces.error().message);
      co_return std::nullopt;
    }
    out += *pieces;
    if (out.size() > most) {
      co_await refuse(413, cat("the body is longer than ", most, " bytes"));
      co_return std::nullopt;
    }
    if (body_->done()) break;
    client_.allow_until(
        std::min(request_until_, hub_.clock.mono() + hub_.options.limits.stall_time));
    if (!co_await client_.fill()) {
      if (client_.timed_out()) co_await refuse(408, "the body did not come in time");
      co_return std::nullopt;
    }
  }
  client_.allow_for_ever();
  co_return out;
}

// A request goes on when it is whole. A half that a client or a frozen proxy left behind would be
// carried out by an upstream that takes no notice of lengths.   G5
Task<bool> Connection::gather() {
  if (spool_) co_return true;
  spool_.emplace();
  if (continue_due_) co_await client_.write("HTTP/1.1 100 Continue\r\n\r\n");
  while (true) {
    const auto pieces = take_pieces();
    const bool fits = taken_ <= hub_.options.limits.body_bytes;
    if (!pieces || !fits) {
      // g++ 12 destroys a temporary of a conditional inside co_await twice.
      const int status = pieces ? 413 : 400;
      const std::string why = pieces ? "the body is too long" : pieces.error().message;
      co_return co_await refuse(status, why);
    }
    if (const auto kept = spool_->add(*pieces); !kept) {
      const std::string why = cat("there is no room for its body here: ", kept.error().message);
      co_return co_await refuse(503, why);
    }
    if (body_->done()) break;
    client_.allow_until(
        std::min(request_until_, hub_.clock.mono() + hub_.options.limits.stall_time));
    if (co_await client_.fill()) continue;
    if (client_.timed_out()) co_await refuse(408, "the body did not come in time");
    co_return false;
  }
  client_.allow_for_ever();
  co_return true;
}

}  // namespace stint::net::http
