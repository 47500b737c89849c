#include "app/anchor_file.h"

#include <algorithm>

#include "base/sha256.h"
#include "base/text.h"
#include "os/directory.h"

namespace stint::app {
namespace {

using service::Anchor;

constexpr std::string_view kFormat = "stint-anchor 2";
constexpr std::size_t kNameDigits = 32;
constexpr std::size_t kLargest = 1024;
constexpr int kMostLooks = 5;

enum Line : std::size_t {
  kHead,
  kGeneration,
  kRevision,
  kHighest,
  kToken,
  kMark,
  kResource,
  kSum,
  kLines
};

// FNV-1a: a reader meets a writer, not an enemy.
std::uint64_t checksum(std::string_view text) {
  std::uint64_t sum = 14695981039346656037ULL;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return sum;
}

std::string text_of(const Anchor& anchor) {
  const std::string body = cat(kFormat, '\n', anchor.generation.hex(), '\n', anchor.revision, '\n',
                               anchor.highest.number(), '\n', anchor.newest.token.number(), '\n',
                               anchor.newest.mark, '\n', anchor.newest.resource, '\n');
  return cat(body, checksum(body), '\n');
}

// Empty: it is damaged, or was read while it was written.
std::optional<Anchor> anchor_in(std::string_view text) {
  const auto lines = split(text, '\n');
  if (lines.size() <= kLines) return std::nullopt;  // what was longer before follows
  const auto number = [&](Line line) { return parse_digits(lines[line]); };
  const std::size_t length = static_cast<std::size_t>(lines[kSum].data() - text.data());
  auto generation = Generation::parse(lines[kGeneration]);
  for (const Line line : {kRevision, kHighest, kToken, kMark, kSum}) {
    if (!number(line)) return std::nullopt;
  }
  if (!generation || *number(kSum) != checksum(text.substr(0, length))) return std::nullopt;
  return Anchor{*generation,
                *number(kRevision),
                Token(*number(kHighest)),
                {std::string(lines[kResource]), Token(*number(kToken)), *number(kMark)}};
}

}  // namespace

AnchorFile::AnchorFile(const std::string& directory, std::string_view store)
    : directory_(directory + "/anchors"),
      place_(cat(directory_, "/", to_hex(sha256(store)).substr(0, kNameDigits))) {}

std::string AnchorFile::path_of(const Generation& generation) const {
  return cat(directory_, "/", generation.hex());
}

// Empty: nothing is remembered there, or nothing else than before.
Result<std::optional<Anchor>> AnchorFile::read(os::FixedFile& file, const std::string& path) {
  for (int looks = 0; looks < kMostLooks; ++looks) {
    std::array<char, kLargest> room;
    auto content = file.look(path, room);
    // Missing is the usual case at the first use; unreadable is not "never seen".
    if (!content) return content.error();
    // A power cut can leave a new file empty: then nothing is remembered, and nothing is damaged.
    if (!*content || (*content)->empty() || **content == seen_text_) return std::optional<Anchor>();
    if (!(*content)->starts_with(kFormat)) {
      return unavailable(cat("the anchor file ", quoted(path), " is not of the format ",
                             quoted(kFormat), ", which this program knows"));
    }
    auto anchor = anchor_in(**content);
    if (!anchor) continue;
    seen_text_ = **content;
    return anchor;
  }
  return unavailable(cat("the anchor file ", quoted(path),
                         " is damaged: it cannot tell whether the store went back in time"));
}

// What another process has written.
Status AnchorFile::look() {
  if (directory_.empty()) return {};
  auto other = read(seen_, seen_path_);
  if (!other) return other.error();
  if (!*other) return {};
  if (seen_path_ == place_ && !linked_) linked_ = (*other)->generation;
  if (!last_) last_ = **other;
  if (last_->generation == (*other)->generation) last_ = joined(*last_, **other);
  return {};
}

Result<std::optional<Anchor>> AnchorFile::recall() {
  const MutexLock lock(mutex_);
  if (auto ok = look(); !ok) return ok.error();
  return last_;
}

Result<bool> AnchorFile::meet(const Generation& generation) {
  const MutexLock lock(mutex_);
  if (last_ && last_->generation == generation) return false;
  const Token highest = last_ ? last_->highest : Token();
  last_.reset();
  if (!directory_.empty()) {
    seen_ = os::FixedFile();
    seen_path_ = path_of(generation);
    seen_text_.clear();
    if (auto ok = look(); !ok) return ok.error();
  }
  const bool known = last_.has_value();
  if (!known) last_ = Anchor{generation, 0, Token(), {}};
  last_->highest = std::max(last_->highest, highest);
  return known;
}

// Appended in one write: what others append stays whole.
void AnchorFile::remember_key(const service::KeyNote& note) {
  if (directory_.empty() || !os::make_directories(directory_)) return;
  auto file = os::open_to_append(directory_ + "/keys");
  if (!file) return;
  const std::string line = cat(note.generation.hex(), note.revoked ? " revoked " : " made ",
                               note.id, " ", note.name, "\n");
  // If it cannot be kept, a key that comes back is told by nobody here.
  [[maybe_unused]] const bool kept = os::write_whole(file->get(), line) == 0;
}

Result<std::vector<service::KeyNote>> AnchorFile::keys() {
  std::vector<service::KeyNote> notes;
  const std::string path = directory_ + "/keys";
  if (directory_.empty() || !os::exists(path)) return notes;
  constexpr std::size_t kMost = std::size_t{64} << 20U;
  auto text = os::read_file(path, kMost);
  if (!text) return text.error();
  for (const std::string_view line : split(*text, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() < 3) continue;
    auto generation = Generation::parse(words[0]);
    if (!generation) continue;
    const std::size_t name = words[0].size() + words[1].size() + words[2].size() + 3;
    notes.push_back({*generation, words[1] == "revoked", std::string(words[2]),
                     std::string(line.substr(std::min(name, line.size())))});
  }
  return notes;
}

void AnchorFile::remember(const Anchor& anchor) {
  Anchor kept = anchor;
  bool linked = false;
  {
    const MutexLock lock(mutex_);
    if (last_ && last_->generation == anchor.generation) kept = joined(*last_, anchor);
    if (last_) kept.highest = std::max(kept.highest, last_->highest);
    last_ = kept;
    changed_ = true;
    if (writing_ || directory_.empty()) return;
    writing_ = true;
  }
  while (true) {
    {
      const MutexLock lock(mutex_);
      writing_ = changed_;
      changed_ = false;
      if (!writing_) return;
      // Another process may have written something newer.
      [[maybe_unused]] const bool looked = look().has_value();
      kept = *last_;
      linked = linked_ == kept.generation;
      linked_ = kept.generation;
    }
    write(kept, linked);
  }
}

// Overwritten in place. Of two processes that write at once the later one stays, which may be one
// grant behind the other. If it cannot be kept, a restored store is noticed by one witness less.
void AnchorFile::write(const Anchor& anchor, bool linked) {
  const std::string text = text_of(anchor);
  if (linked && file_.overwrite(place_, text)) return;
  const std::string own = path_of(anchor.generation);
  file_ = os::FixedFile();
  // Made whole or not at all: a full disk must not leave half of one behind.
  if (!file_.overwrite(own, text)) {
    if (!os::make_directories(directory_) || !os::make_file(own, text)) return;
  }
  // Where a file has one name only, the address keeps a memory of its own.
  if (os::link_over(own, place_)) return;
  [[maybe_unused]] const bool kept =
      os::write_file(place_, text, os::Durability::Unsynced).has_value();
}

}  // namespace stint::app
