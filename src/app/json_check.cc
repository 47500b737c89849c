#include "app/json_check.h"

#include <boost/json.hpp>

#include "base/text.h"

namespace stint::app {

Status check_json(std::string_view text) {
  boost::json::error_code error;
  boost::json::stream_parser parser;
  parser.write(text.data(), text.size(), error);
  if (!error) parser.finish(error);
  if (!error) return {};
  return invalid(cat("the payload is not JSON: ", error.message()));
}

}  // namespace stint::app
