// A request on its way to the upstream and its answer on the way back, both streaming.
#include "base/json_text.h"
#include "base/text.h"
#include "net/http/wire.h"

namespace stint::net::http {
namespace {

constexpr std::size_t kMostIdleUpstreams = 256;
constexpr std::string_view kTooLate = "the body did not come in time";

std::string fields_text(const Fields& fields) {
  std::string out;
  for (const Field& field : fields.list()) {
    out += field.name;
    out += ": ";
    out += field.value;
    out += "\r\n";
  }
  return out;
}

std::string request_text(const RequestHead& head, bool chunked) {
  Fields fields = head.fields;
  const auto length = fields.first("Content-Length");
  const std::string size = length ? std::string(*length) : std::string();
  remove_hop_by_hop(fields);
  std::string out = cat(head.method, ' ', head.target, " HTTP/1.1\r\n", fields_text(fields));
  if (chunked) out += "Transfer-Encoding: chunked\r\n";
  if (!size.empty()) out += cat("Content-Length: ", size, "\r\n");
  return out + "\r\n";
}

struct AnswerShape {
  Framing framing;  // as the upstream sends it
  bool chunked = false;
  bool keep = false;
};

std::string answer_head_text(const ResponseHead& head, const AnswerShape& shape, bool bare) {
  Fields fields = head.fields;
  const auto length = fields.first("Content-Length");
  // Of an answer without a body: what the length would be.
  const std::string size =
      length && (shape.framing.kind == Framing::Kind::Length || bare) ? std::string(*length) : "";
  remove_hop_by_hop(fields);
  std::string out = cat("HTTP/1.1 ", head.status, ' ', head.reason, "\r\n", fields_text(fields));
  if (!size.empty()) out += cat("Content-Length: ", size, "\r\n");
  if (shape.chunked) out += "Transfer-Encoding: chunked\r\n";
  if (!shape.keep) out += "Connection: close\r\n";
  return out + "\r\n";
}

}  // namespace

struct Connection::Passing {
  Passing(Hub& hub, const RequestHead& asked, const Forward& how)
      : head(asked), order(how), sent(hub.loop, asio::steady_timer::time_point::max()) {}
  bool allowed() const { return !order.may_send || order.may_send(); }
  // The client is told that its body came too late, not what the upstream made of the half.
  bool too_late() const { return client_late && !begun; }

  const RequestHead& head;
  const Forward& order;
  std::shared_ptr<Wire> up;
  bool chunked = false;
  bool whole = false;        // the request was sent to its last byte
  bool sending = false;      // send_body() is at it
  bool abandoned = false;    // the upstream wants no more of it
  bool forbidden = false;    // may_send said no
  bool client_late = false;  // the body did not come in time
  int refusal = 0;           // the body is not what it should be: this status
  std::string why;
  bool begun = false;  // the client has seen a part of the answer
  bool client_gone = false;
  bool told = false;
  asio::steady_timer sent;  // rings when send_body() is done
};

Task<std::shared_ptr<Wire>> Connection::connect_upstream() {
  const MonoTime now = hub_.clock.mono();
  while (!hub_.idle.empty()) {
    const IdleUpstream idle = std::move(hub_.idle.back());
    hub_.idle.pop_back();
    if (now - idle.since < kMostIdle && idle.wire->quiet()) co_return idle.wire;
    idle.wire->close();
  }
  const Endpoint& to = hub_.options.upstream;
  std::vector<tcp::endpoint> places;
  error_code failed;
  if (const auto address = asio::ip::make_address(to.host, failed); !failed) {
    places.emplace_back(address, to.port);
  } else {
    tcp::resolver resolver(hub_.loop);
    const auto [missing, found] =
        co_await resolver.async_resolve(to.host, std::to_string(to.port), kQuietly);
    if (missing) co_return nullptr;
    for (const auto& one : found) places.push_back(one.endpoint());
  }
  for (const tcp::endpoint& place : places) {
    auto wire = std::make_shared<Wire>(tcp::socket(hub_.loop), hub_.clock, hub_.scratch);
    upstream_ = wire;
    wire->allow(hub_.options.limits.connect_time);
    wire->socket().open(place.protocol(), failed);
    if (failed) continue;
    const auto [refused] = co_await wire->socket().async_connect(place, kQuietly);
    if (refused) continue;
    wire->socket().set_option(tcp::no_delay(true), failed);
    co_return wire;
  }
  co_return nullptr;
}

void Connection::finish(Passing& passing, Forwarded how) {
  upstream_.reset();
  if (std::exchange(passing.told, true)) return;
  if (passing.order.ended) passing.order.ended(how);
}

Task<bool> Connection::give_up(Passing& passing, int status, std::string_view why) {
  if (passing.begun || cut_ || passing.client_gone) co_return false;
  client_.forgive();
  JsonText inner;
  inner.field("code", status == 413 || status == 400 || status == 408 ? "invalid" : "unavailable")
      .field("message", why);
  Answer answer{.status = status, .body = cat("{\"error\":", inner.done(), "}")};
  if (status == 503) answer.fields.push_back({"Retry-After", "1"});
  const bool drained = body_->done() && !passing.sending;
  const bool keep = keep_ && drained && !hub_.stopping;
  if (const auto sent = send_at_once(answer, keep, passing.head.method == "HEAD")) co_return *sent;
  co_return co_await send_rest(answer, keep);
}

Task<bool> Connection::forward(const RequestHead& head, const Forward& order) {
  const auto passing = std::make_shared<Passing>(hub_, head, order);
  passing->chunked = head.fields.first("Transfer-Encoding").has_value();
  std::string first = request_text(head, passing->chunked);
  const auto pieces = take_pieces(passing->chunked);
  if (!pieces || taken_ > hub_.options.limits.body_bytes) {
    finish(*passing, Forwarded::NotSent);
    // g++ 12 destroys a temporary of a conditional inside co_await twice.
    const int status = pieces ? 413 : 400;
    const std::string why =
        pieces ? "the body is too long; nothing was sent on" : pieces.error().message;
    co_return co_await give_up(*passing, status, why);
  }
  first += *pieces;
  passing->up = co_await connect_upstream();
  upstream_ = passing->up;
  if (!passing->up || cut_ || !passing->allowed()) {
    const bool there = passing->up != nullptr;
    if (there) passing->up->close();
    finish(*passing, Forwarded::NotSent);
    co_return co_await give_up(*passing, there ? 503 : 502,
                               there ? "this proxy is no longer the one that admits; ask again"
                                     : "the upstream is not reached; nothing was sent to it");
  }
  co_await send_first(passing, first);
  const auto answer = co_await read_answer_head(*passing);
  const bool keep = answer ? co_await pass_answer(*passing, *answer) : false;
  // Whoever still reads the client's body for an upstream that has answered stops.
  if (passing->sending) {
    error_code ignored;
    passing->abandoned = true;
    passing->up->close();
    client_.socket().cancel(ignored);
    while (passing->sending) co_await passing->sent.async_wait(kQuietly);
  }
  if (passing->told) co_return keep && passing->whole;
  co_return co_await tell_no_answer(*passing);
}

Task<void> Connection::send_first(std::shared_ptr<Passing> passing, std::string_view first) {
  if (continue_due_) co_await client_.write("HTTP/1.1 100 Continue\r\n\r\n");
  passing->sending = true;
  passing->up->allow(hub_.options.limits.answer_time);
  const bool went = co_await passing->up->write(first);
  if (went && !body_->done()) {
    asio::co_spawn(hub_.loop, send_body(passing), asio::detached);
    co_return;
  }
  passing->whole = went;
  passing->sending = false;
}

Task<bool> Connection::tell_no_answer(Passing& passing) {
  const bool late = passing.up->timed_out();
  const bool let_go = !passing.whole && !late && !passing.forbidden && !cut_;
  passing.up->close();
  finish(passing, let_go ? Forwarded::Ended : Forwarded::Unanswered);
  if (passing.refusal != 0) co_return co_await give_up(passing, passing.refusal, passing.why);
  if (passing.client_late) {
    co_return co_await give_up(passing, 408, kTooLate);
  }
  if (passing.forbidden) {
    co_return co_await give_up(passing, 503,
                               "this proxy lost its lease while the request was on its way; it may "
                               "or may not have been carried out");
  }
  co_return co_await give_up(passing, late ? 504 : 502,
                             late ? "the upstream did not answer in time; the request may or may "
                                    "not have been carried out"
                                  : "the upstream closed the connection without an answer; the "
                                    "request may or may not have been carried out");
}

Task<void> Connection::send_body(std::shared_ptr<Passing> passing) {
  const auto self = shared_from_this();
  passing->whole = co_await send_pieces(*passing);
  // The upstream sees that the request will never be whole, and lets go of it: that is waited for.
  if (!passing->whole) {
    if (passing->forbidden) {
      passing->up->close();
    } else {
      passing->up->shut_sending();
    }
  }
  passing->up->allow(hub_.options.limits.answer_time);
  passing->sending = false;
  passing->sent.cancel();
}

Task<bool> Connection::send_pieces(Passing& passing) {
  const Limits& limits = hub_.options.limits;
  while (!body_->done()) {
    passing.up->allow_for_ever();
    client_.allow_until(std::min(request_until_, hub_.clock.mono() + limits.stall_time));
    if (!co_await client_.fill()) {
      passing.client_late = client_.timed_out();
      passing.client_gone = !passing.client_late && !passing.abandoned;
      co_return false;
    }
    while (!client_.unread().empty() && !body_->done()) {
      const auto pieces = take_pieces(passing.chunked);
      if (!pieces || taken_ > limits.body_bytes) {
        passing.refusal = pieces ? 413 : 400;
        passing.why = pieces ? "the body is too long" : pieces.error().message;
        co_return false;
      }
      if (pieces->empty()) break;
      passing.forbidden = !passing.allowed();
      if (passing.forbidden) co_return false;
      passing.up->allow(limits.answer_time);
      if (!co_await passing.up->write(*pieces)) co_return false;
    }
  }
  client_.allow_for_ever();
  co_return true;
}

Task<std::optional<ResponseHead>> Connection::read_answer_head(Passing& passing) {
  Wire& up = *passing.up;
  const std::size_t most = hub_.options.limits.head_bytes * 4;
  if (!passing.sending) up.allow(hub_.options.limits.answer_time);
  while (true) {
    const auto end = find_head_end(up.unread());
    if (!end || (*end == 0 && up.full(most))) co_return std::nullopt;
    if (*end == 0) {
      if (!co_await up.fill()) co_return std::nullopt;
      continue;
    }
    auto head = parse_response(up.unread().substr(0, *end));
    up.consume(*end);
    if (!head || head->status == 101) co_return std::nullopt;
    if (head->status >= 200) co_return std::move(*head);
  }
}

Task<bool> Connection::pass_answer(Passing& passing, const ResponseHead& head) {
  const bool head_only = passing.head.method == "HEAD";
  const auto framing = framing_of(head, head_only);
  if (!framing) {
    passing.up->close();
    finish(passing, Forwarded::Unanswered);
    co_return co_await give_up(passing, 502, "the upstream's answer is not proper HTTP");
  }
  AnswerShape shape{.framing = *framing};
  const bool open_end =
      framing->kind == Framing::Kind::Chunked || framing->kind == Framing::Kind::UntilClose;
  shape.chunked = open_end && !passing.head.http10;
  shape.keep = keep_ && passing.whole && !hub_.stopping && (!open_end || !passing.head.http10);
  const bool bare = framing->kind == Framing::Kind::None && (head_only || head.status == 304);
  const bool whole = co_await pass_answer_body(passing, *framing, shape.chunked,
                                               answer_head_text(head, shape, bare));
  const bool reusable = whole && passing.whole && keeps_alive(head.fields, head.http10) &&
                        framing->kind != Framing::Kind::UntilClose && passing.up->unread().empty();
  if (reusable && hub_.idle.size() < kMostIdleUpstreams && !hub_.stopping) {
    passing.up->allow_for_ever();
    hub_.idle.push_back({passing.up, hub_.clock.mono()});
  } else {
    passing.up->close();
  }
  finish(passing, whole ? Forwarded::Answered : Forwarded::Unanswered);
  if (passing.too_late()) co_return co_await give_up(passing, 408, kTooLate);
  co_return whole&& shape.keep && !passing.client_gone;
}

// To the answer's last byte, also when the client has gone: only then is the request over.
Task<bool> Connection::pass_answer_body(Passing& passing, Framing framing, bool chunked,
                                        std::string first) {
  Wire& up = *passing.up;
  BodyReader body(framing);
  std::string out = std::move(first);
  while (true) {
    while (!body.done() && !up.unread().empty()) {
      const auto piece = body.next(up.unread());
      if (!piece) co_return false;
      if (piece->consumed == 0) break;
      if (chunked) {
        out += chunk(piece->data);
      } else {
        out += piece->data;
      }
      up.consume(piece->consumed);
    }
    if (body.done() && chunked) out += "0\r\n\r\n";
    if (!out.empty() && !passing.client_gone && !passing.too_late()) {
      if (!passing.sending) client_.allow(hub_.options.limits.stall_time);
      passing.begun = true;
      passing.client_gone = !co_await client_.write(out);
      if (passing.client_gone && !passing.order.ended) co_return false;
    }
    out.clear();
    if (body.done()) co_return true;
    up.allow(hub_.options.limits.answer_time);
    if (!co_await up.fill()) {
      const bool ended = body.until_close() && !up.timed_out() && !cut_;
      if (ended && chunked && !passing.client_gone && !passing.too_late())
        co_await client_.write("0\r\n\r\n");
      co_return ended;
    }
  }
}

}  // namespace stint::net::http
