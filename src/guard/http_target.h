// The names that go with the HTTP guard: addresses, its lease, its fences. For the program itself;
// the proxy is in a module (guard/http/proxy.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/names.h"
#include "net/http/server.h"

namespace stint::guard {

// "127.0.0.1:8080", "[::1]:8080", ":8080" (loopback), with or without "http://". Errors: Invalid.
Result<net::http::Endpoint> parse_endpoint(std::string_view text);
std::string endpoint_text(const net::http::Endpoint& endpoint);

// "proxy:http://HOST:PORT#RESOURCE" ("#*": each request names its own): the resource on which a
// proxy holds its lease, and the name of the fence of one resource behind that upstream.
std::string proxy_name(const net::http::Endpoint& upstream, const std::string& resource);
std::string proxy_lease(const net::http::Endpoint& upstream,
                        const std::optional<ResourceName>& resource);
// The mark of the newest token of which a request was let through.
std::string passed_name(const net::http::Endpoint& upstream, const std::string& resource);

}  // namespace stint::guard
