// `seal proxy:URL`: the holder's side.
#include <boost/json.hpp>

#include "base/text.h"
#include "guard/http/proxy.h"
#include "guard/http/url.h"
#include "net/http_client.h"

namespace stint::guard::http {
namespace {

struct Told {
  std::string code;
  std::string message;
  std::optional<std::uint64_t> fence;
  bool sealed = false;  // that very token
  std::string narrow;   // why the window is not zero there
};

// `pass`: what was to be sealed.
Told read_told(const std::string& body, const Pass& pass) {
  Told out;
  boost::system::error_code failed;
  const boost::json::value whole = boost::json::parse(body, failed);
  if (failed || !whole.is_object()) return out;
  const auto flag = [&](const char* name) {
    const auto* found = whole.as_object().if_contains(name);
    return found != nullptr && found->is_bool() && found->as_bool();
  };
  const auto* resource = whole.as_object().if_contains("resource");
  const auto* token = whole.as_object().if_contains("token");
  out.sealed = flag("sealed") && resource != nullptr && resource->is_string() &&
               resource->as_string() == pass.resource.text() && token != nullptr &&
               token->is_int64() &&
               static_cast<std::uint64_t>(token->as_int64()) == pass.token.number();
  if (flag("narrow")) out.narrow = "the proxy runs with --cut";
  if (flag("warn")) out.narrow = "the proxy runs with STINT_GUARD=warn and refuses nothing";
  const auto* error = whole.as_object().if_contains("error");
  if (error == nullptr || !error->is_object()) return out;
  const auto text = [&](const char* name) {
    const auto* found = error->as_object().if_contains(name);
    return found != nullptr && found->is_string() ? std::string(found->as_string()) : std::string();
  };
  out.code = text("code");
  out.message = text("message");
  if (const auto* fence = error->as_object().if_contains("fence"); fence && fence->is_int64()) {
    out.fence = static_cast<std::uint64_t>(fence->as_int64());
  }
  return out;
}

std::optional<core::Verdict> verdict_of(int status, const std::string& code) {
  if (status == 412) return core::Verdict::Stale;
  if (status != 403) return std::nullopt;
  if (code == word(Code::NeverIssued)) return core::Verdict::NeverIssued;
  if (code == word(Code::NeverGranted)) return core::Verdict::NeverGranted;
  if (code == word(Code::Foreign)) return core::Verdict::Foreign;
  return std::nullopt;
}

ProxySealAnswer understood(const ProxySeal& seal, const net::HttpAnswer& answer) {
  const Told told = read_told(answer.body, seal.request.pass);
  // Whatever else listens there may answer 200 to anything.
  if (answer.status == 200 && !told.sealed) {
    return unavailable(cat("what answers at ", printable(seal.url),
                           " is no stint proxy: nothing was sealed. Give the address that 'stint "
                           "proxy --listen' has, not the upstream's"));
  }
  if (answer.status == 200) {
    return SealAnswer(Sealed{.already = false, .narrow = told.narrow});
  }
  const auto verdict = verdict_of(answer.status, told.code);
  if (!verdict) {
    return unavailable(cat("the proxy at ", printable(seal.url), " did not seal (", answer.status,
                           told.message.empty() ? "" : "): ", printable(told.message),
                           told.message.empty() ? ")" : ""));
  }
  const Pass& pass = seal.request.pass;
  Refused refused;
  refused.target = cat("proxy:", seal.url);
  refused.verdict = *verdict;
  refused.offered = pass.token;
  if (told.fence) {
    refused.fence = core::Fence{.generation = pass.generation,
                                .resource = pass.resource.text(),
                                .token = Token(*told.fence),
                                .used = false,
                                .key = "",
                                .digest = ""};
  }
  return SealAnswer(std::move(refused));
}

}  // namespace

ProxySealAnswer seal_proxy(const ProxySeal& seal, const Clock& clock) {
  const Pass& pass = seal.request.pass;
  if (seal.request.adopt) {
    return invalid("a proxy's fence is in the leases' own store and needs no adopting");
  }
  const auto url = base_url(seal.url);
  if (!url) return url.error();
  net::HttpRequest request{.url = cat(*url, kSealPath), .body = "{}"};
  request.headers = {cat("Fencing-Token: ", pass.token.number()),
                     cat("Fencing-Resource: ", pass.resource.text()),
                     cat("Fencing-Generation: ", pass.generation.hex()),
                     "Expect:", "Content-Type: application/json"};
  if (seal.request.by_order) request.headers.emplace_back("Fencing-Order: 1");
  request.timeout = seal.timeout;
  const net::HttpOutcome outcome = net::make_http_client({}, clock)->send(request);
  if (outcome) return understood(seal, outcome.answer);
  const bool not_sent = outcome.failure->kind == net::HttpFailure::Kind::NotSent;
  return Error{not_sent ? Code::Unavailable : Code::UnknownOutcome,
               cat("the proxy at ", printable(seal.url), " gave no answer: ", outcome.failure->text,
                   not_sent ? "" : "; it may or may not be sealed")};
}

}  // namespace stint::guard::http
