// The OpenAPI 3.1 document of what the server takes and gives, made from the table of routes.
#pragma once

#include <string>
#include <string_view>

namespace stint::server {

extern const std::string_view kSchemas;  // a JSON object, by name
std::string openapi_document(const std::string& version);

}  // namespace stint::server
