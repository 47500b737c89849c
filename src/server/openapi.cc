#include "server/openapi.h"

#include <set>

#include "api/wire.h"
#include "base/text.h"
#include "server/routes.h"

namespace stint::server {
namespace {

// The schemas. A field that is not listed as required may be absent or null. Answers may get more
// fields; requests with a field that is not listed are refused.
constexpr std::string_view kSchemas = R"({
"Error":{"type":"object","required":["error"],"properties":{"error":{"type":"object","required":["code","message"],"properties":{
 "code":{"enum":["held","lost","stale","used","never_issued","never_granted","foreign","no_token","unknown_outcome","unavailable","invalid","denied","failed"]},
 "message":{"type":"string"},"cause":{"type":"string"},"lease":{"$ref":"#/components/schemas/Lease"},"retry_in_ms":{"type":"integer"},"store_time_ns":{"type":"string"}}}}},
"Lease":{"type":"object","required":["resource","held","state","owner","token","generation","reason","ttl_ms","remaining_ms","acquired_at_ms","renewed_at_ms","note","progress","progress_at_ms"],"properties":{
 "resource":{"type":"string"},"held":{"type":"boolean"},"state":{"enum":["free","held","reserved","resting"]},"owner":{"type":"string"},"token":{"type":"integer"},"generation":{"type":"string"},"reason":{"type":["string","null"]},
 "ttl_ms":{"type":"integer"},"remaining_ms":{"type":["integer","null"]},"acquired_at_ms":{"type":["integer","null"]},"renewed_at_ms":{"type":["integer","null"]},"note":{"type":"string"},"progress":{"type":"string"},"progress_at_ms":{"type":["integer","null"]},"by":{"type":"string"},"why":{"type":"string"}}},
"Hint":{"type":"object","required":["own","alive","plain"],"properties":{"own":{"type":"integer"},"alive":{"type":"integer"},"plain":{"type":"boolean"}}},
"GrantedLease":{"allOf":[{"$ref":"#/components/schemas/Lease"},{"type":"object","required":["granted_ttl_ms","replayed","hint"],"properties":{"claim":{"type":"string"},"granted_ttl_ms":{"type":"integer"},"replayed":{"type":"boolean"},"age_ms":{"type":"integer"},"previous_progress":{"type":"string"},"hint":{"$ref":"#/components/schemas/Hint"},"store_time_ns":{"type":"string"},"sealed":{"type":"array","items":{"type":"string"}},"provisional":{"type":"boolean"}}}]},
"Granted":{"oneOf":[{"$ref":"#/components/schemas/GrantedLease"},{"type":"object","required":["leases"],"properties":{"leases":{"type":"array","items":{"$ref":"#/components/schemas/GrantedLease"}}}}]},
"HeldLease":{"allOf":[{"$ref":"#/components/schemas/Lease"},{"type":"object","required":["granted_ttl_ms","replayed"],"properties":{"granted_ttl_ms":{"type":"integer"},"replayed":{"type":"boolean"},"age_ms":{"type":"integer"},"store_time_ns":{"type":"string"}}}]},
"Held":{"oneOf":[{"$ref":"#/components/schemas/HeldLease"},{"type":"object","required":["results"],"properties":{"results":{"type":"array","items":{"oneOf":[{"$ref":"#/components/schemas/HeldLease"},{"$ref":"#/components/schemas/Error"}]}}}}]},
"AcquireRequest":{"type":"object","required":["ttl_ms"],"additionalProperties":false,"properties":{"resource":{"type":"string"},"resources":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":16},"owner":{"type":"string"},"claim":{"type":"string"},"ttl_ms":{"type":"integer"},"max_hold_ms":{"type":"integer"},"at_least_ms":{"type":"integer"},"cooldown_ms":{"type":"integer"},"wait_ms":{"type":"integer"},"note":{"type":"string"},"retake":{"type":"string"},"count_refusal":{"type":"boolean"}}},
"HoldRequest":{"type":"object","required":["resource","token","claim"],"additionalProperties":false,"properties":{"resource":{"type":"string"},"token":{"type":"integer"},"claim":{"type":"string"},"owner":{"type":"string"},"hint":{"$ref":"#/components/schemas/Hint"},"ttl_ms":{"type":"integer"},"fence":{"type":"boolean"},"marker":{"type":"string"}}},
"RenewRequest":{"oneOf":[{"$ref":"#/components/schemas/HoldRequest"},{"type":"object","required":["leases","ttl_ms"],"additionalProperties":false,"properties":{"leases":{"type":"array","items":{"$ref":"#/components/schemas/HoldRequest"},"minItems":1,"maxItems":1000},"ttl_ms":{"type":"integer"}}}]},
"OrderRequest":{"type":"object","required":["resource","token","why"],"additionalProperties":false,"properties":{"resource":{"type":"string"},"token":{"type":"integer"},"why":{"type":"string"},"by":{"type":"string"},"to":{"type":"string"},"ttl_ms":{"type":"integer"},"reason":{"enum":["revoked","cancelled","stalled"]}}},
"ForgetRequest":{"type":"object","required":["resource"],"additionalProperties":false,"properties":{"resource":{"type":"string"}}},
"Floor":{"type":"object","required":["floor"],"properties":{"floor":{"type":"integer"}}},
"Leases":{"type":"object","required":["leases"],"properties":{"leases":{"type":"array","items":{"$ref":"#/components/schemas/Lease"}},"next":{"type":"string"}}},
"History":{"type":"object","required":["history"],"properties":{"history":{"type":"array","items":{"type":"object","required":["token","owner","reason","by","why","acquired_at_ms","ended_at_ms","ended"],"properties":{"token":{"type":"integer"},"owner":{"type":"string"},"reason":{"type":"string"},"by":{"type":["string","null"]},"why":{"type":["string","null"]},"acquired_at_ms":{"type":["integer","null"]},"ended_at_ms":{"type":["integer","null"]},"ended":{"type":["string","null"]}}}}}},
"Event":{"type":"object","required":["at_ms","kind","resource","token","owner","number"],"properties":{"at_ms":{"type":"integer"},"kind":{"type":"string"},"resource":{"type":["string","null"]},"token":{"type":["integer","null"]},"owner":{"type":["string","null"]},"number":{"type":"string"}}},
"Events":{"type":"object","required":["events"],"properties":{"events":{"type":"array","items":{"$ref":"#/components/schemas/Event"}}}},
"EventRequest":{"type":"object","required":["event"],"additionalProperties":false,"properties":{"event":{"type":"object"},"target":{"type":"string"}}},
"Recorded":{"type":"object","required":["recorded"],"properties":{"recorded":{"type":"boolean"}}},
"Store":{"type":"object","required":["generation","smallest_ttl_ms","caveat","version","key"],"properties":{"generation":{"type":"string"},"smallest_ttl_ms":{"type":"integer"},"caveat":{"type":"string"},"version":{"type":"string"},"key":{"type":"string"}}},
"TokenWord":{"type":"object","required":["generation","ancestors","newest","newest_granted","owner","claim_hash","live","remaining_ms","sealed"],"properties":{"generation":{"type":"string"},"ancestors":{"type":"array","items":{"type":"string"}},"newest":{"type":"integer"},"newest_granted":{"type":"boolean"},"owner":{"type":"string"},"claim_hash":{"type":"string"},"live":{"type":"boolean"},"remaining_ms":{"type":["integer","null"]},"sealed":{"type":"array","items":{"type":"string"}}}},
"Targets":{"type":"object","required":["targets"],"properties":{"targets":{"type":"array","items":{"type":"string"}}}},
"Offer":{"type":"object","required":["resource","token","generation"],"additionalProperties":false,"properties":{"generation":{"type":"string"},"resource":{"type":"string"},"token":{"type":"integer"},"mode":{"enum":["at-least","once"]},"key":{"type":"string"},"digest":{"type":"string"},"by_order":{"type":"boolean"},"adopt":{"type":"boolean"}}},
"FenceRecord":{"type":"object","required":["generation","resource","token","used","key","digest"],"properties":{"generation":{"type":"string"},"resource":{"type":"string"},"token":{"type":"integer"},"used":{"type":"boolean"},"key":{"type":"string"},"digest":{"type":"string"}}},
"ActRecord":{"type":"object","required":["name","key"],"properties":{"name":{"type":"string"},"key":{"type":"string"},"generation":{"type":"string"},"resource":{"type":"string"},"token":{"type":"integer"},"owner":{"type":"string"},"begun_at_ms":{"type":"integer"},"digest":{"type":"string"},"result_token":{"type":"integer"},"exit_code":{"type":"integer"},"ended_at_ms":{"type":"integer"}}},
"FenceAnswer":{"type":"object","required":["verdict","owner"],"properties":{"verdict":{"type":"string"},"owner":{"type":"string"},"fence":{"$ref":"#/components/schemas/FenceRecord"},"act":{"$ref":"#/components/schemas/ActRecord"}}},
"FenceRequest":{"type":"object","required":["target","offer"],"additionalProperties":false,"properties":{"target":{"type":"string"},"offer":{"$ref":"#/components/schemas/Offer"}}},
"RememberRequest":{"type":"object","required":["targets","offer"],"additionalProperties":false,"properties":{"targets":{"type":"array","items":{"type":"string"}},"offer":{"$ref":"#/components/schemas/Offer"}}},
"ForgetTargetRequest":{"type":"object","required":["resource","target"],"additionalProperties":false,"properties":{"resource":{"type":"string"},"target":{"type":"string"}}},
"Forgotten":{"type":"object","required":["forgotten"],"properties":{"forgotten":{"type":"boolean"}}},
"Fence":{"type":"object","required":["fence"],"properties":{"fence":{"oneOf":[{"$ref":"#/components/schemas/FenceRecord"},{"type":"null"}]}}},
"ActRequest":{"type":"object","required":["act","offer"],"additionalProperties":false,"properties":{"act":{"$ref":"#/components/schemas/ActRecord"},"offer":{"$ref":"#/components/schemas/Offer"}}},
"Act":{"type":"object","required":["act"],"properties":{"act":{"oneOf":[{"$ref":"#/components/schemas/ActRecord"},{"type":"null"}]}}},
"Key":{"type":"object","required":["id","name","allow","prefixes","created_at_ms","expires_at_ms","revoked_at_ms","used_at_ms"],"properties":{"id":{"type":"string"},"name":{"type":"string"},"allow":{"type":"array","items":{"type":"string"}},"prefixes":{"type":"array","items":{"type":"string"}},"created_at_ms":{"type":"integer"},"expires_at_ms":{"type":["integer","null"]},"revoked_at_ms":{"type":["integer","null"]},"used_at_ms":{"type":["integer","null"]}}},
"Keys":{"type":"object","required":["keys"],"properties":{"keys":{"type":"array","items":{"$ref":"#/components/schemas/Key"}}}},
"KeyRequest":{"type":"object","required":["name","allow"],"additionalProperties":false,"properties":{"name":{"type":"string"},"allow":{"type":"array","items":{"enum":["read","acquire","admit","queue","schedule","operate","admin"]}},"prefixes":{"type":"array","items":{"type":"string"}},"expires_in_ms":{"type":"integer"}}},
"CreatedKey":{"allOf":[{"$ref":"#/components/schemas/Key"},{"type":"object","required":["secret"],"properties":{"secret":{"type":"string"}}}]},
"RevokeKeyRequest":{"type":"object","required":["key"],"additionalProperties":false,"properties":{"key":{"type":"string"}}},
"Health":{"type":"object","required":["ok"],"properties":{"ok":{"type":"boolean"}}},
"Document":{"type":"object","required":["openapi","paths"]}
})";

std::string quote(std::string_view text) {
  // A list of one, without its brackets.
  const std::string list = api::to_json(std::vector<std::string>{std::string(text)});
  return list.substr(1, list.size() - 2);
}

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
    out += cat(",", quote(status), ":{\"description\":", quote(meaning(status)),
               ",\"content\":", content("Error"), "}");
  }
  return cat(out, ",\"default\":{\"description\":",
             quote("A fault: 503 (nothing was done, ask again), "
                   "504 (outcome unknown: ask again with the same claim or idempotency key), 500."),
             ",\"content\":", content("Error"), "}");
}

std::string takes_of(const Route& route) {
  if (route.method == "POST") {
    const std::string key =
        route.path == "/v1/renew" || route.path == "/v1/check"
            ? ""
            : R"("parameters":[{"name":"Idempotency-Key","in":"header","schema":{"type":"string"}}],)";
    return cat(key, "\"requestBody\":{\"required\":true,\"content\":", content(route.takes), "},");
  }
  std::string list;
  for (std::string_view name : split(route.takes, ' ')) {
    if (name.empty()) continue;
    const bool must = name.ends_with('!');
    if (must) name.remove_suffix(1);
    list += cat(list.empty() ? "" : ",", "{\"name\":", quote(name),
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
             "\"operationId\":", quote(cat(route.method == "GET" ? "get_" : "post_", id)),
             ",\"summary\":", quote(route.summary), ",", takes_of(route), "\"responses\":{",
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
    paths += cat(paths.empty() ? "" : ",", quote(route.path), ":{", here, "}");
  }
  return cat(
      R"({"openapi":"3.1.0","info":{"title":"Stint","description":"Leases and fencing tokens over HTTP.","version":)",
      quote(version), R"(},"security":[{"key":[]}],"paths":{)", paths,
      R"(},"components":{"securitySchemes":{"key":{"type":"http","scheme":"bearer"}},"schemas":)",
      kSchemas, "}}");
}

}  // namespace stint::server
