#include "app/postgres_guard.h"

#include "app/modules.h"
#include "app/store_url.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/files.h"

namespace stint::app {
namespace {

using CheckLevel = guard::CheckLine::Level;

struct Place {
  std::string url;
  std::string resource;  // empty: none is named
};

Place place_of(std::string_view words) {
  const std::size_t hash = words.find('#');
  if (hash == words.npos) return {std::string(words), ""};
  return {std::string(words.substr(0, hash)), std::string(words.substr(hash + 1))};
}

Result<guard::SealAnswer> seal_postgres(const guard::Target& target,
                                        const guard::SealRequest& request, api::Fences* fences) {
  const Place place = place_of(target.words);
  // A fence is the resource's own row; another's token is never compared with it.
  if (place.resource != request.pass.resource.text()) {
    guard::Refused refused;
    refused.target = target.words;
    refused.verdict = core::Verdict::Foreign;
    refused.offered = request.pass.token;
    refused.detail = cat("the target is fenced for ", quoted(place.resource));
    return guard::SealAnswer(std::move(refused));
  }
  auto guard = open_postgres(place.url, os::system_clock());
  if (!guard) return guard.error();
  auto answer = (*guard)->seal(request, fences);
  if (answer) {
    if (auto* refused = std::get_if<guard::Refused>(&*answer)) refused->target = target.words;
  }
  return answer;
}

Result<std::vector<guard::CheckLine>> check_postgres(const guard::Target& target,
                                                     api::Fences* /*fences*/) {
  const Place place = place_of(target.words);
  auto guard = open_postgres(place.url, os::system_clock());
  if (!guard) return guard.error();
  auto state = (*guard)->look();
  if (!state) return state.error();
  return check_lines(*state, place.resource);
}

}  // namespace

guard::OpenedPostgresGuard open_postgres(std::string_view url, const Clock& clock) {
  std::string text(url);
  if (url.starts_with('@')) {
    auto read = os::read_file(text.substr(1));
    if (!read) return read.error();
    text = trim(*read);
  }
  auto parsed = parse_store_url(text);
  if (!parsed) return parsed.error();
  if (parsed->module != "postgres") {
    return invalid("a database is named as postgres://user@host/database");
  }
  if (parsed->has_password && !url.starts_with('@')) {
    return invalid(
        "a password on the command line is seen by everybody who lists processes: use PGPASSFILE, "
        "or write the URL into a file and say @FILE");
  }
  return open_module_postgres_guard({.address = *parsed}, clock);
}

guard::Guard postgres_guard() {
  return {.settle_words = {}, .seal = seal_postgres, .check = check_postgres};
}

std::vector<guard::CheckLine> check_lines(const guard::PostgresState& state,
                                          const std::string& resource) {
  std::vector<guard::CheckLine> out;
  if (state.version == 0) {
    return {{CheckLevel::Fail,
             "there is no guard in this database: its operator runs stint guard "
             "install"}};
  }
  out.push_back({CheckLevel::Ok, cat("the guard is installed, version ", state.version)});
  out.push_back(
      {CheckLevel::Ok, state.store_is_here
                           ? "a store of leases is in this database: ownership itself is the "
                             "check for its leases"
                           : "the leases are elsewhere: who takes over seals"});
  bool fenced = false;
  for (const core::Fence& fence : state.fences) {
    if (!resource.empty() && fence.resource != resource) continue;
    fenced = true;
    out.push_back({CheckLevel::Ok, cat("the fence of ", quoted(fence.resource), " is at token ",
                                       fence.token.number())});
  }
  if (!resource.empty() && !fenced && !state.store_is_here) {
    out.push_back({CheckLevel::Warn, cat("nothing was sealed for ", quoted(resource),
                                         " yet: every write under it is refused until its holder "
                                         "seals")});
  }
  for (const guard::ProtectedTable& one : state.tables) {
    if (!resource.empty() && one.resource != resource) continue;
    out.push_back(
        {CheckLevel::Ok, cat("the table ", one.table, " needs a token of ", quoted(one.resource))});
  }
  if (!state.tables.empty() && !state.follows) {
    out.push_back(
        {CheckLevel::Warn,
         "a table that becomes a part of a protected one is not protected by itself: only "
         "a superuser's stint guard install makes an event trigger; protect again after "
         "each"});
  }
  for (const std::string& problem : state.problems) out.push_back({CheckLevel::Fail, problem});
  return out;
}

}  // namespace stint::app
