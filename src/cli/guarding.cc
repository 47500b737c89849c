#include "cli/guarding.h"

#include <cstdio>

#include "app/guards.h"
#include "app/pass.h"
#include "base/text.h"
#include "cli/exit_codes.h"
#include "guard/words.h"

namespace stint::cli {

Result<guard::Pass> pass_of(Session& session, KeyOf key) {
  const Words& words = session.words();
  const app::PassWords given = {.resource = words.value("--resource"),
                                .token = words.value("--token"),
                                .mode = words.value("--mode"),
                                .key = key == KeyOf::Write ? words.value("--key") : std::nullopt,
                                .owner = words.value("--owner"),
                                .require_live = words.has("--require-live")};
  const app::PassSources sources = {
      .generation = [&]() -> Result<Generation> {
        auto opened = session.open();
        if (!opened) return opened.error();
        return (*opened)->leases().generation();
      },
      .claim = [&](const ResourceName& resource, Token token) -> Result<std::optional<api::Grip>> {
        if (auto settings = session.settings(); !settings) return settings.error();
        return session.claims().find(resource, token);
      }};
  return app::pass_of(session.environment(), given, sources);
}

void record(Session& session, const guard::Refused& refusal, const guard::Pass& pass) {
  auto opened = session.open(false);
  const Status recorded =
      opened ? app::record_refusal((*opened)->events(), session.clock(), refusal, pass)
             : Status(opened.error());
  if (!recorded) {
    session.warn(cat("the refusal could not be recorded: ", recorded.error().message));
  }
}

void warned(Session& session, const guard::Refused& refusal, const guard::Pass& pass) {
  record(session, refusal, pass);
  session.warn(cat("STINT_GUARD=warn, UNSAFE: it is done all the same. Without it: ",
                   guard::error_of(refusal, pass).message));
}

int refused(Session& session, const guard::Refused& refusal, const guard::Pass& pass) {
  record(session, refusal, pass);
  const Error error = guard::error_of(refusal, pass);
  if (session.json()) {
    std::fprintf(stderr, "%s\n", guard::to_json(refusal, pass).c_str());
  } else {
    session.warn(error.message);
  }
  return exit_code(error.code);
}

}  // namespace stint::cli
