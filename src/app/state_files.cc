#include "app/state_files.h"

#include "base/sha256.h"
#include "base/text.h"
#include "os/files.h"

namespace stint::app {
namespace {

constexpr std::size_t kNameDigits = 32;

std::string short_hash(std::string_view text) {
  return to_hex(sha256(text)).substr(0, kNameDigits);
}

Result<std::string> xdg(const Environment& environment, const char* variable, const char* fallback) {
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

// ---- Claims

std::string Claims::path(const ResourceName& resource, Token token) const {
  return cat(directory_, "/claims/", short_hash(cat(store_, '\n', resource.text())), "-", token.number());
}

Status Claims::keep(const api::Grip& grip) const {
  if (auto made = os::make_directories(directory_ + "/claims"); !made) return made;
  const std::string text = cat(grip.claim.hex(), '\n', grip.owner ? grip.owner->text() : "", '\n');
  return os::write_file(path(grip.resource, grip.token), text, os::Durability::Unsynced);
}

Result<std::optional<api::Grip>> Claims::find(const ResourceName& resource, Token token) const {
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
  os::remove_file(path(resource, token));
}

// ---- AnchorFile

AnchorFile::AnchorFile(const std::string& directory, std::string_view store)
    : directory_(directory + "/anchors"), path_(cat(directory_, "/", short_hash(store))) {}

Result<std::optional<service::Anchor>> AnchorFile::recall() {
  auto text = os::read_file(path_);
  if (!text) {
    // Missing is the usual case at the first use; unreadable is not "never seen".
    if (os::exists(path_)) return text.error();
    return std::optional<service::Anchor>();
  }
  const auto lines = split(*text, '\n');
  auto generation = Generation::parse(lines.front());
  const auto revision = lines.size() > 1 ? parse_digits(trim(lines[1])) : std::nullopt;
  if (!generation || !revision) {
    return unavailable(cat("the anchor file ", quoted(path_),
                           " is damaged: it cannot tell whether the store went back in time"));
  }
  return std::optional<service::Anchor>({*generation, *revision});
}

void AnchorFile::remember(const service::Anchor& anchor) {
  // Fixed width: overwriting in place never leaves rubbish behind.
  const std::string digits = std::to_string(anchor.revision);
  const std::string text =
      cat(anchor.generation.hex(), '\n', std::string(20 - digits.size(), '0'), digits, '\n');
  if (os::overwrite_file(path_, text)) return;
  // The first use; if it fails again, a restored store is noticed by one witness less.
  if (os::make_directories(directory_)) {
    [[maybe_unused]] const bool kept = os::overwrite_file(path_, text).has_value();
  }
}

}  // namespace stint::app
