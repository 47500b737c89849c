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

// ---- Claims

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

// ---- AnchorFile

AnchorFile::AnchorFile(const std::string& directory, std::string_view store)
    : directory_(directory + "/anchors"), path_(cat(directory_, "/", short_hash(store))) {}

Result<std::optional<service::Anchor>> AnchorFile::recall() {
  auto text = os::read_file(path_);
  if (!text) {
    // Missing is the usual case at the first use; unreadable is not "never seen".
    if (!os::exists(path_)) return std::optional<service::Anchor>();
    // Another may have made it since the first look.
    text = os::read_file(path_);
    if (!text) return text.error();
  }
  // A power cut can leave a new file empty: then nothing is remembered, and nothing is damaged.
  if (text->empty()) return std::optional<service::Anchor>();
  const auto lines = split(*text, '\n');
  auto generation = Generation::parse(lines.front());
  const auto revision = lines.size() > 1 ? parse_digits(trim(lines[1])) : std::nullopt;
  const auto highest = lines.size() > 2 ? parse_digits(trim(lines[2])) : std::nullopt;
  if (!generation || !revision || !highest) {
    return unavailable(cat("the anchor file ", quoted(path_),
                           " is damaged: it cannot tell whether the store went back in time"));
  }
  const MutexLock lock(mutex_);
  last_ = service::Anchor{*generation, *revision, Token(*highest)};
  return last_;
}

void AnchorFile::remember(const service::Anchor& anchor) {
  service::Anchor kept = anchor;
  {
    const MutexLock lock(mutex_);
    if (last_) kept.highest = std::max(kept.highest, last_->highest);
    if (last_ && last_->generation == kept.generation) {
      kept.revision = std::max(kept.revision, last_->revision);
    }
    last_ = kept;
    changed_ = true;
    if (writing_) return;
    writing_ = true;
  }
  while (true) {
    {
      const MutexLock lock(mutex_);
      writing_ = changed_;
      changed_ = false;
      if (!writing_) return;
      kept = *last_;
    }
    write(kept);
  }
}

// Overwritten in place, fixed width: never torn for a reader of this machine. Of two processes that
// write at once the later one stays, which may be one grant behind the other.
void AnchorFile::write(const service::Anchor& anchor) {
  const auto digits = [](std::uint64_t number) {
    const std::string plain = std::to_string(number);
    return std::string(20 - plain.size(), '0') + plain;
  };
  const std::string text = cat(anchor.generation.hex(), '\n', digits(anchor.revision), '\n',
                               digits(anchor.highest.number()), '\n');
  // Made whole or not at all: a full disk must not leave half of one behind. If it cannot be kept,
  // a restored store is noticed by one witness less.
  if (file_.overwrite(path_, text)) return;
  if (os::make_directories(directory_)) {
    [[maybe_unused]] const bool done =
        os::write_file(path_, text, os::Durability::Unsynced).has_value();
  }
}

}  // namespace stint::app
