#include "guard/http_target.h"

#include <algorithm>

#include "base/text.h"

namespace stint::guard {

Result<net::http::Endpoint> parse_endpoint(std::string_view text) {
  const std::string_view given = text;
  // Not said back: what stands there may be a password.
  if (text.find('@') != text.npos) return invalid("HOST:PORT, without a user and a password");
  constexpr std::string_view kHttpScheme = "http://";
  if (text.starts_with("https://")) {
    return invalid(cat(quoted(given), ": only plain http:// is spoken here"));
  }
  if (text.starts_with(kHttpScheme)) text.remove_prefix(kHttpScheme.size());
  if (text.ends_with('/')) text.remove_suffix(1);
  const std::size_t colon = text.rfind(':');
  const auto port = colon == text.npos ? std::nullopt : parse_digits(text.substr(colon + 1));
  constexpr std::uint64_t kMostPort = 65535;
  if (!port || *port > kMostPort) {
    return invalid(cat(quoted(given), " is no HOST:PORT"));
  }
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const bool proper = std::ranges::all_of(host, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view(".-_:").find(c) != std::string_view::npos;
  });
  if (!proper) return invalid(cat(quoted(given), " is no HOST:PORT"));
  std::string name(host.empty() ? "127.0.0.1" : host);
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return net::http::Endpoint{std::move(name), static_cast<std::uint16_t>(*port)};
}

std::string endpoint_text(const net::http::Endpoint& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return cat("http://", v6 ? "[" : "", endpoint.host, v6 ? "]" : "", ":", endpoint.port);
}

std::string proxy_name(const net::http::Endpoint& upstream, const std::string& resource) {
  return cat("proxy:", endpoint_text(upstream), "#", resource);
}

std::string proxy_lease(const net::http::Endpoint& upstream,
                        const std::optional<ResourceName>& resource) {
  return proxy_name(upstream, resource ? resource->text() : std::string("*"));
}

std::string passed_name(const net::http::Endpoint& upstream, const std::string& resource) {
  return cat("proxy-passed:", endpoint_text(upstream), "#", resource);
}

}  // namespace stint::guard
