// The OpenAPI 3.1 document of what the server takes and gives, made from the table of routes.
#pragma once

#include <string>

namespace stint::server {

std::string openapi_document(const std::string& version);

}  // namespace stint::server
