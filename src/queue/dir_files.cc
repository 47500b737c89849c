#include "queue/dir_files.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/text.h"
#include "os/files.h"

namespace stint::queue {
namespace {

constexpr unsigned kFileMode = 0660;
constexpr unsigned kFolderMode = 0770;
constexpr std::array<std::string_view, 11> kFolders = {"queue",  "later",  "claimed",   "done",
                                                       "failed", "parked", "cancelled", "staged",
                                                       "about",  "unique", "tmp"};

std::string parent(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::optional<std::int64_t> number(std::string_view text) {
  const auto digits = parse_digits(text);
  if (!digits || *digits > Token::kMax) return std::nullopt;
  return static_cast<std::int64_t>(*digits);
}

Millis millis(const Notes& notes, const std::string& key) {
  const auto found = notes.find(key);
  if (found == notes.end()) return Millis(0);
  return Millis(number(found->second).value_or(0));
}

}  // namespace

std::string encode(const Notes& notes) {
  std::string out;
  for (const auto& [key, value] : notes) out += cat(key, ' ', value, '\n');
  return out;
}

Notes decode_notes(std::string_view text) {
  Notes out;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t space = line.find(' ');
    if (space == line.npos) continue;
    out[std::string(line.substr(0, space))] = std::string(line.substr(space + 1));
  }
  return out;
}

std::string text_of(const Notes& notes, const std::string& key) {
  const auto found = notes.find(key);
  return found == notes.end() ? std::string() : found->second;
}

Notes notes_of(const core::ItemLimits& limits) {
  return {{"max_attempts", cat(limits.max_attempts)},
          {"claim_ttl_ms", cat(limits.claim_ttl.count())},
          {"progress_timeout_ms", cat(limits.progress_timeout.count())},
          {"requeue", std::string(core::word(limits.requeue))},
          {"backoff_ms", cat(limits.backoff.count())},
          {"backoff_max_ms", cat(limits.backoff_max.count())}};
}

Result<core::ItemLimits> limits_of(const Notes& notes) {
  core::ItemLimits limits;
  const auto attempts = notes.find("max_attempts");
  const auto requeue = notes.find("requeue");
  if (attempts == notes.end() || requeue == notes.end()) {
    return unavailable("the limits of a directory queue are damaged");
  }
  limits.max_attempts = static_cast<std::uint32_t>(
      std::min<std::int64_t>(number(attempts->second).value_or(0), 1'000'000));
  const auto when = core::parse_requeue(requeue->second);
  if (!when) return unavailable("the limits of a directory queue are damaged");
  limits.requeue = *when;
  limits.claim_ttl = millis(notes, "claim_ttl_ms");
  limits.progress_timeout = millis(notes, "progress_timeout_ms");
  limits.backoff = millis(notes, "backoff_ms");
  limits.backoff_max = millis(notes, "backoff_max_ms");
  if (auto ok = core::check_limits(limits); !ok) return unavailable(ok.error().message);
  return limits;
}

std::string note_path(const Place& place, std::uint64_t epoch, std::string_view what) {
  return cat("about/", place.suffix, "/e", epoch, ".", what);
}

std::string_view folder_of(core::ItemState state) {
  switch (state) {
    case core::ItemState::Waiting: return "queue";
    case core::ItemState::Claimed: return "claimed";
    case core::ItemState::Parked: return "parked";
    case core::ItemState::Failed: return "failed";
    case core::ItemState::Cancelled: return "cancelled";
    case core::ItemState::Done: return "done";
  }
  return "parked";
}

std::string stem_of(const std::string& suffix, Token epoch) {
  return cat(suffix, ".e", epoch.number());
}

std::string worker_folder(const Owner& owner) {
  std::string out;
  for (const char c : owner.text()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    out += plain ? c : '_';
  }
  constexpr std::size_t kMost = 100;
  return out.substr(0, kMost);
}

std::string turn_of(const Place& place) {
  return place.state == core::ItemState::Claimed ? cat(place.turn) : std::string(kLateTurn);
}

std::string next_turn(const Place& place, std::int64_t deadline_ms, const std::string& chance) {
  return cat("claimed/", place.worker, "/", stem_of(place.suffix, place.epoch), ".", deadline_ms,
             ".", place.nonce, "-", place.turn + 1, "-", chance);
}

// ITEM.eN, and in later/ and claimed/ what follows.
std::optional<Place> parse_place(const std::string& folder, const std::string& worker,
                                 const std::string& name) {
  const auto words = split(name, '.');
  const bool claimed = folder == "claimed";
  const std::size_t wanted = claimed ? 4 : folder == "later" ? 3 : 2;
  if (words.size() != wanted || words[0].size() != core::ItemId::kSuffix) return std::nullopt;
  if (words[1].size() < 2 || words[1].front() != 'e') return std::nullopt;
  const auto epoch = number(words[1].substr(1));
  if (!epoch) return std::nullopt;
  Place place;
  place.path = claimed ? cat("claimed/", worker, "/", name) : cat(folder, "/", name);
  place.suffix = words[0];
  place.epoch = Token(static_cast<std::uint64_t>(*epoch));
  if (wanted > 2) {
    place.time_ms = number(words[2]);
    if (!place.time_ms) return std::nullopt;
  }
  if (claimed) {
    const auto parts = split(words[3], '-');
    place.nonce = parts.front();
    if (parts.size() > 1) {
      const auto turn = number(parts[1]);
      if (!turn) return std::nullopt;
      place.turn = static_cast<std::uint64_t>(*turn);
    }
    place.worker = worker;
  }
  for (const core::ItemState state : core::kItemStates) {
    if (folder_of(state) == folder) place.state = state;
  }
  return place;
}

std::optional<Place> place_of(const std::string& path) {
  const std::size_t first = path.find('/');
  const std::size_t last = path.rfind('/');
  if (first == std::string::npos) return std::nullopt;
  const std::string worker = last > first ? path.substr(first + 1, last - first - 1) : "";
  return parse_place(path.substr(0, first), worker, path.substr(last + 1));
}

Status QueueFolder::make_root(const std::string& path) {
  return os::make_directories(path, kFolderMode);
}

// What is no folder or no file is not one of ours.
int QueueFolder::looked(int error) const {
  const bool absent = error == ENOENT || error == ENOTDIR || error == ELOOP || error == EISDIR;
  const bool strange = error == EFBIG;  // nothing that we write is as large
  if (error != 0 && !absent && !strange && fault_ == 0) fault_ = error;
  return error;
}

Status QueueFolder::sound() const {
  if (fault_ == 0) return {};
  return os::file_error("reading the queue's directory", fault_);
}

int QueueFolder::open(const std::string& path, bool create, QueueFolder& out) {
  if (const int error = os::Directory::open(path, out.root_); error != 0) return error;
  if (!create) return 0;
  for (const std::string_view folder : kFolders) {
    const int error = out.root_.make_directory(std::string(folder), kFolderMode);
    if (error != 0 && error != EEXIST) return error;
  }
  return 0;
}

int QueueFolder::read(const std::string& path, std::string& content) const {
  os::FileFacts facts;
  return looked(root_.read(path, std::size_t{1} << 20U, content, facts));
}

std::optional<Notes> QueueFolder::notes(const std::string& path) const {
  std::string content;
  if (read(path, content) != 0) return std::nullopt;
  return decode_notes(content);
}

int QueueFolder::sync_parent(const std::string& path) const {
  os::Directory folder;
  const std::string name = parent(path);
  if (name.empty()) return root_.sync();
  if (const int error = root_.open_directory(name, folder); error != 0) return error;
  return folder.sync();
}

int QueueFolder::stage(const std::string& path, std::string_view content) const {
  os::Fd file;
  if (const int error = root_.create(path, kFileMode, file); error != 0) return error;
  int error = os::write_whole(file.get(), content);
  if (error == 0) error = os::sync_file(file.get());
  if (error != 0) root_.remove(path);
  return error;
}

int QueueFolder::write_new(const std::string& path, std::string_view content,
                           const std::string& nonce) const {
  const std::string staged = cat("tmp/", nonce);
  if (const int error = stage(staged, content); error != 0) return error;
  const int error = root_.link(staged, root_, path);
  root_.remove(staged);
  return error == 0 ? sync_parent(path) : error;
}

int QueueFolder::write(const std::string& path, std::string_view content,
                       const std::string& nonce) const {
  const std::string staged = cat("tmp/", nonce);
  if (const int error = stage(staged, content); error != 0) return error;
  const int error = root_.rename(staged, path);
  if (error != 0) root_.remove(staged);
  return error == 0 ? sync_parent(path) : error;
}

int QueueFolder::mark(const std::string& path) const {
  os::Fd file;
  const int error = root_.create(path, kFileMode, file);
  return error == EEXIST ? 0 : error;
}

int QueueFolder::rename(const std::string& from, const std::string& to) const {
  if (const int error = root_.rename(from, to); error != 0) {
    // The reply to a rename that was carried out may be lost: then its target is there.
    if (error != ENOENT) return error;
    os::FileFacts facts;
    const int target = looked(root_.facts(to, facts));
    return target == 0 ? sync_parent(to) : target;
  }
  if (const int error = sync_parent(to); error != 0) return error;
  return 0;
}

int QueueFolder::make(const std::string& path) const {
  const int error = root_.make_directory(path, kFolderMode);
  return error == EEXIST ? 0 : error;
}

int QueueFolder::remove(const std::string& path) const { return root_.remove(path); }

void QueueFolder::remove_all(const std::string& path) const {
  for (const std::string& name : list(path)) root_.remove(cat(path, "/", name));
  root_.remove_directory(path);
}

bool QueueFolder::there(const std::string& path) const {
  os::FileFacts facts;
  return looked(root_.facts(path, facts)) == 0;
}

std::optional<Nanos> QueueFolder::changed(const std::string& path) const {
  os::FileFacts facts;
  if (looked(root_.facts(path, facts)) != 0) return std::nullopt;
  return facts.modified;
}

std::vector<std::string> QueueFolder::list(const std::string& path) const {
  os::Directory folder;
  std::vector<std::string> names;
  if (looked(root_.open_directory(path, folder)) != 0) return {};
  if (looked(folder.list(names)) != 0) return {};
  std::ranges::sort(names);
  return names;
}

Result<Nanos> QueueFolder::server_now(const std::string& nonce) const {
  const std::string probe = cat("tmp/", nonce, ".clock");
  os::Fd file;
  os::FileFacts facts;
  int error = root_.create(probe, kFileMode, file);
  if (error == 0) error = os::facts_of(file.get(), facts);
  root_.remove(probe);
  if (error != 0) return os::file_error("asking the file server for its time", error);
  return facts.changed;
}

}  // namespace stint::queue
