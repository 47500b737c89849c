#include "guard/git_here.h"

#include <algorithm>
#include <cstdint>

#include "base/sha1.h"
#include "base/sha256.h"
#include "base/text.h"
#include "os/files.h"

namespace stint::guard {
namespace {

constexpr std::size_t kSha1Digits = 40;

bool is_sha1_name(std::string_view text) {
  return text.size() == kSha1Digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// Settings that make a repository another one than it looks like from its files.
bool has_odd_settings(std::string config) {
  std::ranges::transform(config, config.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  constexpr std::string_view kOdd[] = {"objectformat", "refstorage", "sharedrepository",
                                       "worktreeconfig", "[include"};
  return std::ranges::any_of(kOdd,
                             [&](std::string_view odd) { return config.find(odd) != config.npos; });
}

std::optional<PlainRepository> look_at(const std::string& git_dir) {
  const auto head = os::read_file(cat(git_dir, "/HEAD"), 4096);
  const auto config = os::read_file(cat(git_dir, "/config"), 1U << 16U);
  if (!head || !config || has_odd_settings(*config)) return std::nullopt;
  if (os::exists(cat(git_dir, "/commondir")) || os::exists(cat(git_dir, "/reftable")) ||
      !os::exists(cat(git_dir, "/refs/heads")) || !os::exists(cat(git_dir, "/objects"))) {
    return std::nullopt;
  }
  constexpr std::string_view kRef = "ref: ";
  const std::string_view line = trim(*head);
  if (line.starts_with("ref: refs/heads/"))
    return PlainRepository{git_dir, std::string(line.substr(kRef.size()))};
  if (is_sha1_name(line)) return PlainRepository{git_dir, {}};
  return std::nullopt;
}

std::optional<std::string> resolve(const PlainRepository& at, const std::string& source) {
  if (is_sha1_name(source)) return source;
  const std::string name = source == "HEAD" && !at.head.empty() ? at.head : source;
  if (name != "HEAD" && (!name.starts_with("refs/") || name.find("..") != name.npos ||
                         name.find_first_of("^~@{:") != name.npos)) {
    return std::nullopt;
  }
  const auto text = os::read_file(cat(at.git_dir, "/", name), 4096);
  if (!text || !is_sha1_name(trim(*text))) return std::nullopt;  // packed, or symbolic
  return std::string(trim(*text));
}

std::string with_header(std::string_view content) {
  return cat("blob ", content.size(), std::string_view("\0", 1), content);
}

std::uint32_t adler32(std::string_view bytes) {
  constexpr std::uint32_t kModulo = 65521;
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<unsigned char>(c)) % kModulo;
    b = (b + a) % kModulo;
  }
  return b << 16U | a;
}

}  // namespace

std::optional<PlainRepository> find_plain_repository(bool plain) {
  if (!plain) return std::nullopt;
  std::string folder = os::parent_of(os::absolute(".git"));
  while (true) {
    const std::string base = folder == "/" ? std::string() : folder;
    if (os::exists(cat(base, "/.git"))) return look_at(cat(base, "/.git"));
    if (os::exists(cat(base, "/HEAD")) || base.empty()) return std::nullopt;
    folder = os::parent_of(folder);
  }
}

Result<Here> look_here(const Git& git, const std::string& source, bool plain) {
  if (const auto at = find_plain_repository(plain)) {
    if (auto oid = resolve(*at, source)) return Here{at->git_dir, std::move(*oid), true};
  }
  auto end = git.run({"rev-parse", "--absolute-git-dir", "--verify", "--end-of-options", source});
  if (!end) return end.error();
  const auto lines = split(end->out, '\n');
  if (!end->ok() || lines.size() < 2) {
    return invalid(cat(quoted(source), " cannot be pushed from here (", git_words(end->talk), ")"));
  }
  return Here{std::string(lines[0]), std::string(lines[1]), false};
}

std::string settings_digest(const Here& here, const std::optional<std::string>& others) {
  if (!here.plain || !others) return {};
  const auto own = os::read_file(cat(here.git_dir, "/config"), 1U << 16U);
  return own ? to_hex(sha256(cat(own->size(), "\n", *own, *others))) : std::string();
}

std::string blob_name(std::string_view content, std::string_view like) {
  const std::string whole = with_header(content);
  return to_hex(like.size() == kSha1Digits ? sha1(whole) : sha256(whole));
}

std::string loose_blob(std::string_view content) {
  const std::string whole = with_header(content);
  const auto size = static_cast<std::uint16_t>(whole.size());
  const auto bytes = [](std::uint32_t value, int count, bool low_first) {
    std::string out;
    for (int i = 0; i < count; ++i) {
      const int shift = 8 * (low_first ? i : count - 1 - i);
      out += static_cast<char>(value >> static_cast<unsigned>(shift));
    }
    return out;
  };
  // RFC 1950 and 1951: a zlib header, one final block that is stored as it is, the checksum.
  return cat("\x78\x01\x01", bytes(size, 2, true), bytes(size ^ 0xFFFFU, 2, true), whole,
             bytes(adler32(whole), 4, false));
}

std::optional<std::string> put_blob(const std::string& git_dir, std::string_view content) {
  constexpr std::size_t kMost = 60'000;  // one stored block
  if (content.size() > kMost) return std::nullopt;
  std::string name = to_hex(sha1(with_header(content)));
  const std::string folder = cat(git_dir, "/objects/", name.substr(0, 2));
  if (!os::make_directories(folder, 0777)) return std::nullopt;
  const std::string path = cat(folder, "/", name.substr(2));
  if (!os::write_file(path, loose_blob(content), os::Durability::Unsynced, 0444))
    return std::nullopt;
  return name;
}

}  // namespace stint::guard
