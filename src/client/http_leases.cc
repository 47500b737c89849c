#include <algorithm>
#include <iterator>

#include "base/json_text.h"
#include "base/text.h"
#include "client/faces.h"

namespace stint::client {
namespace {

constexpr std::size_t kMostAtOnce = 1000;  // of one page, one renewal of many

std::string text_field(std::string_view name, const std::string& value) {
  return value.empty() ? std::string() : cat(",\"", name, "\":", json_quoted(value));
}

std::string time_field(std::string_view name, Millis value) {
  return value.count() == 0 ? std::string() : cat(",\"", name, "\":", value.count());
}

std::string grip_fields(const api::Grip& grip) {
  std::string out =
      cat("\"resource\":", json_quoted(grip.resource.text()), ",\"token\":", grip.token.number(),
          ",\"claim\":\"", grip.claim.hex(), "\"");
  if (grip.owner) out += text_field("owner", grip.owner->text());
  if (grip.hint) {
    out += cat(",\"hint\":{\"own\":", grip.hint->own, ",\"alive\":", grip.hint->alive,
               ",\"plain\":", grip.hint->plain ? "true" : "false", "}");
  }
  return out;
}

// 200 or 410; all else is an error.
Result<api::HoldAnswer> hold_of(const Link::Reply& reply) {
  if (reply.status == 200) {
    auto held = api::parse_held(reply.json);
    if (!held)
      return Error{Code::UnknownOutcome, cat("the server's answer: ", held.error().message)};
    return api::HoldAnswer(std::move(*held));
  }
  auto told = api::parse_error(reply.body);
  if (!told || told->error.code != Code::Lost || !told->lease) return Link::error_of(reply);
  return api::HoldAnswer(api::Lost{told->cause, std::move(*told->lease), told->store_time});
}

template <class T, class Parse>
Result<std::vector<T>> parse_all(const JsonValue& json, std::string_view name, Parse parse) {
  JsonFields in(json);
  const JsonValue* list = in.find(name);
  if (list == nullptr || list->if_list() == nullptr) {
    return unavailable(cat("the server's answer has no ", quoted(name)));
  }
  std::vector<T> out;
  for (const JsonValue& one : *list->if_list()) {
    auto parsed = parse(one);
    if (!parsed) return unavailable(cat("the server's answer: ", parsed.error().message));
    out.push_back(std::move(*parsed));
  }
  return out;
}

std::string order_fields(const api::OrderRequest& order) {
  return cat("\"resource\":", json_quoted(order.resource.text()),
             ",\"token\":", order.expected.number(), ",\"why\":", json_quoted(order.why),
             ",\"by\":", json_quoted(order.by));
}

}  // namespace

Result<api::AcquireAnswer> HttpLeases::acquire(const api::AcquireRequest& request) {
  std::string body =
      cat("{\"resource\":", json_quoted(request.resource.text()),
          ",\"owner\":", json_quoted(request.owner.text()), ",\"claim\":\"", request.claim.hex(),
          "\",\"ttl_ms\":", request.terms.ttl.count(),
          time_field("max_hold_ms", request.terms.max_hold),
          time_field("at_least_ms", request.terms.at_least),
          time_field("cooldown_ms", request.terms.cooldown), text_field("note", request.note));
  if (request.retake) body += cat(",\"retake\":\"", request.retake->hex(), "\"");
  if (!request.count_refusal) body += ",\"count_refusal\":false";
  auto reply = link_.post_claimed("/v1/acquire", body + "}");
  if (!reply) {
    return std::move(reply.error()).during(cat("acquiring ", quoted(request.resource.text())));
  }
  if (reply->status == 200) {
    auto granted = api::parse_granted(reply->json);
    if (!granted) {
      return Error{Code::UnknownOutcome, cat("the server's answer: ", granted.error().message)};
    }
    return api::AcquireAnswer(std::move(*granted));
  }
  auto told = api::parse_error(reply->body);
  if (!told || told->error.code != Code::Held || !told->lease) return Link::error_of(*reply);
  return api::AcquireAnswer(api::Refused{std::move(*told->lease), told->retry_in});
}

Result<api::HoldAnswer> HttpLeases::hold(const std::string& path, const api::Grip& grip,
                                         std::string_view further, Link::Again again) {
  auto reply = link_.post(path, cat("{", grip_fields(grip), further, "}"), again);
  if (!reply) return reply.error();
  return hold_of(*reply);
}

// Once: who renews asks again by itself, and counts from before it asked.   G6
Result<api::HoldAnswer> HttpLeases::renew(const api::Grip& grip, Millis ttl) {
  return hold("/v1/renew", grip, cat(",\"ttl_ms\":", ttl.count()), Link::Again::No);
}

std::vector<Result<api::HoldAnswer>> HttpLeases::renew_many(const std::vector<api::Grip>& grips,
                                                            Millis ttl) {
  std::vector<Result<api::HoldAnswer>> out;
  for (std::size_t from = 0; from < grips.size(); from += kMostAtOnce) {
    const std::size_t count = std::min(kMostAtOnce, grips.size() - from);
    std::string body = cat("{\"ttl_ms\":", ttl.count(), ",\"leases\":[");
    for (std::size_t i = 0; i < count; ++i) {
      body += cat(i == 0 ? "{" : ",{", grip_fields(grips[from + i]), "}");
    }
    auto reply = link_.post("/v1/renew", body + "]}", Link::Again::No);
    const Error wrong{Code::UnknownOutcome, "the server's answer is not one of many"};
    auto answers = Link::each_of<api::HoldAnswer>(
        reply, count, wrong, [&](const JsonValue& one) -> Result<api::HoldAnswer> {
          auto held = api::parse_held(one);
          if (held) return api::HoldAnswer(std::move(*held));
          auto told = api::parse_error(one);
          if (told && told->error.code == Code::Lost && told->lease) {
            return api::HoldAnswer(api::Lost{told->cause, *told->lease, told->store_time});
          }
          return told ? told->error : wrong;
        });
    std::ranges::move(answers, std::back_inserter(out));
  }
  return out;
}

Result<api::HoldAnswer> HttpLeases::release(const api::Grip& grip, bool fence) {
  return hold("/v1/release", grip, fence ? ",\"fence\":true" : "",
              fence ? Link::Again::No : Link::Again::Yes);
}

Result<api::HoldAnswer> HttpLeases::stall(const api::Grip& grip) {
  return hold("/v1/stall", grip, "", Link::Again::Yes);
}

Result<api::HoldAnswer> HttpLeases::check(const api::Grip& grip) {
  auto answer = hold("/v1/check", grip, "", Link::Again::Look);
  // A look: nothing can have happened.
  if (!answer && answer.error().code == Code::UnknownOutcome)
    answer.error().code = Code::Unavailable;
  return answer;
}

Result<api::HoldAnswer> HttpLeases::progress(const api::Grip& grip, const std::string& marker) {
  return hold("/v1/progress", grip, cat(",\"marker\":", json_quoted(marker)), Link::Again::Yes);
}

Result<api::HoldAnswer> HttpLeases::transfer(const api::OrderRequest& order, const Owner& to,
                                             Millis ttl) {
  auto reply = link_.post_once("/v1/transfer",
                               cat("{", order_fields(order), ",\"to\":", json_quoted(to.text()),
                                   time_field("ttl_ms", ttl), "}"));
  if (!reply) return reply.error();
  return hold_of(*reply);
}

Result<api::HoldAnswer> HttpLeases::revoke(const api::OrderRequest& order, core::Reason reason) {
  auto reply = link_.post_once(
      "/v1/revoke", cat("{", order_fields(order), ",\"reason\":\"", core::word(reason), "\"}"));
  if (!reply) return reply.error();
  return hold_of(*reply);
}

Result<api::Lease> HttpLeases::get(const ResourceName& resource) {
  auto reply = link_.get("/v1/lease", {{"resource", resource.text()}});
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  auto lease = api::parse_lease(reply->json);
  if (!lease) return unavailable(cat("the server's answer: ", lease.error().message));
  return lease;
}

Result<std::vector<api::Lease>> HttpLeases::list(const api::Page& page) {
  std::vector<api::Lease> out;
  std::string after = page.after;
  while (out.size() < page.limit) {
    const std::size_t limit = std::min(kMostAtOnce, page.limit - out.size());
    auto reply =
        link_.get("/v1/leases", {{"prefix", page.prefix}, {"after", after}, {"limit", cat(limit)}});
    if (!reply) return reply.error();
    if (reply->status != 200) return Link::error_of(*reply);
    auto leases = parse_all<api::Lease>(reply->json, "leases", api::parse_lease);
    if (!leases) return leases.error();
    for (api::Lease& lease : *leases) out.push_back(std::move(lease));
    if (leases->size() < limit) break;
    after = out.back().resource;
  }
  return out;
}

Result<std::vector<api::PastGrant>> HttpLeases::history(const ResourceName& resource,
                                                        std::size_t limit) {
  auto reply = link_.get(
      "/v1/history", {{"resource", resource.text()}, {"limit", cat(std::min(limit, kMostAtOnce))}});
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  return parse_all<api::PastGrant>(reply->json, "history", api::parse_past);
}

Result<Token> HttpLeases::forget(const ResourceName& resource) {
  auto reply = link_.post("/v1/forget", cat("{\"resource\":", json_quoted(resource.text()), "}"),
                          Link::Again::No);
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  JsonFields in(reply->json);
  const Token floor = in.token("floor");
  if (auto ok = in.done(); !ok) return Error{Code::UnknownOutcome, ok.error().message};
  return floor;
}

Result<std::unique_ptr<Watch>> HttpLeases::watch(const ResourceName& resource) {
  return link_.watch(resource.text());
}

}  // namespace stint::client
