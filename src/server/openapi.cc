#include "server/openapi.h"

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

std::string_view meaning(std::string_view status) {
  if (status == "400") return "The request is wrong; nothing was done.";
  if (status == "401") return "No key, or not one that is in force.";
  if (status == "403") return "The key does not allow it, or the token is not this resource's.";
  if (status == "409") return "Held by another, or the token's one write was made already.";
  if (status == "410") return "Lost: not, or no longer, the holder.";
  if (status == "412") return "Stale: a newer token was issued or has sealed the target.";
  if (status == "422") return "The idempotency key was used for another request.";
  if (status == "428") return "A fenced target, and no token.";
  if (status == "429") return "A limit of this key or of the server.";
  return "Stopping, or the store does not answer.";
}

std::string answers_of(const Route& route) {
  std::set<std::string> others;
  for (const std::string_view one : split(route.refuses, ' ')) others.emplace(one);
  others.erase("");
  if (route.rights != 0) {
    for (const char* one : {"400", "401", "429"}) others.emplace(one);
    if (route.rights != 0xff) others.emplace("403");
  }
  std::string out =
      cat("\"200\":{\"description\":\"Done.\",\"content\":", content(route.gives), "}");
  for (const std::string& status : others) {
    out += cat(",", json_quoted(status), ":{\"description\":", json_quoted(meaning(status)),
               ",\"content\":", content("Error"), "}");
  }
  return cat(out, ",\"default\":{\"description\":",
             json_quoted(
                 "A fault: 503 (nothing was done, ask again), "
                 "504 (outcome unknown: ask again with the same claim or idempotency key), 500. Or "
                 "what the server takes no request for, nothing was done: 405 (another method, see "
                 "Allow), 408 (it did not come in time), 413 (its body is too long), 431 (its head "
                 "is too long)."),
             ",\"content\":", content("Error"), "}");
}

std::string takes_of(const Route& route) {
  if (route.method == "POST") {
    const std::string key =
        route.path.ends_with("/renew") || route.path == "/v1/check"
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
             ",\"summary\":", json_quoted(route.summary), ",", takes_of(route), "\"responses\":{",
             answers_of(route), "}}");
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
      R"({"openapi":"3.1.0","info":{"title":"Stint","description":"Leases and fencing tokens over HTTP.","version":)",
      json_quoted(version), R"(},"security":[{"key":[]}],"paths":{)", paths,
      R"(},"components":{"securitySchemes":{"key":{"type":"http","scheme":"bearer"}},"schemas":)",
      kSchemas, "}}");
}

}  // namespace stint::server
