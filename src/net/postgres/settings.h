// What a postgres: URL says, taken apart for libpq and for us.
//
//   schema=NAME       the schema (default: stint)
//   pooler=1|0        a transaction pooler stands between (found out without it)
//   listen=HOST:PORT  where notifications arrive although a pooler stands between
//   host= port=       as the URL's own: for a socket's folder
//   sslmode= ...      libpq's own, handed on as they are
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/address.h"

namespace stint::net::postgres {

struct Settings {
  std::string schema;          // as it is
  std::string quoted_schema;   // for SQL text
  bool schema_given = false;   // by the URL
  std::vector<Host> hosts;     // at least one; an empty name: libpq's own default
  std::optional<Host> listen;  // empty: the same hosts
  std::optional<bool> pooler;  // empty: to be found out
  std::vector<std::pair<std::string, std::string>> given;  // for libpq, without host and port
  std::vector<std::string> secrets;                        // never to be printed
  std::string printable;
  Millis timeout{0};

  // Replaces the secrets, makes one line of several.
  std::string scrubbed(std::string_view text) const;
  // SQL with the schema's name in the place of $S.
  std::string sql(std::string_view text) const;
};

// Small letters, digits and _: what may stand in SQL text.
bool plain_name(std::string_view name);

// `timeout`: the longest time that one call may take.
Result<Settings> read_settings(const Address& address, Millis timeout);

}  // namespace stint::net::postgres
