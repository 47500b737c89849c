#include "app/pass.h"

#include "base/text.h"

namespace stint::app {
namespace {

// The innermost lease stands in variables of its own too: a script may have set only those.
Result<std::optional<Known>> innermost(const Environment& environment,
                                       const ResourceName& resource) {
  const auto name = environment.get("STINT_RESOURCE");
  const auto number = environment.get("STINT_TOKEN");
  if (!name || *name != resource.text() || !number) return std::optional<Known>();
  Known out;
  auto token = Token::parse(*number);
  if (!token) return std::move(token.error()).during("reading STINT_TOKEN");
  out.token = *token;
  if (const auto text = environment.get("STINT_GENERATION")) {
    auto generation = Generation::parse(*text);
    if (!generation) return std::move(generation.error()).during("reading STINT_GENERATION");
    out.generation = *generation;
  }
  if (const auto text = environment.get("STINT_CLAIM")) {
    auto claim = Claim::parse(*text);
    if (!claim) return std::move(claim.error()).during("reading STINT_CLAIM");
    out.claim = *claim;
  }
  return std::optional<Known>(std::move(out));
}

Result<core::FenceMode> mode_of(const PassWords& words) {
  if (!words.mode || *words.mode == "at-least") return core::FenceMode::AtLeast;
  if (*words.mode == "once") return core::FenceMode::Once;
  return invalid(cat("--mode ", quoted(*words.mode), " is not known: at-least (default) or once"));
}

}  // namespace

Result<std::optional<Known>> known_of(const Environment& environment,
                                      const ResourceName& resource) {
  auto inner = innermost(environment, resource);
  if (!inner || *inner) return inner;
  auto ancestral = ancestral_leases(environment);
  if (!ancestral) return ancestral.error();
  for (const holder::Ancestral& one : *ancestral) {
    if (one.resource == resource) {
      return std::optional<Known>(Known{one.token, one.generation, one.claim});
    }
  }
  return std::optional<Known>();
}

Result<bool> guard_warns(const Environment& environment) {
  const auto text = environment.get("STINT_GUARD");
  if (text && *text != "warn" && *text != "refuse") {
    return invalid("STINT_GUARD is refuse (as without it) or warn");
  }
  return text == "warn";
}

Result<guard::Pass> pass_of(const Environment& environment, const PassWords& words,
                            const PassSources& sources) {
  const auto name = words.resource ? words.resource : environment.get("STINT_RESOURCE");
  if (!name) return invalid("which resource? Use --resource (inside a run it is known)");
  auto resource = ResourceName::parse(*name);
  if (!resource) return resource.error();
  auto mode = mode_of(words);
  if (!mode) return mode.error();
  if (words.key && *mode != core::FenceMode::Once) return invalid("--key needs --mode once");
  auto known = known_of(environment, *resource);
  if (!known) return known.error();
  guard::Pass pass{.resource = *resource,
                   .token = *known ? (*known)->token : Token(),
                   .generation = {},
                   .claim = {},
                   .owner = {},
                   .mode = *mode,
                   .key = words.key.value_or(""),
                   .require_live = words.require_live};
  auto warn = guard_warns(environment);
  if (!warn) return warn.error();
  pass.warn = *warn;
  if (const auto label = words.owner ? words.owner : environment.get("STINT_OWNER")) {
    auto owner = Owner::parse(*label);
    if (!owner) return owner.error();
    pass.owner = *owner;
  }
  if (words.token) {
    auto token = Token::parse(*words.token);
    if (!token) return invalid(cat("--token: ", token.error().message));
    pass.token = *token;
  }
  // A token that was given and is not the environment's belongs to another acquisition.
  const bool from_environment = *known && (*known)->token == pass.token;
  if (from_environment) pass.claim = (*known)->claim;
  if (from_environment && (*known)->generation) {
    pass.generation = *(*known)->generation;
    return pass;
  }
  auto generation = sources.generation();
  if (!generation) return generation.error();
  pass.generation = *generation;
  if (from_environment || !pass.token.issued()) return pass;
  auto grip = sources.claim(*resource, pass.token);
  if (!grip) return grip.error();
  if (*grip) {
    pass.claim = (*grip)->claim;
    if (pass.owner.empty() && (*grip)->owner) pass.owner = *(*grip)->owner;
  }
  return pass;
}

}  // namespace stint::app
