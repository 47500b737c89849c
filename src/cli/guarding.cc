#include "cli/guarding.h"

#include <cstdio>

#include "app/pass.h"
#include "cli/exit_codes.h"
#include "guard/words.h"

namespace stint::cli {

Result<guard::Pass> pass_of(Session& session) {
  const Words& words = session.words();
  const app::PassWords given = {.resource = words.value("--resource"),
                                .token = words.value("--token"),
                                .mode = words.value("--mode"),
                                .key = words.value("--key"),
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

int refused(Session& session, const guard::Refused& refusal, const guard::Pass& pass) {
  const Error error = guard::error_of(refusal, pass);
  if (session.json()) {
    std::fprintf(stderr, "%s\n", guard::to_json(refusal, pass).c_str());
  } else {
    session.warn(error.message);
  }
  return exit_code(error.code);
}

}  // namespace stint::cli
