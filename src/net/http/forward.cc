// A request on its way to the upstream and its answer on the way back, both streaming.
#include "base/json_text.h"
#include "base/text.h"
#include "net/http/wire.h"

namespace stint::net::http {
namespace {

constexpr std::size_t kMostIdleUpstreams = 256;

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

// With its length, also where the client sent it in chunks.
std::string request_text(const RequestHead& head, std::uint64_t size) {
  Fields fields = head.fields;
  const bool has_body = fields.first("Content-Length") || fields.first("Transfer-Encoding");
  remove_hop_by_hop(fields);
  std::string out = cat(head.method, ' ', head.target, " HTTP/1.1\r\n", fields_text(fields));
  if (has_body) out += cat("Content-Length: ", size, "\r\n");
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

  const RequestHead& head;
  const Forward& order;
  std::shared_ptr<Wire> up;
  bool whole = false;      // the request was sent to its last byte
  bool sending = false;    // send_body() is at it
  std::uint64_t at = 0;    // how much of the body was sent
  bool forbidden = false;  // may_send said no
  bool broken = false;     // what is kept of the body cannot be read
  bool begun = false;      // the client has seen a part of the answer
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
    // Whatever closes it (also the kernel, when this process is killed) resets it: the end of a
    // half that was sent is never taken for the end of the request.   G5
    wire->socket().set_option(asio::socket_base::linger(true, 0), failed);
    if (failed) continue;
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
  inner.field("code", "unavailable").field("message", why);
  Answer answer{.status = status, .body = cat("{\"error\":", inner.done(), "}")};
  if (status == 503) answer.fields.push_back({"Retry-After", "1"});
  const bool keep = keep_ && !hub_.stopping;
  if (const auto sent = send_at_once(answer, keep, passing.head.method == "HEAD")) co_return *sent;
  co_return co_await send_rest(answer, keep);
}

Task<bool> Connection::forward(const RequestHead& head, const Forward& order) {
  const auto passing = std::make_shared<Passing>(hub_, head, order);
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
  co_await send_first(passing);
  const auto answer = co_await read_answer_head(*passing);
  const bool keep = answer ? co_await pass_answer(*passing, *answer) : false;
  // Whoever still sends to an upstream that has answered stops.
  if (passing->sending) {
    passing->up->close();
    while (passing->sending) co_await passing->sent.async_wait(kQuietly);
  }
  if (passing->told) co_return keep && passing->whole;
  co_return co_await tell_no_answer(*passing);
}

Task<void> Connection::send_first(std::shared_ptr<Passing> passing) {
  passing->sending = true;
  passing->up->allow(hub_.options.limits.answer_time);
  const auto piece = spool_->piece(0);
  const std::string head = request_text(passing->head, spool_->size());
  const std::string first = piece.value_or("");
  const bool went = piece && co_await passing->up->write(head, first);
  passing->at = first.size();
  if (went && passing->at < spool_->size()) {
    asio::co_spawn(hub_.loop, send_body(passing), asio::detached);
    co_return;
  }
  passing->whole = went;
  passing->sending = false;
}

Task<bool> Connection::tell_no_answer(Passing& passing) {
  const bool late = passing.up->timed_out();
  const bool let_go = !passing.whole && !late && !passing.forbidden && !passing.broken && !cut_;
  passing.up->close();
  finish(passing, let_go ? Forwarded::Ended : Forwarded::Unanswered);
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
  // An upstream that has closed may have answered before.
  if (passing->forbidden || passing->broken) passing->up->close();
  passing->up->allow(hub_.options.limits.answer_time);
  passing->sending = false;
  passing->sent.cancel();
}

Task<bool> Connection::send_pieces(Passing& passing) {
  while (passing.at < spool_->size()) {
    const auto piece = spool_->piece(passing.at);
    passing.broken = !piece;
    if (passing.broken) co_return false;
    passing.forbidden = !passing.allowed();
    if (passing.forbidden) co_return false;
    passing.up->allow(hub_.options.limits.answer_time);
    if (!co_await passing.up->write(*piece)) co_return false;
    passing.at += piece->size();
  }
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
    if (!out.empty() && !passing.client_gone) {
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
      if (ended && chunked && !passing.client_gone) co_await client_.write("0\r\n\r\n");
      co_return ended;
    }
  }
}

}  // namespace stint::net::http
