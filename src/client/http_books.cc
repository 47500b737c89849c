// Events, fences and keys over the link.
#include <algorithm>

#include "api/json.h"
#include "base/json_text.h"
#include "base/text.h"
#include "client/faces.h"

namespace stint::client {
namespace {

constexpr std::size_t kMostAtOnce = 1000;

Error unreadable(const Error& error) {
  return unavailable(cat("the server's answer: ", error.message));
}

Result<api::Key> parse_key(const JsonValue& value) {
  JsonFields in(value);
  api::Key key{.id = in.text("id"),
               .name = in.text("name"),
               .hash = {},
               .rights = 0,
               .prefixes = in.texts("prefixes"),
               .created_at = in.moment("created_at_ms").value_or(WallTime{}),
               .expires_at = in.moment("expires_at_ms"),
               .revoked_at = in.moment("revoked_at_ms"),
               .used_at = in.moment("used_at_ms")};
  for (const std::string& word : in.texts("allow")) {
    // One that this version does not know is not shown.
    if (auto right = api::parse_rights(word))
      key.rights = static_cast<api::Rights>(key.rights | *right);
  }
  if (auto ok = in.done(); !ok) return ok.error();
  return key;
}

}  // namespace

Result<std::vector<api::Event>> HttpEvents::list(const api::EventQuery& query) {
  std::vector<api::Event> out;
  std::string after = query.after;
  while (out.size() < query.limit) {
    const std::size_t limit = std::min(kMostAtOnce, query.limit - out.size());
    auto reply = link_.get("/v1/events", {{"prefix", query.prefix},
                                          {"after", after},
                                          {"limit", cat(limit)},
                                          {"newest", query.newest ? "true" : ""}});
    if (!reply) return reply.error();
    if (reply->status != 200) return Link::error_of(*reply);
    JsonFields in(reply->json);
    const JsonValue* list = in.find("events");
    if (list == nullptr || list->if_list() == nullptr) return unreadable(invalid("no events"));
    for (const JsonValue& one : *list->if_list()) {
      auto event = api::parse_event(one);
      if (!event) return unreadable(event.error());
      out.push_back(std::move(*event));
    }
    // The newest are one page: what is older is not asked for.
    if (list->if_list()->size() < limit || query.newest) break;
    after = out.back().number;
  }
  return out;
}

Status HttpEvents::record(const api::Event& event) { return record_refusal(event, ""); }

Status HttpEvents::record_refusal(const api::Event& event, const std::string& target) {
  auto reply = link_.post("/v1/events",
                          cat("{\"event\":", api::to_json(event),
                              target.empty() ? "" : cat(",\"target\":", json_quoted(target)), "}"),
                          Link::Again::No);
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  return {};
}

Result<api::TokenWord> HttpFences::word(const ResourceName& resource) {
  auto reply = link_.get("/v1/fences/word", {{"resource", resource.text()}});
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  auto word = api::parse_word(reply->json);
  if (!word) return unreadable(word.error());
  return word;
}

Result<std::vector<std::string>> HttpFences::sealed(const ResourceName& resource) {
  auto reply = link_.get("/v1/fences/sealed", {{"resource", resource.text()}});
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  JsonFields in(reply->json);
  auto targets = in.texts("targets");
  if (auto ok = in.done(); !ok) return unreadable(ok.error());
  return targets;
}

// What is asked of a fence is the same however often: token, mode, key and digest say what it is.
Result<api::FenceAnswer> HttpFences::ask(const std::string& path, const std::string& body) {
  auto reply = link_.post(path, body, Link::Again::Leave);
  if (!reply) return reply.error();
  auto answer = api::parse_fence_answer(reply->json);
  if (answer) return answer;
  if (reply->status != 200) return Link::error_of(*reply);
  return Error{Code::UnknownOutcome, cat("the server's answer: ", answer.error().message)};
}

Result<core::Verdict> HttpFences::remember(const core::Offer& offer,
                                           const std::vector<std::string>& targets) {
  auto answer = ask("/v1/fences/remember", cat("{\"offer\":", api::to_json(offer),
                                               ",\"targets\":", api::to_json(targets), "}"));
  if (!answer) return answer.error();
  return answer->verdict;
}

Status HttpFences::forget(const ResourceName& resource, const std::string& target,
                          const api::ForgetWord& word) {
  auto reply = link_.post(
      "/v1/fences/forget",
      cat("{\"resource\":", json_quoted(resource.text()), ",\"target\":", json_quoted(target),
          ",\"why\":", json_quoted(word.why), ",\"by\":", json_quoted(word.by), "}"),
      Link::Again::Yes);
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  return {};
}

Result<api::FenceAnswer> HttpFences::admit(const std::string& target, const core::Offer& offer) {
  return ask("/v1/fences/admit",
             cat("{\"target\":", json_quoted(target), ",\"offer\":", api::to_json(offer), "}"));
}

Result<api::FenceAnswer> HttpFences::seal(const std::string& target, const core::Offer& offer) {
  return ask("/v1/fences/seal",
             cat("{\"target\":", json_quoted(target), ",\"offer\":", api::to_json(offer), "}"));
}

Result<std::optional<core::Fence>> HttpFences::fence(const std::string& target) {
  auto reply = link_.get("/v1/fences", {{"target", target}});
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  JsonFields in(reply->json);
  const JsonValue* value = in.find("fence");
  if (auto ok = in.done(); !ok) return unreadable(ok.error());
  if (value == nullptr) return std::optional<core::Fence>();
  auto fence = api::parse_fence(*value);
  if (!fence) return unreadable(fence.error());
  return std::optional<core::Fence>(std::move(*fence));
}

Result<api::FenceAnswer> HttpFences::begin(const api::Act& act, const core::Offer& offer) {
  return ask("/v1/fences/begin",
             cat("{\"act\":", api::to_json(act), ",\"offer\":", api::to_json(offer), "}"));
}

Result<api::FenceAnswer> HttpFences::finish(const api::Act& act, const core::Offer& offer) {
  return ask("/v1/fences/finish",
             cat("{\"act\":", api::to_json(act), ",\"offer\":", api::to_json(offer), "}"));
}

Result<std::optional<api::Act>> HttpFences::act(const std::string& name, const std::string& key) {
  auto reply = link_.get("/v1/fences/act", {{"name", name}, {"key", key}});
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  JsonFields in(reply->json);
  const JsonValue* value = in.find("act");
  if (auto ok = in.done(); !ok) return unreadable(ok.error());
  if (value == nullptr) return std::optional<api::Act>();
  auto act = api::parse_act(*value);
  if (!act) return unreadable(act.error());
  return std::optional<api::Act>(std::move(*act));
}

Result<api::CreatedKey> HttpKeys::create(const api::NewKey& wanted, const std::string& /*by*/) {
  std::string body = cat("{\"name\":", json_quoted(wanted.name),
                         ",\"allow\":", api::to_json(api::words(wanted.rights)),
                         ",\"prefixes\":", api::to_json(wanted.prefixes));
  if (wanted.lasts) body += cat(",\"expires_in_ms\":", wanted.lasts->count());
  auto reply = link_.post_once("/v1/keys", body + "}");
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  auto key = parse_key(reply->json);
  if (!key) return unreadable(key.error());
  JsonFields in(reply->json);
  return api::CreatedKey{std::move(*key), in.text("secret")};
}

Result<std::vector<api::Key>> HttpKeys::list() {
  auto reply = link_.get("/v1/keys");
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  JsonFields in(reply->json);
  const JsonValue* list = in.find("keys");
  if (list == nullptr || list->if_list() == nullptr) return unreadable(invalid("no keys"));
  std::vector<api::Key> out;
  for (const JsonValue& one : *list->if_list()) {
    auto key = parse_key(one);
    if (!key) return unreadable(key.error());
    out.push_back(std::move(*key));
  }
  return out;
}

Result<api::Key> HttpKeys::revoke(const std::string& id_or_name, const std::string& /*by*/) {
  auto reply = link_.post("/v1/keys/revoke", cat("{\"key\":", json_quoted(id_or_name), "}"),
                          Link::Again::Yes);
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  auto key = parse_key(reply->json);
  if (!key) return unreadable(key.error());
  return key;
}

}  // namespace stint::client
