#include "store/dir/readable.h"

#include <cerrno>

#include "base/text.h"
#include "store/row_bytes.h"

namespace stint::store::dir {
namespace {

constexpr std::size_t kMostName = 200;

bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.' || c == '@' || c == '+' || c == '=' || c == ',';
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    // A name that begins with a dot is hidden, and two are special.
    if (plain(c) && !(out.empty() && c == '.')) {
      out += c;
    } else {
      out += cat('%', to_hex(std::string_view(&c, 1)));
    }
  }
  if (out.size() <= kMostName) return out;
  return cat(out.substr(0, kMostName), "~", checksum(text));
}

WallTime shown(Nanos time) { return WallTime(std::chrono::duration_cast<Millis>(time)); }

}  // namespace

std::string readable_path(std::string_view key) {
  const std::size_t slash = key.find('/');
  // Keys without a first part are apart, so that none is a directory of another's name.
  if (slash == std::string_view::npos || slash == 0) return cat("records/_/", escaped(key));
  const std::string first = escaped(key.substr(0, slash));
  return cat("records/", first == "_" ? "%5f" : first, "/", escaped(key.substr(slash + 1)));
}

std::string readable_text(const std::string& key, const Record& record, Number number) {
  std::string timer = "none";
  if (record.timer) {
    timer = cat("until ", format_utc(shown(record.timer->fires_at)), " (",
                format_duration(record.timer->ttl), " from ",
                format_utc(shown(record.timer->set_at)), ")");
  }
  return cat("record: ", printable(key), "\ncommit: ", number, "\ntimer: ", timer, "\n\n",
             record.value, "\n");
}

void show(const Place& place, const std::vector<Change>& changes, Number number) {
  for (const Change& change : changes) {
    if (change.was_appended || (change.slot && change.slot->appended)) continue;
    const std::string path = readable_path(change.key);
    if (!change.slot) {
      place.root.remove(path);
      continue;
    }
    os::Fd file;
    int e = place.root.open_file(path, place.modes.file, file);
    if (e == ENOENT) {
      place.root.make_directory("records", place.modes.directory);
      place.root.make_directory(path.substr(0, path.rfind('/')), place.modes.directory);
      e = place.root.open_file(path, place.modes.file, file);
    }
    // A copy that cannot be written is missing, and that is all.
    if (e == 0) os::overwrite(file.get(), readable_text(change.key, *change.slot, number));
  }
}

}  // namespace stint::store::dir
