// stint::guard::admit and seal on the user's own SQLite connection.
#include "stint/guard_sqlite.h"

#include "base/text.h"
#include "guard/sqlite_guard.h"
#include "guard/words.h"
#include "lib/client_state.h"
#include "lib/inside.h"

namespace stint::guard::detail {
namespace {

Result<Pass> pass_of(const SqlitePass& given) {
  auto resource = ResourceName::parse(given.resource);
  if (!resource) return resource.error();
  if (given.token > Token::kMax) return invalid(cat(given.token, " is no token"));
  auto generation = Generation::parse(given.generation);
  if (!generation) return generation.error();
  std::optional<Claim> claim;
  if (!given.claim.empty()) {
    auto parsed = Claim::parse(given.claim);
    if (!parsed) return parsed.error();
    claim = *parsed;
  }
  return Pass{.resource = *resource,
              .token = Token(given.token),
              .generation = *generation,
              .claim = std::move(claim),
              .owner = {},
              .mode = given.once ? core::FenceMode::Once : core::FenceMode::AtLeast,
              .key = given.key,
              .require_live = false};
}

guard::SqliteCalls calls_of(const SqliteCalls& calls) {
  return {.prepare = calls.prepare,
          .bind_text = calls.bind_text,
          .bind_int64 = calls.bind_int64,
          .step = calls.step,
          .finalize = calls.finalize,
          .column_type = calls.column_type,
          .column_text = calls.column_text,
          .column_bytes = calls.column_bytes,
          .column_int64 = calls.column_int64,
          .get_autocommit = calls.get_autocommit,
          .errmsg = calls.errmsg};
}

SqliteAnswer answer_of(const Result<SqliteVerdict>& verdict, const Pass& pass) {
  if (!verdict) return verdict.error();
  if (const auto* let = std::get_if<SqliteLet>(&*verdict)) {
    return SqliteAdmitted{.already = let->already};
  }
  const Refused& why = std::get<Refused>(*verdict);
  const Error words = error_of(why, pass);
  return SqliteRefused{.code = words.code,
                       .message = words.message,
                       .fence = why.fence ? why.fence->token.number() : 0};
}

}  // namespace

SqliteAnswer admit(const SqliteCalls& calls, sqlite3* db, const SqlitePass& given,
                   const Client* client) {
  auto pass = pass_of(given);
  if (!pass) return pass.error();
  if (client != nullptr) {
    if (auto ok = lib::Inside::state(*client).usable(); !ok) return ok.error();
  }
  api::Fences* fences = client == nullptr ? nullptr : &lib::Inside::state(*client).opened->fences();
  return answer_of(admit_sqlite(calls_of(calls), db, *pass, given.digest, fences), *pass);
}

SqliteAnswer seal(const SqliteCalls& calls, sqlite3* db, const SqlitePass& given,
                  const Client& client) {
  auto pass = pass_of(given);
  if (!pass) return pass.error();
  if (auto ok = lib::Inside::state(client).usable(); !ok) return ok.error();
  api::Fences& fences = lib::Inside::state(client).opened->fences();
  return answer_of(seal_sqlite(calls_of(calls), db, *pass, fences), *pass);
}

}  // namespace stint::guard::detail
