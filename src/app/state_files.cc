#include "app/state_files.h"

#include <algorithm>

#include "base/sha256.h"
#include "base/text.h"
#include "os/files.h"

namespace stint::app {
namespace {

constexpr std::size_t kNameDigits = 32;

std::string short_hash(std::string_view text) {
  return to_hex(sha256(text)).substr(0, kNameDigits);
}

Result<std::string> xdg(const Environment& environment, const char* variable,
                        const char* fallback) {
  if (const auto set = environment.get(variable); set && set->starts_with('/')) return *set;
  if (const auto home = environment.get("HOME")) return cat(*home, fallback);
  return invalid(cat("neither ", variable, " nor HOME is set: say where with --store"));
}

}  // namespace

Result<std::string> state_directory(const Environment& environment) {
  auto base = xdg(environment, "XDG_STATE_HOME", "/.local/state");
  if (!base) return base;
  return cat(*base, "/stint");
}

Result<std::string> config_file(const Environment& environment) {
  auto base = xdg(environment, "XDG_CONFIG_HOME", "/.config");
  if (!base) return base;
  return cat(*base, "/stint/config.toml");
}

std::string Claims::path(const ResourceName& resource, Token token) const {
  return cat(directory_, "/claims/", short_hash(cat(store_, '\n', resource.text())), "-",
             token.number());
}

Status Claims::keep(const api::Grip& grip) const {
  if (directory_.empty()) return unavailable("neither XDG_STATE_HOME nor HOME is set");
  if (auto made = os::make_directories(directory_ + "/claims"); !made) return made;
  const std::string text = cat(grip.claim.hex(), '\n', grip.owner ? grip.owner->text() : "", '\n');
  return os::write_file(path(grip.resource, grip.token), text, os::Durability::Unsynced);
}

Result<std::optional<api::Grip>> Claims::find(const ResourceName& resource, Token token) const {
  if (directory_.empty()) return std::optional<api::Grip>();
  const std::string file = path(resource, token);
  if (!os::exists(file)) return std::optional<api::Grip>();
  auto text = os::read_file(file);
  if (!text) return text.error();
  const auto lines = split(*text, '\n');
  auto claim = Claim::parse(lines.front());
  if (!claim) return unavailable(cat("the claim file ", quoted(file), " is damaged"));
  std::optional<Owner> owner;
  if (lines.size() > 1 && !lines[1].empty()) {
    auto parsed = Owner::parse(lines[1]);
    if (!parsed) return unavailable(cat("the claim file ", quoted(file), " is damaged"));
    owner = *parsed;
  }
  return std::optional<api::Grip>({resource, token, *claim, owner, std::nullopt});
}

void Claims::drop(const ResourceName& resource, Token token) const {
  if (directory_.empty()) return;
  os::remove_file(path(resource, token));
}

}  // namespace stint::app
