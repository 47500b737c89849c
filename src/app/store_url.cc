#include "app/store_url.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "os/files.h"

namespace stint::app {
namespace {

constexpr std::array<std::string_view, 3> kOptions = {"timeout", "generation", "keep_events"};

struct Password {
  std::size_t from = 0;
  std::size_t length = 0;
};

// "scheme://user:PASSWORD@host"
Password find_password(std::string_view text) {
  const std::size_t start = text.find("://");
  if (start == text.npos) return {};
  const std::string_view authority = text.substr(start + 3, text.find('/', start + 3) - start - 3);
  const std::size_t at = authority.rfind('@');
  const std::size_t colon = authority.find(':');
  if (at == authority.npos || colon == authority.npos || colon > at) return {};
  return {start + 3 + colon + 1, at - colon - 1};
}

Status parse_options(std::string_view text, StoreUrl& url) {
  for (const std::string_view pair : split(text, '&')) {
    const std::size_t equals = pair.find('=');
    const std::string_view name = pair.substr(0, equals);
    if (equals == pair.npos || std::ranges::find(kOptions, name) == kOptions.end()) {
      return invalid(cat("the store URL has an unknown option ", quoted(name),
                         " (known: timeout, generation, keep_events)"));
    }
    url.options[std::string(name)] = pair.substr(equals + 1);
  }
  return {};
}

}  // namespace

std::string StoreUrl::identity() const {
  return scheme == "sqlite" ? cat("sqlite:", path) : printable.substr(0, printable.find('?'));
}

Result<StoreUrl> parse_store_url(std::string_view text) {
  StoreUrl url;
  url.whole = text;
  const Password password = find_password(text);
  url.has_password = password.length > 0;
  url.printable = text;
  if (url.has_password) url.printable.replace(password.from, password.length, "***");
  const std::size_t colon = text.find(':');
  if (colon == text.npos || colon == 0) {
    return invalid(
        cat(quoted(url.printable), " is not a store URL (example: sqlite:/path/stint.db)"));
  }
  url.scheme = text.substr(0, colon);
  std::string_view rest = text.substr(colon + 1);
  if (const std::size_t question = rest.find('?'); question != rest.npos) {
    if (auto ok = parse_options(rest.substr(question + 1), url); !ok) return ok.error();
    rest = rest.substr(0, question);
  }
  if (url.scheme == "memory") return url;
  if (url.scheme != "sqlite") {
    return invalid(
        cat("stores of kind ", quoted(url.scheme), " are not known to this stint; known: sqlite:"));
  }
  if (rest.empty()) return invalid("sqlite: needs a path (example: sqlite:/path/stint.db)");
  url.path = os::absolute(std::string(rest));
  return url;
}

}  // namespace stint::app
