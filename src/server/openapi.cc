#include "server/openapi.h"

#include <array>
#include <set>

#include "api/wire.h"
#include "base/json_text.h"
#include "base/text.h"
#include "server/routes.h"

namespace stint::server {
namespace {

std::string schema(std::string_view name) {
  return cat("{\"$ref\":\"#/components/schemas/", name, "\"}");
}

std::string content(std::string_view name) {
  if (name == "Text") return R"({"text/plain":{"schema":{"type":"string"}}})";
  if (name == "Stream") return R"({"text/event-stream":{"schema":{"type":"string"}}})";
  const std::string json = cat("\"application/json\":{\"schema\":", schema(name), "}");
  if (name == "Events") {
    return cat("{", json, ",\"text/event-stream\":{\"schema\":{\"type\":\"string\"}}}");
  }
  return cat("{", json, "}");
}

struct Meaning {
  std::string_view status;
  std::string_view text;
};
constexpr std::array kMeanings = {
    Meaning{"400", "The request is wrong; nothing was done."},
    Meaning{"401", "No key, or not one that is in force."},
    Meaning{"403",
            "The key does not allow it, or the token is not this resource's; or, where no key is "
            "asked for, a page of another place asks."},
    Meaning{"405", "Another method than this path takes; see Allow. Nothing was done."},
    Meaning{"408", "The request did not come in time; nothing was done."},
    Meaning{"409", "Held by another, or the token's one write was made already."},
    Meaning{"410", "Lost: not, or no longer, the holder."},
    Meaning{"412", "Stale: a newer token was issued or has sealed the target."},
    Meaning{"413", "The body is too long; nothing was done."},
    Meaning{"422", "The idempotency key was used for another request."},
    Meaning{"428", "A fenced target, and no token."},
    Meaning{"429", "A limit of this key or of the server."},
    Meaning{"431", "The head is too long; nothing was done."},
    Meaning{"500", "It could not be done; the message says why. Nothing was done."},
    Meaning{"503",
            "Too many connections, stopping, or the store does not answer: nothing was done, ask "
            "again."},
    Meaning{"504", "The outcome is unknown: ask again with the same claim or idempotency key."},
};

// Every status that the operation answers with, besides 200.
std::set<std::string> others_of(const Route& route) {
  std::set<std::string> out;
  for (const std::string_view one : split(route.refuses, ' ')) out.emplace(one);
  out.erase("");
  // 503: at the latest by a server that is full, or begins to stop.
  for (const char* one : {"400", "405", "408", "413", "431", "503"}) out.emplace(one);
  if (route.rights != 0) {
    for (const char* one : {"401", "403", "429"}) out.emplace(one);
  }
  // What is committed may be sent and not answered: of many decisions the answer that is kept.
  const bool looks = route.path == "/v1/check" || route.path == "/v1/doctor";
  if (route.method == "POST" && !looks) out.emplace("504");
  return out;
}

std::string answers_of(const Route& route) {
  const std::set<std::string> others = others_of(route);
  std::string out =
      cat("\"200\":{\"description\":\"Done.\",\"content\":", content(route.gives), "}");
  for (const Meaning& one : kMeanings) {
    if (!others.contains(std::string(one.status))) continue;
    out += cat(",", json_quoted(one.status), ":{\"description\":", json_quoted(one.text),
               ",\"content\":", content("Error"), "}");
  }
  return out;
}

std::string takes_of(const Route& route) {
  if (route.method == "POST") {
    const std::string key =
        route.path.ends_with("/renew") || route.path == "/v1/check" || route.path == "/v1/doctor"
            ? ""
            : R"("parameters":[{"name":"Idempotency-Key","in":"header","schema":{"type":"string"}}],)";
    return cat(key, "\"requestBody\":{\"required\":true,\"content\":", content(route.takes), "},");
  }
  std::string list;
  for (std::string_view name : split(route.takes, ' ')) {
    if (name.empty()) continue;
    const bool must = name.ends_with('!');
    if (must) name.remove_suffix(1);
    list += cat(list.empty() ? "" : ",", "{\"name\":", json_quoted(name),
                ",\"in\":\"query\",\"required\":", must ? "true" : "false",
                ",\"schema\":{\"type\":\"string\"}}");
  }
  return cat("\"parameters\":[", list, "],");
}

std::string operation(const Route& route) {
  std::string id(route.path.substr(1));
  for (char& c : id) {
    if (c == '/' || c == '.') c = '_';
  }
  const std::string_view open = route.rights == 0 ? "\"security\":[]," : "";
  return cat(route.method == "GET" ? "\"get\":{" : "\"post\":{", open,
             "\"operationId\":", json_quoted(cat(route.method == "GET" ? "get_" : "post_", id)),
             ",\"summary\":", json_quoted(route.summary),
             ",\"x-stint-rights\":", api::to_json(api::words(route.rights)), ",", takes_of(route),
             "\"responses\":{", answers_of(route), "}}");
}

}  // namespace

std::string openapi_document(const std::string& version) {
  std::string paths;
  std::set<std::string_view> written;
  for (const Route& route : routes()) {
    if (!written.insert(route.path).second) continue;
    std::string here;
    for (const Route& other : routes()) {
      if (other.path == route.path) here += cat(here.empty() ? "" : ",", operation(other));
    }
    paths += cat(paths.empty() ? "" : ",", json_quoted(route.path), ":{", here, "}");
  }
  return cat(
      R"({"openapi":"3.1.0","info":{"title":"Stint","description":"Leases and fencing tokens over)"
      R"( HTTP.","version":)",
      json_quoted(version), R"(},"security":[{"key":[]}],"paths":{)", paths,
      R"(},"components":{"securitySchemes":{"key":{"type":"http","scheme":"bearer"}},"schemas":)",
      kSchemas, "}}");
}

}  // namespace stint::server
